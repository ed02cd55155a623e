"""Which rules are ours: by record, by name where there is none, never by shape (decisions D7, D15, D30)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.routes.wanted import WEB
from tests.service.world import header_step, route, rule

from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.kinds import HTTP
from rollouts_gwapi_plugin.routes.managed import Claim, Owned, Purpose, base_name, is_generated, ownership
from rollouts_gwapi_plugin.routes.reconcile import Scope, set_managed_route, set_weight
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView
from rollouts_gwapi_plugin.routes.standing import take_apart

Json = dict[str, Any]
SCOPE = Scope(HTTP, takes_headers=True)
HEADER = SetHeaderRoute.model_validate(header_step("r1"))
MIRROR = SetMirrorRoute.model_validate({"name": "r1", "match": [{"method": {"exact": "GET"}}]})


def owners(value: Route, view: RecordView = NOTHING_RECORDED, desired: Desired = WEB, *setting: str) -> list[str]:
    """Return for each rule `purpose name`, or nothing for a user's."""
    found = ownership(Claim(value, desired, view, frozenset(), frozenset(setting)))
    return [f"{owner.purpose.value} {owner.name}" if owner else "" for owner in found]


def pruned(value: Route) -> Route:
    """Return the route as an API server before 1.4 stores it: without rule names."""
    return value.with_rules([item.without("name") for item in value.rules])


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("canary", "canary"),
        ("Canary_Header", "canary-header"),
        ("a.b-c", "a.b-c"),
        ("a-.-b", "a.b"),
        ("a..b", "a.b"),
        ("-x-", "x"),
        ("___", "managed"),
        ("", "managed"),
        ("ü", "managed"),
        ("a" * 300, "a" * 243),
    ],
)
def test_names_are_made_legal(name: str, base: str) -> None:
    """A DNS subdomain with room for a number (C51)."""
    assert base == base_name(name)
    assert is_generated(base, name)
    assert is_generated(f"{base}-1", name)
    assert not is_generated(f"{base}-0", name)
    assert not is_generated(f"{base}x", name)
    assert not is_generated(None, name)


def test_without_a_record_only_generated_names_with_only_the_canary_are_ours() -> None:
    """Other backends, other names, no name or no backends: the user's (C24, D7)."""
    value = parse_route(
        route(
            rule("s100 c0"),
            rule("c", name="r1"),
            rule("c1", name="r1-1"),
            rule("c x", name="r1-2"),
            rule("c", name="other"),
            rule("c"),
            {"name": "r1-3"},
        )
    )
    desired = replace(WEB, managed_names=("r1",))

    assert ["", "header r1", "header r1", "", "", "", ""] == owners(value, desired=desired)
    assert [""] * 7 == owners(value)
    assert [""] * 7 == owners(value, RecordView(known=True), desired)


def test_a_recorded_rule_of_another_shape_is_no_longer_ours() -> None:
    """Somebody put another Service behind the name: neither print nor shape fits."""
    view = _view(parse_route(route(rule("s100 c0"))), HEADER)
    taken = parse_route(route(rule("s100 c0"), rule("x", name="r1")))
    edited = parse_route(route(rule("s100 c0"), rule("c5", name="r1", matches=[{"method": "GET"}])))

    assert ["", ""] == owners(taken, view)
    assert ["", "header r1"] == owners(edited, view)


def _view(value: Route, *steps: SetHeaderRoute | SetMirrorRoute) -> RecordView:
    """Return what the ledger holds while the last of the steps is being written: the records of all (D6)."""
    view, now = NOTHING_RECORDED, value
    for step in steps:
        outcome = set_managed_route(now, step, WEB, view, SCOPE)
        view, now = RecordView(view.record.union(outcome.record), known=True), outcome.route
    return view


@pytest.mark.parametrize("steps", [(HEADER, MIRROR), (MIRROR, HEADER)], ids=["to-mirror", "to-header"])
def test_a_managed_route_that_becomes_another_kind_is_told_apart(steps: tuple[Any, Any]) -> None:
    """The process died between the route's write and the sweep: both records are there, of one name."""
    value = parse_route(route(rule("s100 c0")))
    view = _view(value, *steps)
    now = set_managed_route(
        set_managed_route(value, steps[0], WEB, NOTHING_RECORDED, SCOPE).route, steps[1], WEB, view, SCOPE
    ).route
    expected = ["mirror r1", ""] if isinstance(steps[1], SetMirrorRoute) else ["", "header r1"]

    assert expected == owners(now, view)
    after = set_weight(now, replace(WEB, weight=10), view, SCOPE)
    assert [item.name for item in now.rules] == [item.name for item in after.route.rules]
    assert isinstance(steps[1], SetMirrorRoute) == bool(after.record.mirrors)
    assert isinstance(steps[1], SetHeaderRoute) == bool(after.record.headers)


def test_a_mirror_rule_whose_target_somebody_changed_is_no_longer_ours() -> None:
    """It mirrors elsewhere now: a recorded name alone makes no rule ours."""
    value = parse_route(route(rule("s100 c0")))
    view = _view(value, MIRROR)
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "audit", "port": 80}}}
    changed = parse_route(route(rule("s100 c0", name="r1", filters=[mirror]), rule("s100 c0")))
    edited = parse_route(route(rule("s1 c1 x", name="r1", filters=[{**mirror, **_to_canary()}]), rule("s100 c0")))

    assert ["", ""] == owners(changed, view)
    assert ["mirror r1", ""] == owners(edited, view)


def _to_canary() -> Json:
    return {"requestMirror": {"backendRef": {"name": "c", "port": 80}}}


def test_names_that_become_equal_are_told_apart_by_the_record() -> None:
    """`Canary_A` and `canary-a` would both be `canary-a`; each is removed by its own name."""
    first, second = (SetHeaderRoute.model_validate(header_step(name, f"X-{name}")) for name in ("Canary-A", "canary-a"))
    value = parse_route(route(rule("s100 c0")))
    view = NOTHING_RECORDED
    for step in (first, second):
        outcome = set_managed_route(value, step, WEB, view, SCOPE)
        value, view = outcome.route, RecordView(outcome.record, known=True)

    assert [None, "canary-a", "canary-a-1"] == [item.name for item in value.rules]
    assert ["", "header Canary-A", "header canary-a"] == owners(value, view)
    gone = set_managed_route(value, SetHeaderRoute(name="Canary-A"), WEB, view, SCOPE)
    assert ["canary-a"] == list(gone.record.headers)


def test_the_longest_name_is_meant_where_there_is_no_record() -> None:
    """`r1-1` can be the second rule of `r1` or the first of `r1-1`; the order of the names does not matter."""
    value = parse_route(route(rule("s100 c0"), rule("c", name="r1"), rule("c", name="r1-1")))
    for names in (("r1", "r1-1"), ("r1-1", "r1")):
        assert ["", "header r1", "header r1-1"] == owners(value, desired=replace(WEB, managed_names=names))


def test_unnamed_rules_are_found_by_their_prints() -> None:
    """Where the CRD prunes names; of equal rules ours is the one on the side where we put it (C34)."""
    value = parse_route(route(rule("s100 c0"), rule("s0 c100", matches=[{"method": "PUT"}])))
    outcome = set_managed_route(value, HEADER, WEB, NOTHING_RECORDED, SCOPE)
    view = RecordView(outcome.record, known=True)
    alike = pruned(outcome.route)
    with_twins = alike.with_rules([alike.rules[2], *alike.rules])

    assert ["", "", "header r1", "header r1"] == owners(alike, view)
    assert ["", "", "", "header r1", "header r1"] == owners(with_twins, view)
    first = replace(WEB, managed_first=True)
    assert ["header r1", "", "", "", "header r1"] == owners(with_twins, view, first)
    assert ["", "", "", ""] == owners(alike)


def test_unnamed_rules_that_are_kept_keep_their_names_in_the_record() -> None:
    """Heal can't make a managed route: what stands is recorded as before, one mark a rule, and found the next time."""
    value = parse_route(route(rule("s100 c0"), rule("s0 c100", matches=[{"method": "PUT"}])))
    outcome = set_managed_route(value, HEADER, WEB, NOTHING_RECORDED, SCOPE)
    view = RecordView(outcome.record, known=True)
    broken = SetHeaderRoute.model_validate({"name": "r2", "match": [{"headerName": "", "headerValue": {"exact": "1"}}]})
    healing = replace(WEB, heal=True, steps={"r2": broken})
    kept = set_weight(pruned(outcome.route), healing, view, SCOPE)

    assert ["ManagedRouteNotRestored"] == [note.reason for note in kept.notes]
    assert outcome.record == kept.record
    assert ["", "", "header r1", "header r1"] == owners(kept.route, RecordView(kept.record, known=True))


def test_a_rule_that_is_set_is_taken_over_by_name() -> None:
    """Also where the ledger knows this Rollout, since the Go plugin may have made it (D15)."""
    value = parse_route(route(rule("s100 c0"), rule("c", name="r1")))

    assert ["", ""] == owners(value, RecordView(known=True), replace(WEB, managed_names=("r1",)))
    assert ["", "header r1"] == owners(value, RecordView(known=True), WEB, "r1")


def test_a_mirror_rule_is_known_by_name_pair_and_target() -> None:
    """Without the pair, or with another target, it is the user's."""
    mirror = [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "c", "port": 80}}}]
    other = [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "x", "port": 80}}}]
    value = parse_route(
        route(
            rule("s70 c30", name="m", filters=mirror),
            rule("s70 c30", name="m-1", filters=other),
            rule("s70", name="m-2", filters=mirror),
            rule("s70 c30", name="m-3", filters=[{"type": "RequestMirror", "requestMirror": None}]),
            rule("s100 c0"),
        )
    )

    assert ["mirror m", "", "", "", ""] == owners(value, desired=replace(WEB, managed_names=("m",)))


OLD = rule("c0", matches=[{"headers": [{"name": "x-test", "value": "1"}, {"name": "own", "value": "2"}]}])


@pytest.mark.parametrize(
    ("item", "legacy", "found"),
    [
        (OLD, {"r1": 1}, True),
        (OLD, {"r1": 0}, False),
        (OLD, {"r1": 7}, False),
        (OLD, {"r1": -1}, False),
        (OLD, {"of another Rollout": 1}, False),
        ({**OLD, "name": "users"}, {"r1": 1}, False),
        (rule("c0 x1", matches=OLD["matches"]), {"r1": 1}, False),
        (rule("c0"), {"r1": 1}, False),
        (rule("c0", matches=[*OLD["matches"], {"method": "GET"}]), {"r1": 1}, False),
    ],
)
def test_the_go_plugins_index_is_believed_only_where_the_rule_fits(
    item: Json,
    legacy: dict[str, int],
    found: bool,  # noqa: FBT001 - a table
) -> None:
    """No name, only the canary, every match with every header of the step; such entries can be years old (D30)."""
    value = parse_route(route(rule("s100 c0"), item))
    desired = replace(WEB, managed_names=("r1",), all_steps=(SetHeaderRoute(name="r1"), HEADER))

    assert ["", "header r1" if found else ""] == owners(value, RecordView(legacy=legacy), desired)


@pytest.mark.parametrize(
    ("asked", "value"), [({"exact": "v"}, "v"), ({"prefix": "v."}, "v..*"), ({"regex": "v.+"}, "v.+"), (None, "")]
)
def test_the_go_plugins_values_are_spelled_its_way(asked: Any, value: str) -> None:
    """A prefix was not escaped."""
    entry = {"headerName": "X", "headerValue": asked}
    step = SetHeaderRoute.model_validate({"name": "r1", "match": [entry]})
    old = rule("c0", matches=[{"headers": [{"name": "x", "value": value}]}])
    desired = replace(WEB, managed_names=("r1",), all_steps=(step,))

    assert ["header r1"] == owners(parse_route(route(old)), RecordView(legacy={"r1": 0}), desired)


def test_routes_of_other_kinds_have_no_managed_rules() -> None:
    """A TCPRoute's rule is never ours, whatever its name."""
    tcp = parse_route(route(rule("c", name="r1"), kind="TCPRoute"))
    standing = take_apart(tcp, replace(WEB, managed_names=("r1",)), NOTHING_RECORDED, Scope(HTTP).kind)
    plain = take_apart(tcp, replace(WEB, managed_names=("r1",)), NOTHING_RECORDED, replace(HTTP, match=None))

    assert [Owned(Purpose.HEADER, "r1")] == list(standing.owners)
    assert [None] == list(plain.owners)
