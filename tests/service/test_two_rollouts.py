"""Two Rollouts with managed routes on one route: what one has on record is not the other's (C20, C87, D16)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.service.world import Shop, header_step, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

Json = dict[str, Any]
IN_PROGRESS: Json = {"stableRS": "old", "currentPodHash": "new", "currentStepIndex": 1}
AT_REST: Json = {"stableRS": "new", "currentPodHash": "new"}


def _path(value: str) -> list[Json]:
    return [{"path": {"type": "PathPrefix", "value": value}}]


def _shop(api: ApiServer, folder: Path, managed: str, **fields: Any) -> Shop:
    steps: list[Json] = [{"setHeaderRoute": header_step(managed)}, {"setWeight": 20}]
    return Shop(api, folder, managed=[managed], steps=steps, status=IN_PROGRESS, **fields)


@pytest.fixture
def namesakes(api: ApiServer, tmp_path: Path) -> tuple[Shop, Shop]:
    """Give Rollouts shop/web and other/web on one route, a rule for each; Services and managed routes are namesakes."""
    theirs = rule("s100 c0", matches=_path("/other"))
    for ref in theirs["backendRefs"]:
        ref["namespace"] = "other"
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"].update(rules=[rule("s100 c0"), theirs]))
    first = _shop(api, tmp_path, "canary")
    second = _shop(api, tmp_path, "canary", metadata={"namespace": "other", "uid": "uid-other"})
    second.config = {"httpRoute": "web", "namespace": "shop"}
    second._router = first.router
    return first, second


def test_a_namesake_at_rest_leaves_the_other_rollouts_rule(namesakes: tuple[Shop, Shop]) -> None:
    """Its RemoveManagedRoutes and SetWeight of each reconcile write nothing."""
    first, second = namesakes
    first.header("canary")
    first.weight(20)
    second.status = AT_REST

    assert [] == _writes(second, second.remove)
    assert [] == _writes(second, lambda: second.weight(0))
    assert ["s=80 c=20", "s=100 c=0", "canary: c=1"] == first.rules()


def test_namesakes_have_a_rule_each(namesakes: tuple[Shop, Shop]) -> None:
    """Neither takes the other's over; at rest nothing is written, and each takes back its own."""
    first, second = namesakes
    for shop in namesakes:
        shop.header("canary")
        shop.weight(20)

    assert ["s=80 c=20", "s=80 c=20", "canary: c=1", "canary-1: c=1"] == first.rules()
    assert [] == _at_rest(first, second)
    first.remove()
    first.weight(0)
    assert ["s=100 c=0", "s=80 c=20", "/other"] == [*first.rules()[:2], _paths(first)[-1]]
    second.remove()
    second.weight(0)
    assert (["s=100 c=0", "s=100 c=0"], {}) == (first.rules(), first.ledger())


def test_without_a_ledger_nothing_moves(api: ApiServer, tmp_path: Path) -> None:
    """Whose rules stand behind ours is not known then; a rule that moves can cost requests."""
    rules = [rule(f"s{name}100 c{name}0", matches=_path(f"/{name}")) for name in "ab"]
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"].update(rules=rules))
    shops = []
    for name in "ab":
        services = {"stableService": f"s{name}", "canaryService": f"c{name}"}
        shops.append(_shop(api, tmp_path, f"to-{name}", metadata={"name": name, "uid": f"uid-{name}"}, canary=services))
    first, second = shops
    second._router = first.router
    for shop in shops:
        shop.header(shop.managed[0])
        shop.weight(20)
    before = first.rules()

    with api.deny("get", "configmaps"):
        assert [] == _at_rest(first, second)
        first.weight(30)
    assert ["sa=70 ca=30", *before[1:]] == first.rules()


def _writes(shop: Shop, call: Callable[[], object]) -> list[str]:
    """Return the writes of routes and ledger, not those of Events."""
    asked = [line for line in shop.requests(call) if not line.endswith(" events")]
    return [line for line in asked if line.startswith(("update", "create", "delete"))]


def _at_rest(first: Shop, second: Shop) -> list[str]:
    """Return what is written where both only say again what is so."""
    written = []
    for shop in (first, second, first):
        written += _writes(shop, partial(shop.weight, 20))
    return written


def _paths(shop: Shop) -> list[str]:
    rules = shop.api.read("HTTPRoute", "shop", "web")["spec"]["rules"]
    return [item["matches"][0]["path"]["value"] for item in rules]
