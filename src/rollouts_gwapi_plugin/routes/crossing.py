"""Managed rules that answer what another source rule answered: the request then gets the wrong filters (decision D14).

Each weighted rule has managed rules of its own, and as a rule they rank among each other as their sources do. Where two
sources overlap only in part they may not: one already has the step's header, or the step's path is narrower than one of
them only. `crossings` finds such managed rules; nothing is changed for it.

What is not known is judged on the safe side, as in `precedence`: a crossing that may be is told.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.canonical import canonical_match, canonical_matches, same_rule
from rollouts_gwapi_plugin.routes.httproute import path_contains
from rollouts_gwapi_plugin.routes.notes import Note, which_rule
from rollouts_gwapi_plugin.routes.precedence import Placed, comes_between, overlaps, surely_outranks

# What the managed rules of one managed route have in common.
Family = str


@dataclass(frozen=True)
class Crossing:
    """Requests of the user's rule `lost` are answered by managed rules that were made from the rule `won`."""

    lost: int
    won: int
    names: tuple[str, ...]


def crossings(
    users: Sequence[Rule], weighted: Collection[int], managed: Sequence[tuple[Family, Placed]], kind: str
) -> tuple[Crossing, ...]:
    """Find them; `managed` are all managed rules, of equal places the first first."""
    # Rules that differ in nothing but their matches can't be told apart by what they answer.
    pairs = {
        (lost, won)
        for lost, won in product(weighted, weighted)
        if not same_rule(users[lost].replace(matches=None), users[won].replace(matches=None), kind)
    }
    found: dict[tuple[int, int], list[str]] = {}
    for (family, item), lost in product(managed, sorted(weighted)):
        if (lost, item.source) not in pairs:
            continue
        own = [other for name, other in managed if name == family and other.source == lost]
        if _crosses(users, item, lost, own, kind):
            found.setdefault((lost, item.source), []).append(item.name)
    return tuple(Crossing(lost, won, tuple(names)) for (lost, won), names in sorted(found.items()))


def _crosses(users: Sequence[Rule], item: Placed, lost: int, own: Sequence[Placed], kind: str) -> bool:
    return any(
        overlaps(ours, theirs, kind)
        and comes_between(users, item, ours, lost, theirs, kind)
        and not any(
            surely_outranks(match, ours, kind, first=first) and _contains_both(match, ours, theirs, kind)
            for first, match in _matches(own, item, kind)
        )
        for ours in canonical_matches(item.rule.matches, kind)
        for theirs in canonical_matches(users[lost].matches, kind)
    )


def _matches(own: Sequence[Placed], item: Placed, kind: str) -> Iterator[tuple[bool, JsonObject]]:
    """Yield the matches of the managed rules that were made from the losing rule, and whether they stand before."""
    for other in own:
        for match in canonical_matches(other.rule.matches, kind):
            yield other.before < item.before, match


def _contains_both(outer: JsonObject, left: JsonObject, right: JsonObject, kind: str) -> bool:
    """Whether every request that matches both surely matches the outer one: one of them implies each part of it."""
    wide, *narrow = (canonical_match(match, kind) for match in (outer, left, right))
    return all(_implied(field, value, narrow, kind) for field, value in wide.items())


def _implied(field: str, value: Any, narrow: Sequence[JsonObject], kind: str) -> bool:
    if field in {"headers", "queryParams"}:
        return all(any(entry in (match.get(field) or []) for match in narrow) for entry in value)
    if field == "path" and kind == "HTTPRoute":
        return any(path_contains(value, match["path"]) for match in narrow)
    if field == "method" and isinstance(value, dict):
        return all(any((match.get(field) or {}).get(part) == text for match in narrow) for part, text in value.items())
    return any(match.get(field) == value for match in narrow)


def crossing_notes(users: Sequence[Rule], found: Sequence[Crossing], route: str) -> tuple[Note, ...]:
    """Return a warning for each pair of rules, with the way out."""

    def which(index: int) -> str:
        return which_rule(users[index], index)

    return tuple(
        Note(
            "ManagedRouteCrosses",
            f"{route}: requests that {which(one.lost)} answered may go to managed rule {', '.join(one.names)}, which"
            f" was made from {which(one.won)}, and get its filters, timeouts and other backends: the matches of the two"
            " rules overlap, and with the step's the Gateway API ranks them the other way round. Give the two rules"
            " matches that no request has both of, or the same filters",
        )
        for one in found
    )
