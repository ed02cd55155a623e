"""What the API would refuse, found before the write and said in our words (decision D22)."""

from typing import Final

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.routes import Route, Rule
from rollouts_gwapi_plugin.routes.desired import MAX_API_WEIGHT
from rollouts_gwapi_plugin.routes.kinds import RouteKind

# Gateway API 1.2 and later, HTTPRoute and GRPCRoute; TCP, TLS and UDP share what applies to them.
MAX_RULES: Final = 16
MAX_BACKENDS: Final = 16
MAX_FILTERS: Final = 16
MAX_MATCHES: Final = 64
MAX_MATCHES_OF_ROUTE: Final = 128
MAX_HEADERS: Final = 16


def check_limits(before: Route, after: Route, kind: RouteKind) -> None:
    """Refuse a change that the API would refuse; what was over a limit before is not our doing and is let through.

    Raises:
        RouteError: with the object, the field, the value, the limit and a way out.

    """
    if after is before:
        return
    version = after.api_version.rpartition("/")[2]
    most = 1 if version in kind.one_rule_versions else MAX_RULES
    _at_most(after, "spec.rules", len(before.rules), len(after.rules), most)
    if kind.match is not None:
        old, new = _matches(before), _matches(after)
        _at_most(after, "matches of all rules together", old, new, MAX_MATCHES_OF_ROUTE)
    for index, rule in enumerate(after.rules):
        if not any(rule is old for old in before.rules):
            _check_rule(after, f"spec.rules[{index}]" + (f" ({rule.name})" if rule.name else ""), rule)


def _matches(route: Route) -> int:
    return sum(len(rule.matches or [{}]) for rule in route.rules)


def _at_most(route: Route, field: str, before: int, count: int, limit: int) -> None:
    if count > max(limit, before):
        raise RouteError(
            f"{route}: {field}: {count} needed, the Gateway API takes {limit}; nothing was written."
            " Split the route, or let the plugin manage one rule only (ruleName)"
        )


def _check_rule(route: Route, where: str, rule: Rule) -> None:
    _at_most(route, f"{where}.backendRefs", 0, len(rule.backends), MAX_BACKENDS)
    _at_most(route, f"{where}.filters", 0, len(rule.filters or []), MAX_FILTERS)
    _at_most(route, f"{where}.matches", 0, len(rule.matches or []), MAX_MATCHES)
    for number, match in enumerate(rule.matches or []):
        _at_most(route, f"{where}.matches[{number}].headers", 0, len(match.get("headers") or []), MAX_HEADERS)
    for number, ref in enumerate(rule.backends):
        if not 0 <= ref.effective_weight <= MAX_API_WEIGHT:
            raise RouteError(
                f"{route}: {where}.backendRefs[{number}] ({ref.name}): weight {ref.effective_weight} is outside"
                f" 0..{MAX_API_WEIGHT}; nothing was written"
            )
