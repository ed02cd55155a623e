"""Services that take turns, in a RouteTable: what was the canary's is stable's after a promotion (C108)."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.gloo.world import GlooShop, Json, http, put
from tests.service.world import service

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.model.calls import Verification

OTHER = {"ping": "pong", "pong": "ping"}
# Two destinations that differ in every field, one of them unknown to the plugin.
PONG = {"ref": {"name": "pong"}, "port": {"number": 8080}, "subset": {"tier": "a"}, "note": "pong's", "weight": 100}
PING = {"ref": {"name": "ping"}, "port": {"number": 80}, "subset": {"tier": "b"}, "weight": 0}


@pytest.fixture
def turns(shop: GlooShop, api: ApiServer) -> GlooShop:
    """Give a rollout with ping and pong, pong stable, in the middle of an update."""
    for name in OTHER:
        api.create(service(name))
    turning = {"pingService": "ping", "pongService": "pong"}
    shop.canary = {"pingPong": turning, "stableService": "", "canaryService": ""}
    begin(shop, "pong")
    return shop


def begin(shop: GlooShop, stable: str, **status: Any) -> None:
    """Let the controller begin an update."""
    shop.status = {"stableRS": "old", "currentPodHash": "new", "canary": {"stablePingPong": stable}, **status}


def rest(shop: GlooShop, stable: str) -> None:
    """Let the controller make its calls after the end of an update, or of an abort."""
    shop.status = {"stableRS": "new", "currentPodHash": "new", "canary": {"stablePingPong": stable}}
    shop.remove()
    shop.weight(0)


def two_turns(shop: GlooShop, *, restarts: bool = False) -> None:
    """Play two updates to the end, each after one that is aborted; pong is stable again then."""
    for stable in ("pong", "ping"):
        for weights in ((0, 20), (0, 20, 100)):
            begin(shop, stable)
            for weight in weights:
                shop.weight(weight)
                assert shop.verify(weight) is Verification.VERIFIED
                if restarts:
                    shop.restart()
            if weights[-1] < 100:
                begin(shop, stable, abort=True)
                shop.remove()
                shop.weight(0)
                assert traffic(shop) == {stable: 100}
        rest(shop, OTHER[stable])
        settled(shop, OTHER[stable])


def settled(shop: GlooShop, stable: str) -> None:
    """Check that all traffic is stable's, nothing is kept, and a second identical call writes nothing."""
    assert traffic(shop) == {stable: 100}
    assert shop.verify(0) is Verification.VERIFIED
    assert shop.kept() == {}
    version = shop.live()["metadata"]["resourceVersion"]
    shop.remove()
    shop.weight(0)
    assert shop.live()["metadata"]["resourceVersion"] == version


def pair(shop: GlooShop) -> list[Json]:
    """Return the destinations of the one route."""
    found: list[Json] = shop.live()["spec"]["http"][0]["forwardTo"]["destinations"]
    return found


def traffic(shop: GlooShop) -> dict[str, int]:
    """Return who gets how much of 100; a destination that is alone gets all."""
    there = pair(shop)
    shares = {raw["ref"]["name"]: 100 if len(there) == 1 else raw.get("weight", 0) for raw in there}
    return {name: share for name, share in shares.items() if share}


def sync(shop: GlooShop, route: Json) -> None:
    """Put the manifest's spec back, as GitOps does it: the annotation stays."""
    live = shop.live()
    live["spec"] = {**live["spec"], "http": [route]}
    shop.api.update(live)


def both() -> Json:
    """Make a route with two destinations that differ."""
    return {"name": "main", "forwardTo": {"destinations": [dict(PONG), dict(PING)]}}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("zero", ["remove", "keep"])
def test_each_destination_comes_back_as_it_was(turns: GlooShop, zero: str, *, restarts: bool) -> None:
    """Port, subset and unknown fields are those of the same Service, whichever is stable."""
    turns.configure(routeTableSelector={"name": "web"}, zeroWeight=zero)
    put(turns, both())
    before = turns.live()["spec"]

    begin(turns, "pong")
    for weight in (20, 100):
        turns.weight(weight)
    rest(turns, "ping")
    assert pair(turns) == [{**PONG, "weight": 0}, {**PING, "weight": 100}]
    settled(turns, "ping")
    begin(turns, "ping")
    turns.weight(100)
    rest(turns, "pong")
    two_turns(turns, restarts=restarts)

    assert turns.live()["spec"] == before


@pytest.mark.parametrize("route", [both(), http("pong100 ping0", "main")])
def test_promotion_at_weight_0_keeps_both(turns: GlooShop, route: Json) -> None:
    """With promote --full nothing was weighed when the Services take turns: both are the user's still."""
    put(turns, route)
    turns.weight(0)
    begin(turns, "pong", promoteFull=True)
    turns.remove()
    turns.weight(0)
    rest(turns, "ping")

    assert [(raw["ref"]["name"], raw["weight"]) for raw in pair(turns)] == [("pong", 0), ("ping", 100)]
    settled(turns, "ping")


@pytest.mark.parametrize("route", [both(), http("pong100 ping0", "main")])
def test_a_sync_at_rest_is_turned_round(turns: GlooShop, route: Json) -> None:
    """The manifest sends all to the Service that is stable no more; the next call sends it to the other."""
    put(turns, route)
    rest(turns, "ping")

    assert [(raw["ref"]["name"], raw["weight"]) for raw in pair(turns)] == [("pong", 0), ("ping", 100)]
    settled(turns, "ping")


@pytest.mark.parametrize("sets", [put, sync])
def test_a_sync_in_the_middle_ends_as_without_it(turns: GlooShop, sets: Callable[[GlooShop, Json], None]) -> None:
    """With what is kept of the manifest, or with that lost, too."""
    put(turns, both())
    rest(turns, "ping")
    begin(turns, "ping")
    for weight in (20, 100):
        turns.weight(weight)
        sets(turns, both())
        turns.weight(weight)
        assert turns.verify(weight) is Verification.VERIFIED
    rest(turns, "pong")

    assert pair(turns) == [PONG, PING]
    settled(turns, "pong")
