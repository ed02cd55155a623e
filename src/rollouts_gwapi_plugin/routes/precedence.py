"""How the Gateway API ranks matches, and where a managed rule overtakes a rule of the user's (decision D14).

Of all matches that hold for a request the highest wins, whichever rule it is in: exact path, longest prefix, method,
number of headers, number of query parameters; for gRPC the characters of service and method, then headers; then the
first rule of the list. A managed rule is narrower than its source, so it can rank above a third rule that used to win
over the source, and take requests that the source never had. `overtaken` finds such rules; nothing is changed for it.

What is not known is judged on the safe side: `contains` is only true where it surely is, `overlaps` only false where
two matches surely have no request in common. The place of regular expression paths is the implementation's choice, so
each question about ranks is asked for both that are in use.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.canonical import canonical_match, canonical_matches
from rollouts_gwapi_plugin.routes.httproute import path_contains, path_of
from rollouts_gwapi_plugin.routes.notes import Note, which_rule

Rank = tuple[Any, ...]


class Expressions(Enum):
    """Where a regular expression path stands."""

    BELOW_PREFIX = 0
    ABOVE_PREFIX = 2


def rank(match: JsonObject, kind: str, expressions: Expressions) -> Rank:
    """Return what the match is compared by; the greater wins."""
    headers = len({str(entry.get("name", "")).lower() for entry in match.get("headers") or []})
    if kind != "HTTPRoute":
        method = match.get("method") or {}
        return len(method.get("service") or ""), len(method.get("method") or ""), headers
    path = path_of(match)
    text = str(path["value"])
    by_path = {"Exact": (3, 0), "PathPrefix": (1, len(text.rstrip("/")))}
    place = by_path.get(path["type"], (expressions.value, len(text)))
    return place, bool(match.get("method")), headers, len(match.get("queryParams") or [])


def surely_outranks(left: JsonObject, right: JsonObject, kind: str, *, first: bool) -> bool:
    """Whether the left match wins over the right one everywhere; `first`: its rule stands before the other's."""
    ranks = [(rank(left, kind, place), rank(right, kind, place)) for place in Expressions]
    return all(ours > others or (first and ours == others) for ours, others in ranks)


def contains(outer: JsonObject, inner: JsonObject, kind: str) -> bool:
    """Whether every request that the inner match takes surely matches the outer one."""
    wide, narrow = canonical_match(outer, kind), canonical_match(inner, kind)
    return all(_field_contains(field, wide[field], narrow.get(field), kind) for field in wide)


def _field_contains(field: str, wide: Any, narrow: Any, kind: str) -> bool:
    if field in {"headers", "queryParams"}:
        return all(entry in (narrow or []) for entry in wide)
    if field == "path" and kind == "HTTPRoute":
        return path_contains(wide, narrow)
    if field == "method" and isinstance(wide, dict):
        return all(value == (narrow or {}).get(part) for part, value in wide.items() if value)
    return bool(wide == narrow)


def overlaps(left: JsonObject, right: JsonObject, kind: str) -> bool:
    """Whether some request may match both."""
    if kind == "HTTPRoute":
        paths = path_of(left), path_of(right)
        expression = any(path["type"] not in {"Exact", "PathPrefix"} for path in paths)
        if not (expression or path_contains(*paths) or path_contains(*reversed(paths))):
            return False
        if None not in (methods := (left.get("method"), right.get("method"))) and methods[0] != methods[1]:
            return False
    elif not _grpc_methods_overlap(left.get("method") or {}, right.get("method") or {}):
        return False
    return all(_entries_overlap(left, right, field) for field in ("headers", "queryParams"))


def _grpc_methods_overlap(left: JsonObject, right: JsonObject) -> bool:
    if "RegularExpression" in (left.get("type"), right.get("type")):
        return True
    pairs = [(left.get(part), right.get(part)) for part in ("service", "method")]
    return all(not one or not other or one == other for one, other in pairs)


def _entries_overlap(left: JsonObject, right: JsonObject, field: str) -> bool:
    ours, others = (dict(_exact_values(match, field)) for match in (left, right))
    return all(others.get(name, value) == value for name, value in ours.items())


def _exact_values(match: JsonObject, field: str) -> Iterator[tuple[str, str]]:
    for entry in reversed(match.get(field) or []):
        if (entry.get("type") or "Exact") == "Exact":
            name = str(entry.get("name", ""))
            yield name.lower() if field == "headers" else name, str(entry.get("value", ""))


@dataclass(frozen=True)
class Placed:
    """A managed rule with its source's place among the user's rules, and its own: before the user's rule `before`."""

    name: str
    rule: Rule
    source: int
    before: int


def overtaken(
    users: Sequence[Rule], weighted: Collection[int], managed: Sequence[Placed], kind: str
) -> Mapping[int, tuple[str, ...]]:
    """Return the user's rules, by place, that lose requests to managed rules; the `weighted` are not asked about.

    A request that matches both a managed rule and another rule of the user's is taken from that rule if it ranks above
    the managed rule's source and below the managed rule.
    """
    lost: dict[int, list[str]] = {}
    for item in managed:
        for index in range(len(users)):
            if index not in weighted and _overtakes(users, item, index, kind):
                lost.setdefault(index, []).append(item.name)
    return {index: tuple(names) for index, names in sorted(lost.items())}


def _overtakes(users: Sequence[Rule], item: Placed, index: int, kind: str) -> bool:
    return any(
        overlaps(ours, theirs, kind) and comes_between(users, item, ours, index, theirs, kind)
        for ours in canonical_matches(item.rule.matches, kind)
        for theirs in canonical_matches(users[index].matches, kind)
    )


def comes_between(
    users: Sequence[Rule], item: Placed, ours: JsonObject, index: int, theirs: JsonObject, kind: str
) -> bool:
    """Whether the match `theirs` of a user's rule ranks above the managed rule's source and below its match `ours`."""
    sources = [match for match in canonical_matches(users[item.source].matches, kind) if contains(match, ours, kind)]
    for place in Expressions:
        own, other = rank(ours, kind, place), rank(theirs, kind, place)
        source = max((rank(match, kind, place) for match in sources), default=())
        wins_over_source = other > source or (other == source and index < item.source)
        loses_to_managed = own > other or (own == other and item.before <= index)
        if wins_over_source and loses_to_managed:
            return True
    return False


def overtaking_notes(users: Sequence[Rule], lost: Mapping[int, tuple[str, ...]], route: str) -> tuple[Note, ...]:
    """Return a warning for each rule that loses requests, with the way out."""
    notes = []
    for index, names in lost.items():
        which = which_rule(users[index], index)
        text = (
            f"{route}: requests that {which} answered go to managed rule {', '.join(names)} if they match that, too:"
            f" the Gateway API ranks it above {which}. Put the step's header also on {which} with the value that"
            " belongs there, or give it a longer path"
        )
        notes.append(Note("ManagedRouteOvertakes", text))
    return tuple(notes)
