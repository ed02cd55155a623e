"""The rules that managed rules are made from, and what has been made (decisions D13 to D15)."""

from collections.abc import Sequence
from dataclasses import dataclass

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import BackendRef, Rule
from rollouts_gwapi_plugin.routes.notes import Note, which_rule
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.precedence import contains, surely_outranks


@dataclass(frozen=True)
class Source:
    """A weighted rule: the user's, or (`mirrored`) a mirror rule of ours without our filter."""

    rule: Rule
    # The place of the user's rule among the user's rules.
    index: int
    mirrored: bool = False


@dataclass(frozen=True)
class Made:
    """A managed rule, not named yet.

    It stands directly before the user's rule at `before` where it must win a tie against that rule or against a mirror
    rule there; None: with the block. `basis` is a mirror rule without our filter.
    """

    rule: Rule
    index: int
    before: int | None = None
    basis: Rule | None = None


@dataclass(frozen=True)
class MadeRules:
    """What has been made of a step, and what was left out and why."""

    made: tuple[Made, ...]
    notes: tuple[Note, ...] = ()


def matches_of(rule: Rule) -> list[JsonObject]:
    """Return the rule's matches; no matches mean one that matches everything."""
    return rule.matches or [{}]


def served_elsewhere(match: JsonObject, own: JsonObject, source: Source, sources: Sequence[Source], kind: str) -> bool:
    """Whether another source serves all requests of a match that was made from a source's own.

    The other rule has a match that takes them all and wins over the own one: these requests never reached the source,
    and what is made from the other rule is for them.
    """
    return any(
        contains(theirs, match, kind) and surely_outranks(theirs, own, kind, first=other.index < source.index)
        for other in sources
        if other.index != source.index and not other.mirrored
        for theirs in matches_of(other.rule)
    )


def left_out(reason: str, name: str, source: Source, why: str, count: int) -> Note:
    """Tell that a source takes no part in a managed route, or (a count is given) some of its matches do not."""
    what = f"is left out in {count} of its matches" if count else "is left out"
    return Note(reason, f"managed route {name}: {which_rule(source.rule, source.index)} {what}, since {why}")


def canary_of(rule: Rule, pair: Pair) -> BackendRef:
    """Return the rule's first canary backend without its weight, which then is the API's default of 1."""
    first = next(ref for ref in rule.backends if pair.is_canary(ref))
    raw = first.dump()
    raw.pop("weight", None)
    return BackendRef.model_validate(raw)
