"""Managed header rules: requests with the step's headers go to the canary, and only to it (decisions D12 to D15)."""

from collections.abc import Sequence
from dataclasses import dataclass

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute
from rollouts_gwapi_plugin.routes.canonical import canonical_match
from rollouts_gwapi_plugin.routes.l7 import header_alternatives, with_headers
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.sources import Made, Source, canary_of, forbids_several_matches, matches_of


@dataclass(frozen=True)
class HeaderRules:
    """What has been made, and what was left out and why."""

    made: tuple[Made, ...]
    notes: tuple[Note, ...]


def header_rules(
    step: SetHeaderRoute, sources: Sequence[Source], pair: Pair, *, kind: str, match_any: bool
) -> HeaderRules:
    """Make the rules of one managed header route, in source-rule order.

    Raises:
        RouteError: the step itself can't be matched by the Gateway API.

    """
    alternatives = header_alternatives(step.match, match_any=match_any, where=f"setHeaderRoute {step.name}")
    made: list[Made] = []
    notes: list[Note] = []
    seen: list[JsonObject] = []
    # The user's rules first: a mirror rule's match that equals one of theirs is made once.
    for source in sorted(sources, key=lambda item: item.mirrored):
        merged, left_out = [], 0
        for match in matches_of(source.rule):
            for alternative in alternatives:
                narrowed = with_headers(match, alternative)
                if narrowed is None:
                    left_out += 1
                elif not source.mirrored or canonical_match(narrowed, kind) not in seen:
                    merged.append(narrowed)
        seen += [canonical_match(match, kind) for match in merged]
        made += _rules(source, merged, pair, kind)
        if left_out:
            notes.append(_left_out(step.name, source, left_out, everything=not merged))
    return HeaderRules(tuple(sorted(made, key=lambda item: item.index)), tuple(notes))


def _rules(source: Source, merged: list[JsonObject], pair: Pair, kind: str) -> list[Made]:
    backend = canary_of(source.rule, pair)
    groups = [[match] for match in merged] if forbids_several_matches(source.rule) else [merged] if merged else []
    own = [canonical_match(match, kind) for match in matches_of(source.rule)]
    return [
        Made(
            rule=source.rule.replace(matches=group, backend_refs=[backend]),
            index=source.index,
            # The step asks for what the source matches anyway: only the earlier of the two rules is ever hit.
            before_source=any(canonical_match(match, kind) in own for match in group),
        )
        for group in groups
    ]


def _left_out(name: str, source: Source, count: int, *, everything: bool) -> Note:
    which = f"rule {source.rule.name}" if source.rule.name else f"rule {source.index}"
    what = "is left out" if everything else f"is left out in {count} of its matches"
    text = f"managed route {name}: {which} {what}, since its own headers contradict the step's"
    return Note("HeaderContradiction", text)
