"""The Go plugin's old ConfigMap entries, which are not by Rollout (decision D30)."""

import json
from pathlib import Path
from typing import Any

from tests.service.world import LEDGER, Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

OLD_KEY = "httpManagedRoutes"
Json = dict[str, Any]


def old_rule(canary: str, value: str) -> Json:
    """Make a rule as the Go plugin up to 0.12 made it: no name, the step's header, only the canary."""
    match = {"headers": [{"name": "X-Test", "value": value}]}
    return rule(f"{canary}1", matches=[match])


def two_rollouts(api: ApiServer, tmp_path: Path, rules: list[Json], entries: Json, second: str = "beta") -> list[Shop]:
    """Make the route with the old ConfigMap, and two Rollouts: `alpha` of s and c, `beta` of t and d."""
    api.update(route(*rules))
    api.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": LEDGER, "namespace": "shop"},
            "data": {OLD_KEY: json.dumps(entries)},
        }
    )
    steps = [{"setHeaderRoute": header_step(second, value="2")}]
    return [
        Shop(api, tmp_path, managed=["alpha"], steps=[{"setHeaderRoute": header_step("alpha")}]),
        Shop(
            api,
            tmp_path,
            managed=[second],
            steps=steps,
            metadata={"name": "api", "uid": "uid-api"},
            canary={"stableService": "t", "canaryService": "d"},
        ),
    ]


PAIRS = [rule("s100 c0"), rule("t100 d0")]


def old_entries(shop: Shop) -> Json:
    """Return what is left of the Go plugin's entries."""
    value: Json = json.loads(shop.ledger().get(OLD_KEY, "{}"))
    return value


def test_another_rollouts_entry_on_a_shared_route_moves_with_its_rule(api: ApiServer, tmp_path: Path) -> None:
    """A Rollout drops only its own entries; those behind a rule that it took away point at the same rule as before."""
    rules = [*PAIRS, old_rule("c", "1"), old_rule("d", "2")]
    first, second = two_rollouts(api, tmp_path, rules, {"alpha": {"web": 2}, "beta": {"web": 3, "other": 3}})

    first.remove()

    assert first.rules() == ["s=100 c=0", "t=100 d=0", "d=1"]
    assert old_entries(first) == {"beta": {"web": 2, "other": 3}}

    second.remove()

    assert first.rules() == ["s=100 c=0", "t=100 d=0"]
    assert old_entries(first) == {"beta": {"other": 3}}


def test_a_rule_that_is_put_before_it_moves_it_too(api: ApiServer, tmp_path: Path) -> None:
    """Also where the first Rollout takes its rule over, and puts a mirror before its source."""
    rules = [old_rule("c", "1"), *PAIRS, old_rule("d", "2")]
    first, second = two_rollouts(api, tmp_path, rules, {"alpha": {"web": 0}, "beta": {"web": 3}})
    mirror = {"setMirrorRoute": {"name": "m", "match": [{"method": {"exact": "GET"}}]}}
    first.managed, first.steps = ["alpha", "m"], [*first.steps, mirror]
    first.status = {**first.status, "currentStepIndex": 1}
    first.weight(20)

    place = old_entries(first)["beta"]["web"]
    assert api.read("HTTPRoute", "shop", "web")["spec"]["rules"][place]["backendRefs"][0]["name"] == "d"

    second.weight(30)
    second.remove()
    first.remove()

    assert first.rules() == ["s=80 c=20", "t=70 d=30"]
    assert first.ledger() == {}


def test_it_moves_although_the_record_met_a_conflict(api: ApiServer, tmp_path: Path) -> None:
    """The route is written, then the ledger is refused as stale: what has moved is not forgotten."""
    rules = [*PAIRS, old_rule("c", "1"), old_rule("d", "2")]
    first, second = two_rollouts(api, tmp_path, rules, {"alpha": {"web": 2}, "beta": {"web": 3}})
    api.faults.add(verb="update", plural="configmaps", status=409, times=2)
    first.remove()
    second.remove()

    assert first.rules() == ["s=100 c=0", "t=100 d=0"]
    assert first.ledger() == {}


def test_one_entry_of_two_rollouts_is_left_to_the_one_whose_rule_it_is(api: ApiServer, tmp_path: Path) -> None:
    """Equal names shared one entry: who finds another's rule there takes neither the rule nor the entry."""
    rules = [*PAIRS, old_rule("d", "2")]
    first, second = two_rollouts(api, tmp_path, rules, {"alpha": {"web": 2}}, second="alpha")

    first.remove()
    assert old_entries(first) == {"alpha": {"web": 2}}

    second.remove()
    assert first.rules() == ["s=100 c=0", "t=100 d=0"]
    assert first.ledger() == {}


def test_a_users_rule_at_the_place_is_never_taken(api: ApiServer, tmp_path: Path) -> None:
    """The Go plugin's rule is gone and the user's stands at its place, with the canary: it stays."""
    users = rule("c1", matches=[{"headers": [{"name": "X-Mine", "value": "1"}]}])
    first, _ = two_rollouts(api, tmp_path, [*PAIRS, users], {"alpha": {"web": 2}})
    first.remove()

    assert first.rules() == ["s=100 c=0", "t=100 d=0", "c=1"]
    assert first.ledger() == {}
