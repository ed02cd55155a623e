"""Who reaches what: requests through the reference Gateway before and after, for random routes and steps (M2, M3).

A request goes to a header route's canary just if it went to a rule with the pair before and has the step's headers; it
is mirrored just if it went to such a rule and the step matches it. Everybody else reaches what they reached before; all
by a rule with the filters of the rule that was theirs. The Gateway API's precedence ranks whole matches: where a rule
that is made from another one comes to rank above a third, `precedence.overtaken` must know of it, and only there may a
request change its rule (docs/header-routes.md).
"""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routes.cohorts import header_steps, mirror_holds, mirror_steps, sent_headers, step_holds
from tests.routes.wanted import WEB_MANAGED
from tests.service.world import route, rule

from rollouts_gwapi_plugin.embedded.dataplane.matching import RouteTable
from rollouts_gwapi_plugin.embedded.dataplane.request import HttpRequest
from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.kinds import HTTP
from rollouts_gwapi_plugin.routes.precedence import Placed, overtaken
from rollouts_gwapi_plugin.routes.reconcile import Scope, set_managed_route, set_weight
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView

Json = dict[str, Any]
SCOPE = Scope(HTTP, takes_headers=True)
NAMES = ("X-A", "x-b", "X-C")
PATHS = ("/", "/a", "/a/b", "/b")
PAIR = (("s", 70), ("c", 30))
CANARY = (("c", 1),)

headers = sent_headers(NAMES)


@st.composite
def matches(draw: st.DrawFn, prefix: str = "") -> Json:
    """Draw one match of a rule; `prefix` puts it on a path of its own."""
    result: Json = {
        "path": {"type": draw(st.sampled_from(["PathPrefix", "Exact"])), "value": prefix + draw(st.sampled_from(PATHS))}
    }
    if prefix:
        result["path"]["value"] = result["path"]["value"].rstrip("/")
    if draw(st.booleans()):
        result["method"] = draw(st.sampled_from(["GET", "POST"]))
    listed = [{"type": "Exact", "name": name, "value": value} for name, value in draw(headers)]
    if listed:
        result["headers"] = listed
    return result


@st.composite
def routes(draw: st.DrawFn) -> Json:
    """Draw a route: some rules with the pair, overlapping as they like, and others on paths of their own."""
    rules = [
        rule("s70 c30", matches=draw(st.lists(matches(), min_size=1, max_size=2)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    for _ in range(draw(st.integers(0, 2))):
        prefix = draw(st.sampled_from(["", "/own"]))
        rules.insert(draw(st.integers(0, len(rules))), rule("other", matches=[draw(matches(prefix))]))
    for number, item in enumerate(rules):
        item["filters"] = [{"type": "ExtensionRef", "extensionRef": {"name": str(number)}}]
    return route(*rules)


@st.composite
def requests(draw: st.DrawFn) -> HttpRequest:
    """Draw a request that has a chance to hit."""
    path = draw(st.sampled_from([*PATHS, "/a/b/c", "/own", "/own/a", "/ab"]))
    sent = tuple((name, value) for name, value in draw(headers))
    return HttpRequest(method=draw(st.sampled_from(["GET", "POST"])), path=path, headers=sent)


def desired(*, match_any: bool = False, first: bool = False) -> Desired:
    """Make what the calls here want."""
    return replace(WEB_MANAGED, match_any=match_any, managed_first=first)


def within(path: str, prefix: str) -> bool:
    """Whether the path is below the prefix, whole elements counted."""
    return f"{path.rstrip('/')}/".startswith(f"{prefix.rstrip('/')}/")


@dataclass(frozen=True)
class Reached:
    """What a request meets: the user's rule whose filters it goes through, the backends, and whether it is mirrored."""

    rule: int
    backends: tuple[tuple[str, int], ...]
    mirrored: bool = False

    @property
    def is_source(self) -> bool:
        """Whether the rule has the pair."""
        return self.backends == PAIR


def reached(raw: Json, request: HttpRequest) -> Reached | None:
    """Return what the request meets; None: no rule."""
    hit = RouteTable([raw]).match(request)
    if hit is None:
        return None
    filters = hit.rule.get("filters") or []
    mirrored = any("requestMirror" in item for item in filters)
    number = next(int(item["extensionRef"]["name"]) for item in filters if "extensionRef" in item)
    return Reached(number, tuple((ref["name"], ref.get("weight", 1)) for ref in hit.rule["backendRefs"]), mirrored)


def may_change(raw: Json, after: Route, before: Reached | None, now: Reached | None) -> bool:
    """Whether it is known that requests of the rule can be taken by what is made from the other one."""
    users = parse_route(raw).rules
    if before is None or now is None or before.rule == now.rule:
        return False
    originals = {str(number) for number in range(len(users))}
    made = [item for item in after.rules if item.name is not None]
    assert len(originals) + len(made) == len(after.rules)
    placed = []
    for item in made:
        assert item.filters is not None
        source = next(int(part["extensionRef"]["name"]) for part in item.filters if "extensionRef" in part)
        position = after.rules.index(item)
        behind = sum(1 for other in after.rules[:position] if other.name is None)
        placed.append(Placed(str(source), item, source, behind))
    return str(now.rule) in overtaken(users, (), placed, "HTTPRoute").get(before.rule, ())


def applied(raw: Json, *steps: SetHeaderRoute | SetMirrorRoute, wanted: Desired) -> Route | None:
    """Return the route with the steps set, or None where a step is refused (no source and step agree, a limit)."""
    now, view = parse_route(raw), NOTHING_RECORDED
    for step in steps:
        try:
            outcome = set_managed_route(now, step, wanted, view, SCOPE)
        except RouteError:
            return None
        now, view = outcome.route, RecordView(outcome.record, known=True)
    return now


@settings(max_examples=150)
@given(
    raw=routes(), step=header_steps(NAMES), asked=st.lists(requests(), min_size=1, max_size=12), match_any=st.booleans()
)
def test_a_header_route_takes_just_its_cohort(
    raw: Json,
    step: SetHeaderRoute,
    asked: list[HttpRequest],
    match_any: bool,  # noqa: FBT001 - drawn by name
) -> None:
    """The cohort of the step reaches the canary and only it; all others reach what they reached."""
    after = applied(raw, step, wanted=desired(match_any=match_any))
    for request in asked if after is not None else []:
        assert after is not None
        before, now = reached(raw, request), reached(after.dump(), request)
        cohort = before is not None and before.is_source and step_holds(step, request, match_any=match_any)
        wanted = replace(before, backends=CANARY) if cohort and before is not None else before

        assert wanted == now or may_change(raw, after, before, now)


@settings(max_examples=150)
@given(raw=routes(), step=mirror_steps(NAMES, PATHS), asked=st.lists(requests(), min_size=1, max_size=12))
def test_a_mirror_route_copies_just_what_it_says(raw: Json, step: SetMirrorRoute, asked: list[HttpRequest]) -> None:
    """Nobody's answer changes; what source and step both match is mirrored, nothing else."""
    after = applied(raw, step, wanted=desired())
    for request in asked if after is not None else []:
        assert after is not None
        before, now = reached(raw, request), reached(after.dump(), request)
        mirrored = before is not None and before.is_source and mirror_holds(step, request, within)
        wanted = None if before is None else replace(before, mirrored=mirrored)

        assert wanted == now or may_change(raw, after, before, now)


@settings(max_examples=80)
@given(
    raw=routes(),
    header=header_steps(NAMES),
    mirror=mirror_steps(NAMES, PATHS),
    asked=st.lists(requests(), min_size=1, max_size=12),
    mirror_first=st.booleans(),
)
def test_header_and_mirror_routes_together(
    raw: Json,
    header: SetHeaderRoute,
    mirror: SetMirrorRoute,
    asked: list[HttpRequest],
    mirror_first: bool,  # noqa: FBT001 - drawn by name
) -> None:
    """In whatever order they are set, the header cohort reaches the canary, mirrored rules or not (D14)."""
    steps = (mirror, header) if mirror_first else (header, mirror)
    after = applied(raw, *steps, wanted=desired())
    for request in asked if after is not None else []:
        assert after is not None
        before, now = reached(raw, request), reached(after.dump(), request)
        if before is not None and before.is_source and step_holds(header, request, match_any=False):
            assert replace(before, backends=CANARY) == now or may_change(raw, after, before, now)


@settings(max_examples=80)
@given(raw=routes(), step=header_steps(NAMES), asked=st.lists(requests(), min_size=1, max_size=12))
def test_weights_never_move_the_cohort(raw: Json, step: SetHeaderRoute, asked: list[HttpRequest]) -> None:
    """Whatever SetWeight does afterwards, the header cohort stays where it is (W3)."""
    after = applied(raw, step, wanted=desired())
    if after is None:
        return
    record = set_managed_route(parse_route(raw), step, desired(), NOTHING_RECORDED, SCOPE).record
    for weight in (0, 100):
        moved = set_weight(after, replace(desired(), weight=weight), RecordView(record, known=True), SCOPE).route
        for request in asked:
            cohort = reached(after.dump(), request)
            if cohort is not None and cohort.backends == CANARY:
                assert cohort == reached(moved.dump(), request)
