"""Cases that were reported of other kinds of route, on RouteTables, where they need the whole service.

C28 one of several broken; C85 a conflict; C86 nothing to write; C94 and C134 another process; C96 a route put first
between read and write; C97 the RouteTable is gone; C114 rights. The reconcilers' own are in `routes/cases/gloo`.
"""

import pytest
from tests.service.gloo.world import GlooShop, http, table

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.model.calls import Verification

GET = {"method": {"exact": "GET"}}


def test_a_conflict_is_read_and_computed_again(shop: GlooShop) -> None:
    """Two conflicts cost two more reads; the call succeeds."""
    shop.api.faults.add(plural="routetables", verb="update", status=409, times=2)

    done = shop.requests(lambda: shop.weight(30))

    assert shop.lines() == ["main: s=70 c=30"]
    assert done.count("update routetables") == 3


def test_a_conflict_without_end_is_an_error(shop: GlooShop) -> None:
    """The text names the RouteTable, and nothing was written."""
    shop.api.faults.add(plural="routetables", verb="update", status=409, times=1000)

    with pytest.raises(PluginError, match="shop/web"):
        shop.weight(30)
    assert shop.lines() == ["main: s=-"]


def test_the_same_call_again_writes_nothing(shop: GlooShop) -> None:
    """Of a hundred equal calls, with managed routes beside them, the first writes."""
    shop.managed = ["h", "m"]
    shop.header("h")
    shop.mirror("m", GET)
    shop.weight(30)

    def again() -> None:
        for _ in range(33):
            shop.header("h")
            shop.mirror("m", GET)
            shop.weight(30)

    assert {line.partition(" ")[0] for line in shop.requests(again)} <= {"get", "list"}


@pytest.mark.parametrize("at", [0, 20, 100])
def test_another_process_takes_everything_down(shop: GlooShop, at: int) -> None:
    """What one process set, another one without memory removes, and the RouteTable is as it was."""
    before = shop.live()["spec"]
    shop.managed = ["h", "m"]
    shop.header("h")
    shop.mirror("m", GET)
    shop.weight(at)
    shop.restart()

    shop.remove()
    assert shop.policies() == {}
    shop.status = {"stableRS": "old", "currentPodHash": "new", "abort": True}
    shop.weight(0)

    assert shop.live()["spec"] == before
    assert shop.kept() == {}
    assert shop.recorded() == {}


def test_a_route_that_is_put_first_meanwhile_stays(shop: GlooShop) -> None:
    """Between read and write somebody puts a route before ours: both are there, each with its own destinations."""
    left = [1]

    def meddle(request: object) -> None:
        if left and (getattr(request, "verb", ""), getattr(request, "plural", "")) == ("update", "routetables"):
            left.pop()
            live = shop.live()
            live["spec"]["http"].insert(0, http("other", "first"))
            shop.api.update(live)

    shop.api._api.before_write.append(meddle)
    shop.managed = ["h"]
    shop.header("h")
    shop.weight(30)

    assert left == []
    assert shop.lines() == ["first: other=-", "h: c=-", "main: s=70 c=30"]


def test_a_route_table_that_is_gone(shop: GlooShop) -> None:
    """Nothing is to be removed from it, so an abort goes on; weights can't be set, which is told with its name."""
    shop.managed = ["h"]
    shop.header("h")
    shop.api.delete("RouteTable", "shop", "web")

    shop.remove()

    assert shop.verify(0) is Verification.NOT_VERIFIED
    with pytest.raises(PluginError, match="RouteTable shop/web"):
        shop.weight(0)


def test_one_broken_of_several_does_not_hold_the_others(api: ApiServer, shop: GlooShop) -> None:
    """The sound RouteTables move, and the error names the one without the stable destination."""
    for name, routes in (("a", http("s")), ("b", http("other")), ("d", http("s"))):
        made = table(routes, name=name)
        made["metadata"]["labels"] = {"app": "web"}
        api.create(made)
    shop.configure(routeTableSelector={"labels": {"app": "web"}})

    with pytest.raises(PluginError, match="RouteTable shop/b"):
        shop.weight(30)

    assert [shop.lines(name) for name in "abd"] == [["s=70 c=30"], ["other=-"], ["s=70 c=30"]]


@pytest.mark.parametrize(
    ("verb", "plural", "group"),
    [
        ("update", "routetables", "networking.gloo.solo.io"),
        ("create", "mirrorpolicies", "trafficcontrol.policy.gloo.solo.io"),
    ],
)
def test_a_right_that_is_missing_is_named(shop: GlooShop, verb: str, plural: str, group: str) -> None:
    """The text has verb, resource and group; the RouteTable is as it was."""
    before = shop.live()["spec"]
    shop.managed = ["m"]
    with shop.api.deny(verb, plural), pytest.raises(PluginError) as refused:
        shop.mirror("m", GET)

    assert all(word in str(refused.value) for word in (verb, plural, group)), str(refused.value)
    assert shop.live()["spec"] == before
