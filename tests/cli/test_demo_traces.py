"""What stands on the API is judged against the route as it was before."""

import json
from copy import deepcopy
from typing import Any

import pytest
import yaml

from rollouts_gwapi_plugin.cli.demo.traces import RouteTrace, ledger_entries, leftovers, told, trace, wrong_weights

BEFORE = yaml.safe_load("""
kind: HTTPRoute
metadata: {name: web, labels: {team: a}, resourceVersion: "1"}
spec:
  rules:
  - backendRefs:
    - {name: stable, port: 80, weight: 100}
    - {name: canary, port: 80, weight: 0}
    - {name: legacy, port: 80, weight: 1}
  - backendRefs: [{name: stable, port: 80}]
""")
PAIR = ("stable", "canary")


def changed(**changes: Any) -> RouteTrace:
    """Return the trace of the route with other weights, an experiment's backend or a further rule."""
    route = deepcopy(BEFORE)
    route["metadata"]["resourceVersion"] = "2"
    refs = route["spec"]["rules"][0]["backendRefs"]
    for ref in refs:
        ref["weight"] = changes.get(ref["name"], ref.get("weight", 1))
    refs += [{"name": name, "port": 80, "weight": 5} for name in changes.get("backends", [])]
    route["spec"]["rules"] += changes.get("rules", [])
    route["metadata"]["labels"] |= changes.get("labels", {})
    return trace(route, BEFORE, PAIR)


def test_what_is_told() -> None:
    """Weights are those of rules with the pair; what the user did not have is counted as added."""
    found = changed(stable=70, backends=["base"], rules=[{"backendRefs": [{"name": "canary", "port": 80}]}])

    assert found.name == "HTTPRoute web"
    assert [told(weights) for weights in found.weights] == ["stable 70, canary 0, legacy 1, base 5"]
    assert (found.added_rules, found.added_backends) == (1, 1)
    assert (changed().added_rules, changed().added_backends) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "asked", "wrong"),
    [
        ({"stable": 80, "canary": 20}, {"stable": 80, "canary": 20}, False),
        ({"stable": 80, "canary": 20, "legacy": 7}, {"stable": 80, "canary": 20}, False),
        ({"stable": 80, "canary": 0}, {"stable": 80, "canary": 20}, True),
        ({"stable": 95, "backends": ["base"]}, {"stable": 95, "canary": 0, "base": 5}, False),
        ({"stable": 95}, {"stable": 95, "canary": 0, "base": 5}, True),
    ],
)
def test_weights(changes: dict[str, Any], asked: dict[str, int], *, wrong: bool) -> None:
    """Each asked weight has to be there; other backends of the user may have any."""
    assert bool(wrong_weights(changed(**changes), asked)) == wrong


@pytest.mark.parametrize(
    ("changes", "under_weights", "when_done"),
    [
        ({}, False, False),
        ({"stable": 80, "canary": 20}, False, True),
        ({"labels": {"in-progress": "1"}}, False, True),
        ({"backends": ["base"]}, True, True),
        ({"rules": [{"backendRefs": []}]}, True, True),
    ],
)
def test_leftovers(changes: dict[str, Any], *, under_weights: bool, when_done: bool) -> None:
    """While weights are asked for only they and labels may differ, at the end nothing."""
    found = changed(**changes)

    assert bool(leftovers(found, BEFORE, done=False)) == under_weights
    assert bool(leftovers(found, BEFORE, done=True)) == when_done


def test_ledger() -> None:
    """Entries of the Rollout are counted over kinds and purposes; other keys and other Rollouts are not."""

    def value(**routes: list[str]) -> str:
        found = {name: {"uid": "u", "routes": {key: {} for key in listed}} for name, listed in routes.items()}
        return json.dumps({"version": 1, "rollouts": {f"shop/{name}": entry for name, entry in found.items()}})

    data = {
        "httpManagedHeaderRoutes": value(web=["a", "b"], other=["c"]),
        "grpcExperimentBackends": value(web=["d"]),
        "tcpExperimentBackends": value(other=["e"]),
        "routeTableManagedMirrorRoutes": value(web=["f"]),
        "httpManagedRoutes": "not ours",
    }

    assert ledger_entries([{"data": data}, {}], "shop/web") == 4
    assert ledger_entries([], "shop/web") == 0


TABLE = yaml.safe_load("""
kind: RouteTable
metadata: {name: web, resourceVersion: "1"}
spec:
  http:
  - name: health
    directResponse: {status: 200}
  - name: main
    forwardTo: {pathRewrite: /, destinations: [{ref: {name: stable}}]}
  tls:
  - forwardTo: {destinations: [{ref: {name: other}}]}
""")


def table(destinations: str, *added: Any, **metadata: Any) -> RouteTrace:
    """Return the trace of the RouteTable with other destinations in its route `main`, and further routes first."""
    route = deepcopy(TABLE)
    route["metadata"] |= {"resourceVersion": "2", **metadata}
    found = [text.partition("=") for text in destinations.split()]
    route["spec"]["http"][1]["forwardTo"]["destinations"] = [
        {"ref": {"name": name}, **({"weight": int(weight)} if weight else {})} for name, _, weight in found
    ]
    route["spec"]["http"][:0] = added
    return trace(route, TABLE, PAIR)


HEADER_ROUTE = {"name": "testers", "forwardTo": {"destinations": [{"ref": {"name": "canary"}}]}}


def test_what_is_told_of_a_route_table() -> None:
    """What is not in a route has no share; the pair is never counted as added, a managed route and others are."""
    found = table("stable=70 canary=25 base=5", HEADER_ROUTE)

    assert [told(weights) for weights in found.weights] == ["stable 70, canary 25, base 5"]
    assert (found.added_rules, found.added_backends) == (1, 1)
    assert [told(weights) for weights in table("canary").weights] == ["stable 0, canary 100"]
    # Gloo refuses it, and what stands there is told.
    assert [told(weights) for weights in table("stable=100 canary=0").weights] == ["stable 100, canary 0"]
    assert [told(weights) for weights in table("stable=90 canary=20").weights] == ["stable 90, canary 20"]
    assert (table("stable").added_rules, table("stable").added_backends) == (0, 0)


@pytest.mark.parametrize(
    ("destinations", "canary", "wrong"),
    [
        ("stable", 0, False),
        ("stable=80 canary=20", 20, False),
        ("stable=90 canary=10", 20, True),
        ("canary", 100, False),
        ("stable", 100, True),
    ],
)
def test_weights_of_a_route_table(destinations: str, canary: int, *, wrong: bool) -> None:
    """What is absent is zero."""
    assert bool(wrong_weights(table(destinations), {"stable": 100 - canary, "canary": canary})) == wrong


@pytest.mark.parametrize(
    ("found", "under_weights", "when_done"),
    [
        (table("stable"), False, False),
        (table("stable=80 canary=20"), False, True),
        (table("stable canary"), False, True),
        (table("stable", annotations={"kept": "1"}), False, True),
        (table("stable=95 base=5"), True, True),
        (table("stable", HEADER_ROUTE), True, True),
    ],
)
def test_leftovers_of_a_route_table(found: RouteTrace, *, under_weights: bool, when_done: bool) -> None:
    """While weights are asked for only the pair's destinations may differ, at the end nothing."""
    assert bool(leftovers(found, TABLE, done=False)) == under_weights
    assert bool(leftovers(found, TABLE, done=True)) == when_done
