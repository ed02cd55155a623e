"""What must hold for any route and any sequence of calls (semantics 7), told by a model that knows no reconciler.

| invariant | what |
| --- | --- |
| W1, W2, W3 | weights of pairs, of managed header rules, never only zeros |
| W4 | a call made twice changes nothing the second time |
| U1, U2 | the user's part is never changed, and all of ours goes |
| M1, M5 | managed rules are those asked for, with legal names, inside the API's limits |
| V1, V2 | VerifyWeight's view of the weights, which changes nothing |
| G1 | both wires give the same wanted state |

Managed routes are named `m-…`, experiment Services `exp-…`: no rule or Service of the drawn routes is.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gob_view import through_gob
from tests.routes.wanted import WEB_MANAGED
from tests.strategies import L7_KINDS, Json, header_steps, mirror_steps, rollouts, routes

from rollouts_gwapi_plugin.errors import ConfigError, RouteError
from rollouts_gwapi_plugin.model.calls import WeightCall
from rollouts_gwapi_plugin.model.config import parse_config
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.desired import Desired, Destination, Label, ServicePort, base_desired
from rollouts_gwapi_plugin.routes.kinds import KINDS
from rollouts_gwapi_plugin.routes.ledger import Ledger
from rollouts_gwapi_plugin.routes.limits import MAX_HEADERS, MAX_MATCHES_OF_ROUTE, MAX_RULES
from rollouts_gwapi_plugin.routes.reconcile import (
    Outcome,
    Scope,
    remove_managed_routes,
    set_managed_route,
    set_weight,
    wrong_weights,
)

LEGAL_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# Every port that the drawn pairs use: experiments fit everywhere.
PORTS = tuple(ServicePort("", port) for port in (80, 8080, 8443))
ROLLOUT = WEB_MANAGED.rollout
LABEL = Label("rollouts.argoproj.io/gatewayapi-canary", "in-progress")


@dataclass
class Life:
    """A route and its Rollout's records, from call to call."""

    route: Route
    scope: Scope
    base: Desired
    ledger: Ledger

    @classmethod
    def of(cls, raw: Json, maximum: int = 100) -> "Life":
        """Begin with a user's route."""
        kind = KINDS[raw["kind"].removesuffix("Route").lower()]
        base = replace(WEB_MANAGED, weight=0, max_weight=maximum, label=LABEL)
        return cls(parse_route(raw), Scope(kind, takes_headers=True), base, Ledger(kind.family))

    def call(self, call: Mapping[str, Any]) -> Outcome:
        """Make one call; a refused one changes nothing, and is raised."""
        view = self.ledger.view(ROLLOUT, "web")
        if "weight" in call:
            outcome = set_weight(self.route, self.wanted(call), view, self.scope)
        elif "step" in call:
            outcome = set_managed_route(self.route, call["step"], self.base, view, self.scope)
        else:
            outcome = remove_managed_routes(self.route, self.base, view, self.scope)
        self.route = outcome.route
        self.ledger = self.ledger.with_record(ROLLOUT, "uid", "web", outcome.record)
        return outcome

    def wanted(self, call: Mapping[str, Any]) -> Desired:
        """Return what a weight call wants."""
        shares = call.get("destinations", {})
        destinations = tuple(Destination(name, share, PORTS) for name, share in shares.items())
        return replace(self.base, weight=call["weight"], destinations=destinations)

    def wrong(self, call: Mapping[str, Any]) -> str:
        """Return what VerifyWeight finds."""
        return wrong_weights(self.route, self.wanted(call), self.ledger.view(ROLLOUT, "web"), self.scope)


@st.composite
def calls(draw: st.DrawFn, kind: str, maximum: int = 100) -> list[dict[str, Any]]:
    """Draw a sequence of calls; kinds without matches get weights and removals."""
    made: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 5))):
        what = draw(st.sampled_from(["weight", "weight", "header", "mirror", "unset", "remove"]))
        if what == "weight" or (kind not in L7_KINDS and what != "remove"):
            names = draw(st.lists(st.sampled_from(["exp-a", "exp-b"]), unique=True, max_size=2))
            shares = {name: draw(st.integers(0, maximum // 2)) for name in names}
            made.append({"weight": draw(st.integers(0, maximum)), "destinations": shares})
        elif what == "header":
            made.append({"step": SetHeaderRoute.model_validate(draw(header_steps("m-h")))})
        elif what == "mirror":
            made.append({"step": SetMirrorRoute.model_validate(draw(mirror_steps("m-m", kind)))})
        elif what == "unset":
            made.append({"step": SetHeaderRoute(name=draw(st.sampled_from(["m-h", "m-m"])))})
        else:
            made.append({})
    return made


@st.composite
def lives(draw: st.DrawFn) -> tuple[Json, int, list[dict[str, Any]]]:
    """Draw a route, a maximum, and calls."""
    raw, maximum = draw(routes()), draw(st.sampled_from([100, 100, 7, 1000]))
    return raw, maximum, draw(calls(raw["kind"], maximum))


# The model


def is_managed(rule: Json) -> bool:
    """Whether a rule is ours, by its name."""
    return str(rule.get("name", "")).startswith("m-")


def names_of(rule: Json) -> list[str]:
    """Return the names behind a rule."""
    return [ref["name"] for ref in rule.get("backendRefs") or []]


def is_weighted(rule: Json) -> bool:
    """Whether a rule has the pair."""
    return {"s", "c"} <= set(names_of(rule))


def weights_of(rule: Json, name: str) -> list[int]:
    """Return the weights of a Service behind a rule."""
    return [ref.get("weight", 1) for ref in rule["backendRefs"] if ref["name"] == name]


def user_part(raw: Json) -> Json:
    """Return a route without what is ours: managed rules, experiments, weights of pairs, label and annotation (U1)."""
    value = deepcopy(raw)
    value["spec"]["rules"] = [rule for rule in value["spec"]["rules"] if not is_managed(rule)]
    for rule in value["spec"]["rules"]:
        if "backendRefs" in rule:
            rule["backendRefs"] = [ref for ref in rule["backendRefs"] if not ref["name"].startswith("exp-")]
        for ref in rule.get("backendRefs", []) if is_weighted(rule) else []:
            if ref["name"] in {"s", "c"}:
                ref["weight"] = "ours"
    for field, key in (("labels", LABEL.key), ("annotations", "rollouts.argoproj.io/gatewayapi-canary-rollouts")):
        kept = {name: text for name, text in (value["metadata"].get(field) or {}).items() if name != key}
        value["metadata"][field] = kept
    return value


def check_weights(raw: Json, maximum: int, call: Mapping[str, Any]) -> None:
    """W1 and W2: every rule with the pair is split as asked, experiments for each of stable's backends."""
    stable = max(0, maximum - call["weight"] - sum(call["destinations"].values()))
    for rule in raw["spec"]["rules"]:
        if not is_weighted(rule):
            assert not any(name.startswith("exp-") for name in names_of(rule)), "E1"
            continue
        assert {call["weight"]} == set(weights_of(rule, "c")), "W1"
        assert {stable} == set(weights_of(rule, "s")), "W1"
        count = len(weights_of(rule, "s"))
        for name in ("exp-a", "exp-b"):
            share = call["destinations"].get(name)
            assert ([] if share is None else [share] * count) == weights_of(rule, name), "W1"
        assert any(ref.get("weight", 1) for ref in rule["backendRefs"]), "W2"


def check_managed(raw: Json, kind: str) -> None:
    """W3 and M5: shape of managed rules, names, limits."""
    rules = raw["spec"]["rules"]
    names = [rule["name"] for rule in rules if rule.get("name") is not None]
    assert len(names) == len(set(names)), "M5: names"
    assert len(rules) <= MAX_RULES, "M5: rules"
    for rule in filter(is_managed, rules):
        assert kind in L7_KINDS
        assert LEGAL_NAME.fullmatch(rule["name"]), "M5: names"
        mirrors = [item for item in rule.get("filters", []) if "requestMirror" in item]
        if rule["name"].startswith("m-h"):
            assert ["c"] == names_of(rule), "W3"
            assert weights_of(rule, "c")[0] >= 1, "W3"
        else:
            assert is_weighted(rule), "W3"
            assert "c" == mirrors[-1]["requestMirror"]["backendRef"]["name"], "W3"
        for match in rule["matches"]:
            headers = [entry["name"].lower() for entry in match.get("headers", [])]
            assert len(headers) == len(set(headers)) <= MAX_HEADERS, "M5: headers"
    assert sum(len(rule.get("matches") or [{}]) for rule in rules) <= MAX_MATCHES_OF_ROUTE, "M5: matches"


@settings(max_examples=120)
@given(life=lives())
def test_every_call_holds_the_invariants(life: tuple[Json, int, list[dict[str, Any]]]) -> None:
    """W1 to W4, U1, M1, M5 after each call; a refused call leaves the route alone."""
    raw, maximum, made = life
    now = Life.of(raw, maximum)
    standing: set[str] = set()
    for call in made:
        before = now.route
        try:
            now.call(call)
        except RouteError:
            assert now.route is before
            continue
        after = now.route.dump()
        if "weight" in call:
            check_weights(after, maximum, call)
        check_managed(after, raw["kind"])
        assert user_part(raw) == user_part(after), "U1"
        again = now.route
        outcome = now.call(call)
        assert outcome.route is again, "W4"
        standing = _standing(standing, call)
        found = {str(rule["name"])[:3] for rule in after["spec"]["rules"] if is_managed(rule)}
        assert found <= standing, "M1"


def _standing(before: set[str], call: Mapping[str, Any]) -> set[str]:
    """Return the managed routes that may stand after a call (M1)."""
    if "weight" in call:
        return before
    if "step" not in call:
        return set()
    rest = before - {call["step"].name}
    return rest | {call["step"].name} if call["step"].match else rest


@settings(max_examples=80)
@given(life=lives())
def test_all_of_ours_goes(life: tuple[Json, int, list[dict[str, Any]]]) -> None:
    """After Remove and SetWeight(0) the route is the user's, pairs at stable, and nothing is on record (U2)."""
    raw, maximum, made = life
    now = Life.of(raw, maximum)
    for call in made:
        try:
            now.call(call)
        except RouteError:
            continue
    now.call({})
    now.call({"weight": 0})
    wanted = deepcopy(raw)
    for rule in wanted["spec"]["rules"]:
        for ref in rule.get("backendRefs", []) if is_weighted(rule) else []:
            share = {"s": maximum, "c": 0}.get(ref["name"])
            # An absent weight is 1, so a wanted 1 is not written.
            if share is not None and share != ref.get("weight", 1):
                ref["weight"] = share

    assert wanted == _without_empty_maps(now.route.dump(), wanted)
    assert () == now.ledger.routes_of(ROLLOUT)


def _without_empty_maps(raw: Json, original: Json) -> Json:
    """Let an empty map of the user's be gone, never one with something in it."""
    for field in ("labels", "annotations"):
        if original["metadata"].get(field) == {}:
            raw["metadata"].setdefault(field, {})
    return raw


@settings(max_examples=60)
@given(life=lives(), data=st.data())
def test_verify_weight_knows_right_from_wrong(
    life: tuple[Json, int, list[dict[str, Any]]], data: st.DataObject
) -> None:
    """After SetWeight nothing is wrong; after any change of the pair's weights something is, and it is told (V1)."""
    raw, maximum, made = life
    now = Life.of(raw, maximum)
    call: dict[str, Any] = {"weight": 0, "destinations": {}}
    for other in made:
        try:
            now.call(other)
        except RouteError:
            continue
        call = other if "weight" in other else call
    now.call(call)
    good = now.wrong(call)
    edited = now.route.dump()
    pairs = [(rule, ref) for rule in edited["spec"]["rules"] if is_weighted(rule) for ref in rule["backendRefs"]]
    rule, ref = data.draw(st.sampled_from([(rule, ref) for rule, ref in pairs if ref["name"] in {"s", "c"}]))
    ref["weight"] = ref.get("weight", 1) + 1
    now.route = parse_route(edited)

    assert "" == good
    if not is_managed(rule):
        assert "HTTPRoute shop/web: rule" in now.wrong(call).replace(raw["kind"], "HTTPRoute")
    assert edited == now.route.dump()


def test_absent_experiments_are_told_as_such() -> None:
    """Not as a port that does not fit: VerifyWeight reads no Services."""
    now = Life.of({"kind": "HTTPRoute", "metadata": {"name": "web"}, "spec": {"rules": [_pair_rule()]}})
    call = {"weight": 20, "destinations": {"exp-a": 5}}
    desired = now.wanted(call)
    blind = replace(desired, destinations=(Destination("exp-a", 5),))
    now.call({"weight": 20})
    missing = wrong_weights(now.route, blind, now.ledger.view(ROLLOUT, "web"), now.scope)
    now.call(call)
    there = wrong_weights(now.route, blind, now.ledger.view(ROLLOUT, "web"), now.scope)

    assert "experiment backends exp-a are not on every weighted rule" in missing
    assert "" == there


def _pair_rule() -> Json:
    return {"backendRefs": [{"name": "s", "port": 80}, {"name": "c", "port": 80}]}


@settings(max_examples=100)
@given(rollout=rollouts(), weight=st.integers(0, 100))
def test_both_wires_give_the_same_wanted_state(rollout: Json, weight: int) -> None:
    """Whatever is zero in the Rollout, gob and JSON mean the same (G1)."""
    arguments = {"rollout": rollout, "desiredWeight": weight}
    config = parse_config({"httpRoute": "web"}, "argoproj-labs/gatewayAPI")
    found = []
    for call in (WeightCall.model_validate(arguments), through_gob("SetWeight", arguments)):
        try:
            found.append(str(base_desired(call.rollout, config)))
        except ConfigError as error:
            found.append(str(error))

    assert found[0] == found[1]


@pytest.mark.parametrize("maximum", [1, 2])
def test_the_smallest_maxima_leave_no_rule_at_zero(maximum: int) -> None:
    """Also where a weight of 1 equals the absent one (W2)."""
    now = Life.of({"kind": "HTTPRoute", "metadata": {"name": "web"}, "spec": {"rules": [_pair_rule()]}}, maximum)
    for weight in (0, maximum, 1, 0):
        call = {"weight": weight, "destinations": {}}
        now.call(call)
        check_weights(now.route.dump(), maximum, call)
