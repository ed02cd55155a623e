"""Who reaches what: requests through the reference data plane before and after, for random RouteTables (M2, M3).

A request goes to a header route's canary just if it went to a route with the pair before and has the step's headers; it
is mirrored just if it went to such a route and the step describes it. Everybody else reaches what they reached before.
Routes overlap as they like, since the first one wins; so do the step's headers and those of the routes.
"""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routes.cohorts import header_steps, mirror_holds, mirror_steps, sent_headers, step_holds
from tests.routes.wanted import WEB_MANAGED
from tests.service.gloo.world import http, table
from tests.service.world import service

from rollouts_gwapi_plugin.embedded.dataplane.request import HttpRequest
from rollouts_gwapi_plugin.embedded.dataplane.routetable import GlooObjects, GlooTables
from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.gloo_config import parse_gloo_config
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.gloo.reconcile import remove_managed_routes, set_managed_route, set_weight
from rollouts_gwapi_plugin.routes.kinds import ROUTE_TABLE
from rollouts_gwapi_plugin.routes.reconcile import Outcome, Scope
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView

Json = dict[str, Any]
SCOPE = Scope(ROUTE_TABLE, takes_headers=True)
NAMES = ("X-A", "x-a", "X-B")
KINDS_OF_ROUTE = ("s", "s40 x60", "x", "c")
PATHS = ("/", "/a", "/a/b", "/A", "/b")
SERVICES = [service(name) for name in ("s", "c", "x")]

headers = sent_headers(NAMES)


@st.composite
def matchers(draw: st.DrawFn) -> Json:
    """Draw a matcher of a route, with every form that a header's test can have."""
    result: Json = {}
    if draw(st.booleans()):
        result["uri"] = {draw(st.sampled_from(["prefix", "exact"])): draw(st.sampled_from(PATHS))}
        if draw(st.integers(0, 3)) == 0:
            result["uri"]["ignoreCase"] = True
    if draw(st.integers(0, 2)) == 0:
        result["method"] = draw(st.sampled_from(["GET", "POST"]))
    listed: list[Json] = []
    for name, value in draw(headers):
        forms: list[Json] = [{}, {"value": value}, {"value": value, "regex": True}]
        listed.append({"name": name, **draw(st.sampled_from(forms))})
    if listed and draw(st.integers(0, 2)) == 0:
        listed[0] = {**listed[0], "invertMatch": True}
    return result | ({"headers": listed} if listed else {})


@st.composite
def tables(draw: st.DrawFn) -> Json:
    """Draw a RouteTable: routes with the pair and others, in any order."""
    routes: list[Json] = []
    for index, refs in enumerate([*draw(st.lists(st.sampled_from(KINDS_OF_ROUTE), max_size=4)), "s"]):
        route = http(refs, f"r{index}")
        listed = draw(st.lists(matchers(), max_size=2))
        routes.append(route | ({"matchers": listed} if listed else {}))
    return table(*draw(st.permutations(routes)))


@st.composite
def requests(draw: st.DrawFn) -> HttpRequest:
    """Draw a request that has a chance to hit."""
    path = draw(st.sampled_from([*PATHS, "/a/b/c", "/ab", "/B"]))
    return HttpRequest(draw(st.sampled_from(["GET", "POST"])), "www.example.com", path, (), tuple(draw(headers)))


def desired(weight: int = 30, *, match_any: bool = False) -> Desired:
    """Make what the calls here want."""
    gloo = parse_gloo_config({"routeTableName": "web"}, "k")
    return replace(WEB_MANAGED, weight=weight, match_any=match_any, gloo=gloo)


def weighted(raw: Json, weight: int = 30) -> Outcome:
    """Return the table at a weight."""
    return set_weight(parse_route(raw), desired(weight), NOTHING_RECORDED, SCOPE)


Reached = tuple[dict[str, int], float]


def reached(route: Route, request: HttpRequest, policies: tuple[Json, ...] = ()) -> Reached | None:
    """Return the destinations with shares that the request meets, and how much of it is mirrored; None: no route."""
    hit = GlooTables(GlooObjects([route.dump()], list(policies), SERVICES)).match(request)
    if hit is None:
        return None
    assert not hit.rule.get("problem"), hit.rule
    mirrors = [entry for entry in hit.rule["filters"] if entry["type"] == "RequestMirror"]
    shares = {ref["name"]: ref["weight"] for ref in hit.rule["backendRefs"]}
    return shares, sum(entry["requestMirror"].get("percent", 100) for entry in mirrors)


def is_source(route: Route, request: HttpRequest) -> bool:
    """Whether the request met a route with stable's destination."""
    found = reached(route, request)
    return found is not None and "s" in found[0]


ONE_IN_MANY = [HttpRequest("GET", "www.example.com", "/a", (), (("X-A", "1"),))]


@settings(max_examples=200)
@given(
    raw=tables(), step=header_steps(NAMES), asked=st.lists(requests(), min_size=1, max_size=12), match_any=st.booleans()
)
def test_a_header_route_takes_just_its_cohort(
    raw: Json,
    step: SetHeaderRoute,
    asked: list[HttpRequest],
    match_any: bool,  # noqa: FBT001 - drawn by name
) -> None:
    """The cohort of the step reaches the canary and only it; all others reach what they reached."""
    before = weighted(raw).route
    try:
        after = set_managed_route(before, step, desired(match_any=match_any), NOTHING_RECORDED, SCOPE).route
    except RouteError:
        # No route and the step have requests in common.
        assert not any(
            is_source(before, request) and step_holds(step, request, match_any=match_any) for request in asked
        )
        return
    for request in asked + ONE_IN_MANY:
        cohort = is_source(before, request) and step_holds(step, request, match_any=match_any)

        assert (({"c": 100}, 0) if cohort else reached(before, request)) == reached(after, request)


@settings(max_examples=200)
@given(raw=tables(), step=mirror_steps(NAMES, PATHS), asked=st.lists(requests(), min_size=1, max_size=12))
def test_a_mirror_route_copies_just_what_it_says(raw: Json, step: SetMirrorRoute, asked: list[HttpRequest]) -> None:
    """Nobody's answer changes; what source and step both match is mirrored, nothing else."""
    before = weighted(raw).route
    try:
        outcome = set_managed_route(before, step, desired(), NOTHING_RECORDED, SCOPE)
    except RouteError:
        return
    for request in asked + ONE_IN_MANY:
        was = reached(before, request)
        mirrored = 30 if is_source(before, request) and mirror_holds(step, request, str.startswith) else 0

        assert (None if was is None else (was[0], mirrored)) == reached(
            outcome.route, request, outcome.companions.wanted
        )


@settings(max_examples=100)
@given(
    raw=tables(),
    header=header_steps(NAMES),
    mirror=mirror_steps(NAMES, PATHS),
    asked=st.lists(requests(), min_size=1, max_size=12),
    weights=st.lists(st.sampled_from([0, 20, 100]), min_size=1, max_size=3),
)
def test_weights_never_move_the_cohort(
    raw: Json, header: SetHeaderRoute, mirror: SetMirrorRoute, asked: list[HttpRequest], weights: list[int]
) -> None:
    """Header and mirror routes together, whatever the weights do: the cohort stays, and in the end all is as before."""
    route, view = parse_route(raw), NOTHING_RECORDED
    for step in (mirror, header):
        try:
            outcome = set_managed_route(route, step, desired(), view, SCOPE)
        except RouteError:
            return
        route, view = outcome.route, RecordView(outcome.record, known=True)
    for weight in weights:
        moved = set_weight(route, desired(weight), view, SCOPE)
        route = moved.route
        for request in asked:
            cohort = is_source(weighted(raw).route, request) and step_holds(header, request, match_any=False)
            found = reached(route, request)
            assert not cohort or found == ({"c": 100}, 0)
            if not cohort:
                wanted = reached(weighted(raw, weight).route, request)
                assert (None if wanted is None else wanted[0]) == (None if found is None else found[0])
    gone = remove_managed_routes(route, desired(), view, SCOPE)
    rested = set_weight(gone.route, replace(desired(0), resting=True), NOTHING_RECORDED, SCOPE)
    assert raw["spec"] == rested.route.dump()["spec"]
