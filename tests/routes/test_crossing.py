"""Managed rules that answer what another source rule answered, judged by the reference Gateway."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routes.overlaps import MATCHES, answered, both_steps, kinds, managed
from tests.routes.wanted import WEB_MANAGED
from tests.service.world import route, rule
from tests.strategies import Json

from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute
from rollouts_gwapi_plugin.model.routes import parse_route
from rollouts_gwapi_plugin.routes.desired import ManagedStep
from rollouts_gwapi_plugin.routes.kinds import KINDS
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.reconcile import Scope, set_managed_route
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED

REASON = "ManagedRouteCrosses"


def source(name: str, *matches: Json, **fields: Any) -> Json:
    """Make a weighted rule whose answers can be told from any other's."""
    mark = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "from", "value": name}]}}
    return rule("s70 c30", name=name, matches=list(matches), filters=[mark], **fields)


def answered_by(found: Json) -> str:
    """Return the source rule whose filters a rule has."""
    return str(found["filters"][0]["requestHeaderModifier"]["set"][0]["value"])


def header(name: str, value: str = "1") -> Json:
    """Make an exact header match."""
    return {"type": "Exact", "name": name, "value": value}


def two_sources() -> Json:
    """Make two rules of two headers each that overlap; the first one has the step's header X-T."""
    pairs = {"tested": ("X-T", "X-C"), "beta": ("X-B", "X-D")}
    return route(*(source(name, {"headers": list(map(header, names))}) for name, names in pairs.items()))


def crossing_notes(raw: Json, step: ManagedStep) -> list[Note]:
    """Set the managed route and return what is told of crossings."""
    scope = Scope(KINDS["http"], takes_headers=True)
    outcome = set_managed_route(parse_route(raw), step, WEB_MANAGED, NOTHING_RECORDED, scope)
    return [note for note in outcome.notes if note.reason == REASON]


@settings(max_examples=200)
@given(data=st.data(), kind=kinds, first=st.booleans())
def test_every_request_that_changes_its_rule_is_told(data: st.DataObject, kind: str, first: bool) -> None:  # noqa: FBT001
    """Where a request meets a managed rule of another source than what answered it, a warning names all three."""
    count = data.draw(st.integers(2, 3))
    some = st.lists(MATCHES[kind], min_size=1, max_size=2)
    raw = route(*(source(f"src-{number}", *data.draw(some)) for number in range(count)), kind=kind)
    now, notes = managed(raw, data.draw(both_steps(kind).flatmap(st.permutations)), first=first)
    texts = [note.text for note in notes if note.reason == REASON]
    for one in data.draw(answered(raw, now, 8)):
        was, now_is, by = answered_by(one.before), answered_by(one.after), str(one.after["name"])
        told = any(was in text and now_is in text and by in text for text in texts)
        assert was == now_is or told, (one, texts)


def test_a_source_that_has_the_steps_header_already() -> None:
    """It used to win as the first of two; with the step's header the other one has three."""
    raw = two_sources()
    step = SetHeaderRoute.model_validate(
        {"name": "m-h", "match": [{"headerName": "X-T", "headerValue": {"exact": "1"}}]}
    )
    (note,) = crossing_notes(raw, step)

    assert "requests that rule tested answered may go to managed rule m-h-1, which was made from rule beta" in note.text
    assert note.warning


def test_sources_that_keep_their_ranks_are_not_told() -> None:
    """Other paths, methods and headers of their own, and the step's added to each."""
    step = SetHeaderRoute.model_validate({"name": "m-h", "match": [{"headerName": "T", "headerValue": {"exact": "1"}}]})
    prefixes = [{"path": {"type": "PathPrefix", "value": value}} for value in ("/", "/a", "/a/b")]
    raw = route(
        *(source(f"src-{number}", match) for number, match in enumerate(prefixes)),
        source("get", {"method": "GET"}),
        source("beta", {"headers": [header("X-B")]}),
    )

    assert not crossing_notes(raw, step)


def test_sources_that_answer_alike_are_not_told() -> None:
    """Which of two rules with the same filters answers is all the same."""
    raw = two_sources()
    for item in raw["spec"]["rules"]:
        item["filters"] = []
    step = SetHeaderRoute.model_validate(
        {"name": "m-h", "match": [{"headerName": "X-T", "headerValue": {"exact": "1"}}]}
    )

    assert not crossing_notes(raw, step)
