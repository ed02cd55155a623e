"""What the reconcilers answer beside routes: reasons to read the ledger, whose weights, problems (D8, D29, D31)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.routes.wanted import WEB
from tests.service.world import header_step, route, rule

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.desired import Desired, Destination, ServicePort
from rollouts_gwapi_plugin.routes.kinds import HTTP, TCP
from rollouts_gwapi_plugin.routes.mirror import percent_sample, rules_of
from rollouts_gwapi_plugin.routes.reconcile import (
    Scope,
    adds,
    give_back,
    is_at,
    services_needed,
    set_managed_route,
    set_weight,
    shows_traces,
)
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView, RouteRecord

DESIRED = replace(WEB, weight=20)
SCOPE = Scope(HTTP, takes_headers=True)
HEADER = SetHeaderRoute.model_validate(header_step("r1"))
MIRROR = SetMirrorRoute.model_validate({"name": "m", "match": [{"method": {"exact": "GET"}}]})
TO_CANARY = [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "c", "port": 80}}}]


def made(*rules: Any, **options: Any) -> Route:
    """Make a route."""
    return parse_route(route(*rules, **options))


@pytest.mark.parametrize(
    ("item", "shows"),
    [
        (rule("s c"), False),
        (rule("s"), False),
        (rule("x y"), False),
        ({}, False),
        (rule("c"), True),
        (rule("c c"), True),
        (rule("s c x"), True),
        (rule("s x"), False),
        (rule("s c", filters=TO_CANARY), True),
        (rule("x", filters=TO_CANARY), True),
        ({"backendRefs": [{"name": "c", "namespace": "elsewhere"}]}, False),
    ],
)
def test_what_on_a_route_can_be_ours(item: Any, shows: bool) -> None:  # noqa: FBT001 - a table
    """A rule with only the canary, a mirror to it, a backend beside the pair: else the ledger is not read (D8)."""
    assert shows == shows_traces(made(item), DESIRED)


@pytest.mark.parametrize(
    ("rules", "rule_name", "yes"),
    [
        ([rule("s70 c30")], "", True),
        ([rule("s70 c30"), rule("c1"), rule("s1")], "", True),
        ([rule("s70 c30"), rule("s50 c50")], "", False),
        ([rule("s70 c30", name="main"), rule("s50 c50")], "main", True),
        ([rule("c30")], "", False),
        ([], "", False),
    ],
)
def test_whether_the_live_weights_are_these(rules: Any, rule_name: str, yes: bool) -> None:  # noqa: FBT001 - a table
    """Every rule with the pair counts, and only those (D29)."""
    assert yes == is_at(made(*rules), replace(DESIRED, rule_name=rule_name), 30)


def test_what_is_added_must_be_recorded_first() -> None:
    """A new rule, or a new backend; changed weights are neither (D6)."""
    before = made(rule("s100 c0"))
    header = set_managed_route(before, HEADER, DESIRED, NOTHING_RECORDED, SCOPE)
    ports = (ServicePort("", 80),)
    experiment = replace(DESIRED, destinations=(Destination("b", 5, ports),))

    assert adds(before, header)
    assert adds(before, set_weight(before, experiment, NOTHING_RECORDED, SCOPE))
    assert not adds(before, set_weight(before, DESIRED, NOTHING_RECORDED, SCOPE))
    assert not adds(header.route, set_weight(header.route, DESIRED, RecordView(header.record, known=True), SCOPE))


def test_the_services_that_must_be_read() -> None:
    """Those that some weighted rule lacks; with ruleName only that rule's (D31)."""
    value = made(rule("s c b", name="main"), rule("s c", name="other"))
    desired = replace(DESIRED, destinations=(Destination("b", 5), Destination("k", 5, ())))

    assert () == services_needed(value, DESIRED, NOTHING_RECORDED, SCOPE)
    assert ("b",) == services_needed(value, desired, NOTHING_RECORDED, SCOPE)
    assert () == services_needed(value, replace(desired, rule_name="main"), NOTHING_RECORDED, SCOPE)


def test_a_kind_without_matches_has_weights_only() -> None:
    """Heal is nothing for it, whatever the steps say."""
    value = made(rule("s100 c0"), kind="TCPRoute")
    healing = replace(DESIRED, heal=True, steps={"r1": HEADER}, managed_names=("r1",))
    outcome = set_weight(value, healing, NOTHING_RECORDED, Scope(TCP, takes_headers=True))

    assert [[80, 20]] == [[ref.weight for ref in item.backends] for item in outcome.route.rules]
    assert outcome.record.empty
    assert () == outcome.notes


def test_a_percentage_that_can_not_be_kept_is_left_out_of_heal() -> None:
    """The weight is set, the mirror route is not restored, and that is told (D18)."""
    step = MIRROR.model_copy(update={"percentage": 30})
    healing = replace(DESIRED, heal=True, steps={"m": step}, managed_names=("m",))
    blind = replace(SCOPE, keeps_mirror_percent=False, percent_doubt="nobody knows whether it is kept")
    outcome = set_weight(made(rule("s100 c0")), healing, NOTHING_RECORDED, blind)

    assert 1 == len(outcome.route.rules)
    assert ["ManagedRouteNotRestored"] == [note.reason for note in outcome.notes]
    assert "asks to mirror 30 %, but nobody knows whether it is kept" in outcome.notes[0].text


@pytest.mark.parametrize("percentage", [-1, 101])
def test_a_percentage_that_is_none_is_refused(percentage: int) -> None:
    """By its field."""
    step = MIRROR.model_copy(update={"percentage": percentage})

    with pytest.raises(RouteError, match=rf"setMirrorRoute m\.percentage: {percentage} is not between 0 and 100"):
        set_managed_route(made(rule("s100 c0")), step, DESIRED, NOTHING_RECORDED, SCOPE)


def _kept() -> tuple[Route, Desired]:
    """Return a route with managed rules whose step nobody knows, as where the ledger is out of reach."""
    value = made(rule("s100 c0"))
    view = NOTHING_RECORDED
    for step in (HEADER, MIRROR):
        outcome = set_managed_route(value, step, DESIRED, view, SCOPE)
        value, view = outcome.route, RecordView(outcome.record, known=True)
    return value, replace(DESIRED, managed_names=("r1", "m"), keep_managed=True)


def test_rules_that_are_kept_follow_in_their_weights() -> None:
    """A mirror rule answers as its source does, also without its record; a header rule stays as it is (D12)."""
    value, desired = _kept()
    outcome = set_weight(value, desired, NOTHING_RECORDED, SCOPE)
    weights = {item.name: [(ref.name, ref.effective_weight) for ref in item.backends] for item in outcome.route.rules}

    assert {
        "m": [("s", 80), ("c", 20)],
        None: [("s", 80), ("c", 20)],
        "r1": [("c", 1)],
        "r1-1": [("c", 1)],
    } == weights


def test_header_rules_that_are_kept_go_where_header_routes_are_switched_off() -> None:
    """What they are is known by their shape."""
    value, desired = _kept()
    outcome = set_weight(value, desired, NOTHING_RECORDED, replace(SCOPE, takes_headers=False))

    assert ["m", None] == [item.name for item in outcome.route.rules]


def test_a_kept_mirror_rule_without_room_for_an_experiment_is_a_problem_of_the_experiment() -> None:
    """Its source has room, since the user took backends off it; the canary is lowered all the same (D31)."""
    value, desired = _kept()
    many = [{"name": "x" * index, "port": 80} for index in range(1, 15)]
    full = value.rules[0].with_backends([*value.rules[0].backends, *made({"backendRefs": many}).rules[0].backends])
    crowded = value.with_rules([full, *value.rules[1:]])
    ports = (ServicePort("", 80),)
    experiment = replace(desired, destinations=(Destination("b", 5, ports),))

    with pytest.raises(RouteError, match="HTTPRoute shop/web: a rule would have 17 backendRefs"):
        set_weight(crowded, experiment, NOTHING_RECORDED, SCOPE)
    raised = set_weight(crowded, replace(desired, weight=50), NOTHING_RECORDED, SCOPE).route
    lowered = set_weight(raised, experiment, NOTHING_RECORDED, SCOPE)
    assert "17 backendRefs" in str(lowered.problem)
    assert [80, 20] == [ref.weight for ref in lowered.route.rules[1].backends]


def test_a_route_without_the_named_rule_is_given_back_all_the_same() -> None:
    """Label, rules and experiments go; there are no weights to give back."""
    record = RouteRecord(experiments=(("", "Service", "shop", "b"),))
    value = made(rule("s70 c30 b5", name="other"))
    outcome = give_back(value, replace(DESIRED, rule_name="main"), RecordView(record), SCOPE, weights=True)

    assert [("s", 70), ("c", 30)] == [(ref.name, ref.weight) for ref in outcome.route.rules[0].backends]
    assert outcome.record.empty


@pytest.mark.parametrize("raw", [{}, {"spec": None}, {"spec": 5}, {"spec": {"rules": None}}, {"spec": {"rules": "x"}}])
def test_the_sample_of_a_strange_route_is_the_route(raw: Any) -> None:
    """It is only tried, and before the route is read at all."""
    assert [] == rules_of(raw)
    assert percent_sample(raw) is raw


def test_the_sample_has_a_percentage_in_the_first_rule_with_a_backend() -> None:
    """All else of the route stays, and the route itself is not changed."""
    rules: list[Any] = [
        None,
        {},
        {"backendRefs": [5]},
        {"name": "n", "backendRefs": [{"name": "s", "port": 80, "weight": 1}], "filters": [{"type": "X"}]},
        {},
    ]
    raw = {"kind": "HTTPRoute", "spec": {"parentRefs": [], "rules": rules}}
    sample = percent_sample(raw)
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "s", "port": 80}, "percent": 50}}

    assert {**rules[3], "filters": [{"type": "X"}, mirror]} == sample["spec"]["rules"][3]
    assert [*rules[:3], rules[4]] == [*sample["spec"]["rules"][:3], sample["spec"]["rules"][4]]
    assert [{"type": "X"}] == raw["spec"]["rules"][3]["filters"]  # type: ignore[index]


def test_a_destination_that_can_not_be_had_is_an_error_unless_the_canary_is_lowered() -> None:
    """What the service found out about it is the text, with the route's name (D31)."""
    value = made(rule("s90 c10"))
    problem = replace(DESIRED, destinations=(Destination("b", 5),), destination_problem="Service b is missing")

    with pytest.raises(RouteError, match=r"^HTTPRoute shop/web: Service b is missing$"):
        set_weight(value, problem, NOTHING_RECORDED, SCOPE)
    lowered = set_weight(value, replace(problem, weight=5), NOTHING_RECORDED, SCOPE)
    assert "HTTPRoute shop/web: Service b is missing" == str(lowered.problem)
    assert [95, 5] == [ref.weight for ref in lowered.route.rules[0].backends]
