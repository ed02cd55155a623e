"""Managed mirror rules: what source and step both match is answered as before, and copied to the canary (D12, D15)."""

from collections.abc import Sequence
from typing import Final

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import RouteMatch, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.canonical import canonical_match
from rollouts_gwapi_plugin.routes.l7 import MatchKind, mirror_headers, with_headers
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.sources import Made, Source, canary_of, forbids_several_matches, matches_of

ALL: Final = 100


def mirror_percent(step: SetMirrorRoute) -> int:
    """Return the share to mirror; absent means all, and so does 0 over net/rpc, where it can't be told apart (D3).

    Raises:
        RouteError: it is no percentage.

    """
    percent = ALL if step.percentage is None else step.percentage
    if not 0 <= percent <= ALL:
        raise RouteError(f"setMirrorRoute {step.name}.percentage: {percent} is not between 0 and 100")
    return percent


def mirror_rules(
    step: SetMirrorRoute, sources: Sequence[Source], pair: Pair, match_kind: MatchKind, kind: str
) -> tuple[Made, ...]:
    """Make the rules of one managed mirror route: the intersection of each source rule with each entry of the step.

    Raises:
        RouteError: an entry asks for what the kind can't match; the text names the field.

    """
    percent = mirror_percent(step)
    made: list[Made] = []
    for source in sources if percent else ():
        merged: list[JsonObject] = []
        for match in matches_of(source.rule):
            for index, asked in enumerate(step.match):
                narrowed = _narrow(match, asked, match_kind, f"setMirrorRoute {step.name}.match[{index}]")
                if narrowed is not None and canonical_match(narrowed, kind) not in (
                    canonical_match(other, kind) for other in merged
                ):
                    merged.append(narrowed)
        groups = [[match] for match in merged] if forbids_several_matches(source.rule) else [merged] if merged else []
        made += [Made(_mirror(source.rule, group, pair, percent), source.index, before_source=True) for group in groups]
    return tuple(made)


def _narrow(match: JsonObject, asked: RouteMatch, match_kind: MatchKind, where: str) -> JsonObject | None:
    narrowed = match_kind.intersect(match, asked, where)
    headers = mirror_headers(asked.headers, where)
    return None if narrowed is None else with_headers(narrowed, headers)


def _mirror(source: Rule, matches: list[JsonObject], pair: Pair, percent: int) -> Rule:
    backend = canary_of(source, pair).dump()
    target = {field: backend[field] for field in ("group", "kind", "namespace", "name", "port") if field in backend}
    mirror: JsonObject = {"backendRef": target}
    if percent < ALL:
        mirror["percent"] = percent
    filters = [*(source.filters or []), {"type": "RequestMirror", "requestMirror": mirror}]
    return source.replace(matches=matches, filters=filters)
