"""Routes whose matches overlap, before and after managed rules: what the properties about ranks draw and compare."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from hypothesis import strategies as st
from tests.routes.wanted import WEB_MANAGED
from tests.strategies import HEADERS, PATHS, VALUES, Json, grpc_matches, header_steps, http_matches, mirror_steps

from rollouts_gwapi_plugin.embedded.dataplane import matching
from rollouts_gwapi_plugin.embedded.dataplane.matching import RouteTable
from rollouts_gwapi_plugin.embedded.dataplane.request import GrpcCall, HttpRequest, Request
from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.desired import ManagedStep
from rollouts_gwapi_plugin.routes.kinds import KINDS
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.reconcile import Scope, set_managed_route, set_weight
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView

MATCHES: Final = {"HTTPRoute": http_matches(), "GRPCRoute": grpc_matches()}
kinds = st.sampled_from(sorted(MATCHES))


@st.composite
def requests(draw: st.DrawFn, kind: str) -> Request:
    """Draw a request that has a chance to hit what `tests.strategies` draws."""
    sent = tuple((name, draw(st.sampled_from(VALUES))) for name in HEADERS if draw(st.booleans()))
    if kind == "GRPCRoute":
        return GrpcCall(draw(st.sampled_from(["shop.Cart", "x"])), draw(st.sampled_from(["Get", "Put"])), headers=sent)
    query = (("q", draw(st.sampled_from(VALUES))),) if draw(st.booleans()) else ()
    path = draw(st.sampled_from([*PATHS, "/a/b/c", "/ab"]))
    return HttpRequest(method=draw(st.sampled_from(["GET", "POST"])), path=path, query=query, headers=sent)


@st.composite
def both_steps(draw: st.DrawFn, kind: str) -> tuple[ManagedStep, ManagedStep]:
    """Draw a header step and a mirror step."""
    return (
        SetHeaderRoute.model_validate(draw(header_steps("m-h"))),
        SetMirrorRoute.model_validate(draw(mirror_steps("m-m", kind))),
    )


def managed(raw: Json, steps: Iterable[ManagedStep], *, first: bool) -> tuple[Route, tuple[Note, ...]]:
    """Return the route with the steps that are not refused, and what the next SetWeight tells of it."""
    scope = Scope(KINDS[raw["kind"].removesuffix("Route").lower()], takes_headers=True)
    desired = replace(WEB_MANAGED, managed_first=first)
    now, view = parse_route(raw), NOTHING_RECORDED
    for step in steps:
        try:
            outcome = set_managed_route(now, step, desired, view, scope)
        except RouteError:
            continue
        now, view = outcome.route, RecordView(outcome.record, known=True)
    return now, set_weight(now, desired, view, scope).notes


@dataclass(frozen=True)
class Answered:
    """A request and the rules that take it before and afterwards."""

    request: Request
    before: Json
    after: Json


@st.composite
def answered(draw: st.DrawFn, raw: Json, after: Route, count: int) -> list[Answered]:
    """Draw requests that a rule takes on both routes, of a Gateway that ranks expressions one way or the other."""
    expressions = draw(st.sampled_from(matching.Expressions))
    tables = [RouteTable([value], expressions=expressions) for value in (raw, after.dump())]
    found = []
    for _ in range(count):
        request = draw(requests(raw["kind"]))
        lost, got = (table.match(request) for table in tables)
        if lost is not None and got is not None:
            found.append(Answered(request, lost.rule, got.rule))
    return found
