"""Many Rollouts, threads and processes on one route (C2, C3, C87, C137)."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.service.world import Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.routes.label import ANNOTATION
from rollouts_gwapi_plugin.service import router

ROLLOUTS, THREADS = 30, 10
# A route holds 16 rules: several Rollouts share a rule's path here, each with Services of its own.
PER_RULE = 2


def _pairs(index: int) -> tuple[str, str]:
    return f"s-{index}x", f"c-{index}x"


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[tuple[ApiServer, list[Shop]]]:
    """Give an API with one route for thirty Rollouts, and their calls; five processes serve six Rollouts each."""
    rules = []
    for first in range(0, ROLLOUTS, PER_RULE):
        names = [name for index in range(first, first + PER_RULE) for name in _pairs(index)]
        rules.append(rule(" ".join(names), matches=[{"path": {"type": "PathPrefix", "value": f"/{first}"}}]))
    with ApiServer() as api:
        api.create(route(*rules))
        shops: list[Shop] = []
        for index in range(ROLLOUTS):
            folder = tmp_path / str(index // 6)
            folder.mkdir(exist_ok=True)
            stable, canary = _pairs(index)
            shop = Shop(api, folder, settings={"qps": 10_000.0, "burst": 10_000})
            shop.canary = {"stableService": stable, "canaryService": canary}
            shop.metadata = {"name": f"r{index}", "uid": f"uid-{index}"}
            # Six Rollouts have one process.
            if index % 6:
                shop._router = shops[-1].router
            shops.append(shop)
        yield api, shops


def test_thirty_rollouts_on_one_route_all_end_right(crowd: tuple[ApiServer, list[Shop]]) -> None:
    """With random conflicts each call ends inside its deadline, and nobody's weights are lost."""
    api, shops = crowd
    for _ in range(20):
        api.faults.add(verb="update", plural="httproutes", status=409, times=1)

    def life(shop: Shop) -> float:
        slowest = 0.0
        for weight in (10, 40, 70):
            started = time.monotonic()
            shop.weight(weight)
            slowest = max(slowest, time.monotonic() - started)
        return slowest

    with ThreadPoolExecutor(THREADS) as pool:
        slowest = max(pool.map(life, shops))
    refs = {
        ref["name"]: ref["weight"]
        for item in api.read("HTTPRoute", "shop", "web")["spec"]["rules"]
        for ref in item["backendRefs"]
    }

    assert {(30, 70)} == {(refs[stable], refs[canary]) for stable, canary in map(_pairs, range(ROLLOUTS))}
    assert slowest < router.CALL_SECONDS


def test_the_label_stays_until_the_last_rollout_is_done(crowd: tuple[ApiServer, list[Shop]]) -> None:
    """The annotation lists who stands on the route; nobody takes off another's mark (C87)."""
    api, shops = crowd
    first, second = shops[0], shops[7]
    first.weight(10)
    second.weight(10)
    both = api.read("HTTPRoute", "shop", "web")["metadata"]
    first.weight(0)
    one = api.read("HTTPRoute", "shop", "web")["metadata"]
    second.weight(0)
    none = api.read("HTTPRoute", "shop", "web")["metadata"]

    assert "shop/r0,shop/r7" == both["annotations"][ANNOTATION]
    assert "shop/r7" == one["annotations"][ANNOTATION]
    assert one["labels"]
    assert not none.get("labels")
    assert not none.get("annotations")


def test_managed_routes_of_several_rollouts_share_one_ledger(crowd: tuple[ApiServer, list[Shop]]) -> None:
    """Header routes set and removed at the same time leave no rule, no record, and do not move each other."""
    api, shops = crowd
    some = shops[:2]
    for index, shop in enumerate(some):
        shop.managed, shop.steps = [f"m{index}"], [{"setHeaderRoute": header_step(f"m{index}", value=str(index))}]
    # Room for managed rules: a route holds sixteen.
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"].update(rules=value["spec"]["rules"][:3]))

    def life(shop: Shop) -> None:
        for _ in range(5):
            shop.header(shop.managed[0], value=shop.managed[0][-1])
            shop.weight(0)

    with ThreadPoolExecutor(len(some)) as pool:
        list(pool.map(life, some))
    set_ = [item["name"] for item in api.read("HTTPRoute", "shop", "web")["spec"]["rules"] if item.get("name")]
    quiet = [len(shop.requests(lambda shop=shop: shop.weight(0))) for shop in some]  # type: ignore[misc]
    with ThreadPoolExecutor(len(some)) as pool:
        list(pool.map(lambda shop: shop.remove(), some))

    assert ["m0", "m1"] == sorted(set_)
    assert [2, 2] == quiet
    assert not [item for item in api.read("HTTPRoute", "shop", "web")["spec"]["rules"] if item.get("name")]
    assert {} == some[0].ledger()


def test_a_hanging_api_server_ends_in_an_error(shop: Shop, api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker of the host is stuck: the call has a deadline of its own (C137)."""
    monkeypatch.setattr(router, "CALL_SECONDS", 0.5)
    shop.weight(10)
    release = threading.Event()
    api.faults.add(verb="get", plural="httproutes", until=release, times=None)
    try:
        with pytest.raises(PluginError, match=r"0\.5 s"):
            shop.weight(20)
    finally:
        release.set()
