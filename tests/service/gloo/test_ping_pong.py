"""Services that take turns, in a RouteTable: what was the canary's is stable's after a promotion (C108)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.service.gloo.world import KEY, GlooShop, Json, http, put, table
from tests.service.world import service

from rollouts_gwapi_plugin.cli.main import run
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


def one(weight: int | None) -> Json:
    """Make a route with one destination, which says more than its name."""
    raw = {field: value for field, value in PONG.items() if field != "weight"}
    return {"name": "main", "forwardTo": {"destinations": [raw if weight is None else {**raw, "weight": weight}]}}


def renamed(route: Json, name: str) -> list[Json]:
    """Return the one destination as that of the other Service."""
    return [{**raw, "ref": {"name": name}} for raw in route["forwardTo"]["destinations"]]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("zero", ["remove", "keep"])
@pytest.mark.parametrize("weight", [None, 100])
def test_one_destination_goes_to_the_stable_one(
    turns: GlooShop, weight: int | None, zero: str, *, restarts: bool
) -> None:
    """The other one is made from it; after two turns the RouteTable is as it was."""
    turns.configure(routeTableSelector={"name": "web"}, zeroWeight=zero)
    put(turns, one(weight))
    before = turns.live()["spec"]

    two_turns(turns, restarts=restarts)

    assert turns.live()["spec"] == before


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("weight", [None, 100])
def test_one_destination_is_promoted_at_weight_0(turns: GlooShop, weight: int | None, *, restarts: bool) -> None:
    """Nothing was ever written when the Services take turns: the one that is there lost its pods."""
    put(turns, one(weight))
    before = turns.live()["spec"]
    for stable in ("pong", "ping"):
        begin(turns, stable, promoteFull=True)
        turns.remove()
        turns.weight(0)
        if restarts:
            turns.restart()
        rest(turns, OTHER[stable])
        assert pair(turns) == renamed(one(weight), OTHER[stable])
        settled(turns, OTHER[stable])

    assert turns.live()["spec"] == before


@pytest.mark.parametrize("sets", [put, sync])
@pytest.mark.parametrize("weight", [None, 100])
def test_one_destination_is_synced(turns: GlooShop, weight: int | None, sets: Callable[[GlooShop, Json], None]) -> None:
    """At rest and in the middle of an update, each time with the Service that is not stable."""
    put(turns, one(weight))
    rest(turns, "ping")
    sets(turns, one(weight))
    turns.weight(0)
    assert pair(turns) == renamed(one(weight), "ping")
    settled(turns, "ping")

    begin(turns, "ping")
    for asked in (20, 100):
        turns.weight(asked)
        sets(turns, one(weight))
        turns.weight(asked)
        assert traffic(turns) == {name: share for name, share in (("ping", 100 - asked), ("pong", asked)) if share}
        assert turns.verify(asked) is Verification.VERIFIED
    sets(turns, one(weight))
    begin(turns, "ping", abort=True)
    turns.weight(0)
    assert traffic(turns) == {"ping": 100}
    turns.weight(100)
    rest(turns, "pong")

    assert pair(turns) == one(weight)["forwardTo"]["destinations"]
    settled(turns, "pong")


def test_one_destination_keeps_its_place_among_others(turns: GlooShop) -> None:
    """Whichever Service is there, the others of the route come before and after it as the user wrote them."""
    put(turns, http("a10 pong60 x30", "main"))
    for stable, at_rest in (("pong", "main: a=10 ping=60 x=30"), ("ping", "main: a=10 pong=60 x=30")):
        begin(turns, stable)
        for weight in (50, 100):
            turns.weight(weight)
        rest(turns, OTHER[stable])
        assert turns.lines() == [at_rest]
        assert turns.kept() == {}


def test_what_the_configuration_says_of_a_destination_is_of_its_role(turns: GlooShop) -> None:
    """Stable's port is stable's, whichever Service that is."""
    turns.configure(
        routeTableSelector={"name": "web"},
        stableDestination={"port": {"number": 8080}},
        canaryDestination={"port": {"number": 80}},
    )
    put(turns, http("ping", "main"))
    turns.weight(20)

    found = {raw["ref"]["name"]: (raw["port"]["number"], raw["weight"]) for raw in pair(turns)}
    assert found == {"pong": (8080, 80), "ping": (80, 20)}


def test_without_turns_a_route_with_the_canary_alone_is_the_users(turns: GlooShop) -> None:
    """Only stable's destination makes a route take part (D10)."""
    turns.canary = {"stableService": "pong", "canaryService": "ping"}
    put(turns, http("pong", "main"), http("ping", "preview"))
    turns.weight(20)

    assert turns.lines() == ["main: pong=80 ping=20", "preview: ping=-"]


def test_simulate_and_lint_go_to_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Rollout with ping-pong and a RouteTable with one destination, offline."""
    containers = [{"name": "web", "image": "web", "ports": [{"containerPort": 80}]}]
    canary = {
        "pingPong": {"pingService": "ping", "pongService": "pong"},
        "steps": [{"setWeight": 20}, {"setWeight": 60}],
        "trafficRouting": {"plugins": {KEY: {"routeTableSelector": {"name": "web"}}}},
    }
    rollout = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
            "strategy": {"canary": canary},
        },
    }
    files = {"rollout": rollout, "table": table(http("pong100", "main"))}
    for name, found in files.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(found))

    assert run(["lint", str(tmp_path)]) == 0
    route = str(tmp_path / "table.yaml")
    assert run(["simulate", "--rollout", str(tmp_path / "rollout.yaml"), "--route", route]) == 0

    assert "promoted  SetWeight 0" in capsys.readouterr().out
