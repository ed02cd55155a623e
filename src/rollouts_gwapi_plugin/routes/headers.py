"""Managed header rules: requests with the step's headers go to the canary, and only to it (decisions D12 to D15)."""

from collections.abc import Sequence
from dataclasses import replace

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute
from rollouts_gwapi_plugin.routes.canonical import canonical_match
from rollouts_gwapi_plugin.routes.l7 import Alternative, header_alternatives, with_headers
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.rewrite import replaces_prefix
from rollouts_gwapi_plugin.routes.sources import (
    Made,
    MadeRules,
    Source,
    canary_of,
    left_out,
    matches_of,
    served_elsewhere,
)


def header_rules(
    step: SetHeaderRoute, sources: Sequence[Source], pair: Pair, *, kind: str, match_any: bool
) -> MadeRules:
    """Make the rules of one managed header route, in source-rule order.

    Raises:
        RouteError: the step itself can't be matched by the Gateway API.

    """
    alternatives = header_alternatives(step.match, match_any=match_any, where=f"setHeaderRoute {step.name}")
    made: list[Made] = []
    notes: list[Note] = []
    # The user's rules first: a mirror rule's match that equals one of theirs is made once.
    for source in sorted(sources, key=lambda item: item.mirrored):
        seen = _matches_of_all(made, kind)
        merged, contradictions = [], 0
        for own in matches_of(source.rule):
            narrowed = [with_headers(own, alternative) for alternative in alternatives]
            contradictions += narrowed.count(None)
            merged += [
                match
                for match in narrowed
                if match is not None
                and not (source.mirrored and canonical_match(match, kind) in seen)
                and not served_elsewhere(match, own, source, sources, kind)
            ]
        if source.mirrored:
            made = [_before_mirror(item, source, alternatives, kind) for item in made]
        elif contradictions:
            why = "its own headers contradict the step's"
            notes.append(left_out("HeaderContradiction", step.name, source, why, contradictions if merged else 0))
        made += _rules(source, merged, pair, kind)
    return MadeRules(tuple(sorted(made, key=lambda item: item.index)), tuple(notes))


def _matches_of_all(made: Sequence[Made], kind: str) -> list[JsonObject]:
    return [canonical_match(match, kind) for item in made for match in item.rule.matches or []]


def _before_mirror(item: Made, source: Source, alternatives: Sequence[Alternative], kind: str) -> Made:
    """Put a rule before a mirror rule that matches just the same: the first of the two is ever hit."""
    asked = [with_headers(own, alternative) for own in matches_of(source.rule) for alternative in alternatives]
    same = [canonical_match(match, kind) for match in asked if match is not None and match in matches_of(source.rule)]
    if not any(canonical_match(match, kind) in same for match in item.rule.matches or []):
        return item
    return replace(item, before=source.index if item.before is None else min(item.before, source.index))


def _rules(source: Source, merged: list[JsonObject], pair: Pair, kind: str) -> list[Made]:
    backend = canary_of(source.rule, pair)
    groups = [[match] for match in merged] if replaces_prefix(source.rule) else [merged] if merged else []
    own = [canonical_match(match, kind) for match in matches_of(source.rule)]
    return [
        Made(
            rule=source.rule.replace(matches=group, backend_refs=[backend]),
            index=source.index,
            # The step asks for what the source matches anyway: only the earlier of the two rules is ever hit.
            before=source.index if any(canonical_match(match, kind) in own for match in group) else None,
        )
        for group in groups
    ]
