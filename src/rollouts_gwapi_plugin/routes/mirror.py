"""Managed mirror rules: what source and step both match is answered as before, and copied to the canary (D12, D15)."""

from collections.abc import Sequence
from typing import Any, Final

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import RouteMatch, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.canonical import canonical_match, canonical_matches
from rollouts_gwapi_plugin.routes.desired import ManagedStep
from rollouts_gwapi_plugin.routes.l7 import MatchKind, mirror_headers, with_headers
from rollouts_gwapi_plugin.routes.notes import MIRROR_LEFT_OUT, Note
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.rewrite import narrowed, replaces_prefix
from rollouts_gwapi_plugin.routes.sources import (
    Made,
    MadeRules,
    Source,
    canary_of,
    left_out,
    matches_of,
    served_elsewhere,
)

ALL: Final = 100
# What a mirror's backendRef may have of a rule's.
_REFERENCE: Final = ("group", "kind", "namespace", "name", "port")


def mirror_percent(step: SetMirrorRoute) -> int:
    """Return the share to mirror; absent means all, and so does 0 over net/rpc, where it can't be told apart (D3).

    Raises:
        RouteError: it is no percentage.

    """
    percent = ALL if step.percentage is None else step.percentage
    if not 0 <= percent <= ALL:
        raise RouteError(f"setMirrorRoute {step.name}.percentage: {percent} is not between 0 and 100")
    return percent


def mirrors_nothing(step: ManagedStep) -> bool:
    """Whether the step asks for a mirror of no request: there is nothing to make then."""
    return isinstance(step, SetMirrorRoute) and step.percentage == 0


def mirror_rules(
    step: SetMirrorRoute, sources: Sequence[Source], pair: Pair, match_kind: MatchKind, kind: str
) -> MadeRules:
    """Make the rules of one managed mirror route: the intersection of each source rule with each entry of the step.

    Raises:
        RouteError: an entry asks for what the kind can't match; the text names the field.

    """
    percent = mirror_percent(step)
    made: list[Made] = []
    notes: list[Note] = []
    for source in sources if percent else ():
        parts, lost = _parts(step, source, sources, match_kind, kind)
        made += [
            Made(_mirror(basis, pair, percent), source.index, before=source.index, basis=basis)
            for basis in _joined(source.rule, parts)
        ]
        if lost:
            why = "its filter replaces the matched prefix, which can't be said of what the step asks for"
            notes.append(left_out(MIRROR_LEFT_OUT, step.name, source, why, lost if parts else 0))
    return MadeRules(tuple(made), tuple(notes))


def _parts(
    step: SetMirrorRoute, source: Source, sources: Sequence[Source], match_kind: MatchKind, kind: str
) -> tuple[list[Rule], int]:
    """Return the source as a rule of one narrowed match each, and how many matches the API can't express."""
    parts: list[Rule] = []
    lost = 0
    for own in matches_of(source.rule):
        for index, asked in enumerate(step.match):
            match = _narrow(own, asked, match_kind, f"setMirrorRoute {step.name}.match[{index}]")
            known = [canonical_matches(part.matches, kind) for part in parts]
            if match is None or [canonical_match(match, kind)] in known:
                continue
            if served_elsewhere(match, own, source, sources, kind):
                continue
            rule = narrowed(source.rule, own, match)
            if rule is None:
                lost += 1
            else:
                parts.append(rule.replace(matches=[match]))
    return parts, lost


def _joined(rule: Rule, parts: list[Rule]) -> list[Rule]:
    """Join the parts to one rule with all matches, where the API allows it."""
    if replaces_prefix(rule) or not parts:
        return parts
    return [rule.replace(matches=[match for part in parts for match in matches_of(part)])]


def _narrow(match: JsonObject, asked: RouteMatch, match_kind: MatchKind, where: str) -> JsonObject | None:
    result = match_kind.intersect(match, asked, where)
    headers = mirror_headers(asked.headers, where)
    return None if result is None else with_headers(result, headers)


def _mirror(basis: Rule, pair: Pair, percent: int) -> Rule:
    backend = canary_of(basis, pair).dump()
    target = {field: backend[field] for field in _REFERENCE if field in backend}
    mirror: JsonObject = {"backendRef": target}
    if percent < ALL:
        mirror["percent"] = percent
    return basis.replace(filters=[*(basis.filters or []), {"type": "RequestMirror", "requestMirror": mirror}])


def percent_sample(raw: JsonObject) -> JsonObject:
    """Return the route with a percentage in some rule, to be tried as a dry-run write; without backends as it is."""
    rules = rules_of(raw)
    for index, rule in enumerate(rules):
        backends = rule.get("backendRefs") if isinstance(rule, dict) else None
        target = backends[0] if isinstance(backends, list) and backends else None
        if isinstance(target, dict):
            kept = {field: target[field] for field in _REFERENCE if field in target}
            item = {"type": "RequestMirror", "requestMirror": {"backendRef": kept, "percent": ALL // 2}}
            changed = {**rule, "filters": [*(rule.get("filters") or []), item]}
            return {**raw, "spec": {**raw["spec"], "rules": [*rules[:index], changed, *rules[index + 1 :]]}}
    return raw


def rules_of(raw: JsonObject) -> list[Any]:
    """Return the rules of a route that was not parsed yet, whatever it holds."""
    spec = raw.get("spec")
    rules = spec.get("rules") if isinstance(spec, dict) else None
    return rules if isinstance(rules, list) else []
