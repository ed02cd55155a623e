"""Ranks of matches, judged by the reference Gateway, and the warning where a managed rule overtakes a user's."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routes.overlaps import MATCHES, answered, both_steps, kinds, managed, requests
from tests.service.world import route, rule
from tests.strategies import Json

from rollouts_gwapi_plugin.embedded.dataplane.matching import RouteTable
from rollouts_gwapi_plugin.embedded.dataplane.request import Request
from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.precedence import (
    Placed,
    contains,
    overlaps,
    overtaken,
    overtaking_notes,
    surely_outranks,
)


def hits(raw: Json, kind: str, request: Request, *others: Json) -> int | None:
    """Return which of the matches wins for a request, counted from 0; None: none."""
    table = RouteTable([route(*(rule("s", matches=[match]) for match in (raw, *others)), kind=kind)])
    hit = table.match(request)
    return None if hit is None else hit.rule_index


@settings(max_examples=150)
@given(data=st.data(), kind=kinds)
def test_contains_and_overlaps_are_on_the_safe_side(data: st.DataObject, kind: str) -> None:
    """What is contained matches whenever the inner does; what does not overlap is never matched by one request."""
    left, right = data.draw(MATCHES[kind]), data.draw(MATCHES[kind])
    for _ in range(5):
        request = data.draw(requests(kind))
        held = [hits(match, kind, request) is not None for match in (left, right)]

        assert held[0] or not held[1] or not contains(left, right, kind)
        assert not all(held) or overlaps(left, right, kind)


@settings(max_examples=150)
@given(data=st.data(), kind=kinds, first=st.booleans())
def test_what_surely_outranks_wins(data: st.DataObject, kind: str, first: bool) -> None:  # noqa: FBT001 - drawn by name
    """Of two matches that hold the reference Gateway takes the one that is said to outrank the other."""
    left, right = data.draw(MATCHES[kind]), data.draw(MATCHES[kind])
    if not surely_outranks(left, right, kind, first=first):
        return
    pair = [left, right] if first else [right, left]
    for _ in range(5):
        request = data.draw(requests(kind))
        if all(hits(match, kind, request) is not None for match in pair):
            assert (0 if first else 1) == hits(pair[0], kind, request, pair[1])


@st.composite
def overlapping(draw: st.DrawFn, kind: str) -> Json:
    """Draw a route whose rules overlap as they like; rules without the pair are named `user-…`."""
    items = []
    for number in range(draw(st.integers(1, 4))):
        matches = draw(st.lists(MATCHES[kind], min_size=1, max_size=2))
        is_source = number == 0 or draw(st.booleans())
        items.append(
            rule("s70 c30", matches=matches) if is_source else rule("x", name=f"user-{number}", matches=matches)
        )
    return route(*draw(st.permutations(items)), kind=kind)


@settings(max_examples=150)
@given(data=st.data(), kind=kinds, first=st.booleans())
def test_every_rule_that_loses_requests_is_told(
    data: st.DataObject,
    kind: str,
    first: bool,  # noqa: FBT001 - drawn by name
) -> None:
    """Where a request of a rule without the pair meets a managed rule afterwards, a warning names both."""
    raw = data.draw(overlapping(kind))
    now, notes = managed(raw, data.draw(both_steps(kind)), first=first)
    texts = [note.text for note in notes if note.reason == "ManagedRouteOvertakes"]
    for one in data.draw(answered(raw, now, 6)):
        name, taken_by = one.before.get("name"), str(one.after.get("name"))
        if name and not taken_by.startswith("user"):
            assert any(name in text and taken_by in text for text in texts), (one, texts)


def _rule(backends: str, *matches: Json, **fields: Any) -> Rule:
    return Rule.model_validate(rule(backends, matches=list(matches), **fields))


def _match(path: str = "/", *, type_: str = "PathPrefix", method: str | None = None, **headers: str) -> Json:
    listed = [{"type": "Exact", "name": name, "value": value} for name, value in headers.items()]
    return {
        "path": {"type": type_, "value": path},
        **({"method": method} if method else {}),
        **({"headers": listed} if listed else {}),
    }


@pytest.mark.parametrize(
    ("theirs", "ours", "before", "lost"),
    [
        # The other rule ranked above the source by its header, the managed rule ranks above it by two.
        (_match(A="1"), _match(B="1", C="1"), 2, True),
        # One header each: the first of the list wins, and a block behind the user's rules does not.
        (_match(A="1"), _match(B="1"), 2, False),
        (_match(A="1"), _match(B="1"), 0, True),
        # No request has both.
        (_match(A="1"), _match(A="2", C="1"), 2, False),
        # A longer path is never overtaken, nor is one that never won over the source.
        (_match("/x"), _match(B="1", C="1"), 2, False),
        (_match(), _match(B="1", C="1"), 2, False),
        # A method counts more than headers.
        (_match(A="1", B="1"), _match(method="GET"), 0, True),
        (_match(A="1", method="POST"), _match(method="GET"), 0, False),
        # Expressions stand above or below prefixes, as the implementation likes; below, it never won over the source.
        (_match("/v[0-9]", type_="RegularExpression"), _match(B="1"), 2, False),
    ],
)
def test_what_is_overtaken(theirs: Json, ours: Json, before: int, lost: bool) -> None:  # noqa: FBT001 - a table
    """The source is on `/`; the rule between it and the managed one in rank loses requests."""
    users = [_rule("s c", _match()), _rule("x", theirs)]
    expected = {1: ("m",)} if lost else {}

    assert expected == overtaken(users, {0}, [Placed("m", _rule("c", ours), 0, before)], "HTTPRoute")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"type": "RegularExpression", "service": "a.*"}, {"service": "b"}, True),
        ({"service": "a"}, {"type": "Exact", "service": "b"}, False),
        ({"service": "a", "method": "x"}, {"method": "x"}, True),
        ({"method": "x"}, {"method": "y"}, False),
        ({}, {"method": "y"}, True),
    ],
)
def test_grpc_methods_overlap_unless_they_surely_differ(left: Json, right: Json, expected: bool) -> None:  # noqa: FBT001
    """An expression may match anything."""
    assert expected == overlaps({"method": left}, {"method": right}, "GRPCRoute")


def test_weighted_rules_are_not_asked_about() -> None:
    """Their own managed rules take care of their requests."""
    users = [_rule("s c", _match()), _rule("s c", _match(A="1"))]

    assert {} == overtaken(users, {0, 1}, [Placed("m", _rule("c", _match(B="1", C="1")), 0, 2)], "HTTPRoute")


def test_the_warning_names_both_rules_and_the_way_out() -> None:
    """A rule without a name is named by its place."""
    users = [_rule("s c", _match()), _rule("x", _match(A="1")), _rule("y", _match(A="1"), name="beta")]
    notes = overtaking_notes(users, {1: ("m", "m-1"), 2: ("m",)}, "HTTPRoute shop/web")

    assert ["ManagedRouteOvertakes"] * 2 == [note.reason for note in notes]
    assert "HTTPRoute shop/web: requests that rule 1 answered go to managed rule m, m-1" in notes[0].text
    assert "rule beta" in notes[1].text
    assert "give it a longer path" in notes[1].text
