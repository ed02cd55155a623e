"""What the API would refuse, found before the write and said in our words (decision D22)."""

from collections.abc import Callable
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
# What a rule holds in every release: Gateway API 1.1 and earlier take no more.
MATCHES_OF_ALL_RELEASES: Final = 8
MAX_MATCHES_OF_ROUTE: Final = 128
MAX_HEADERS: Final = 16


def check_limits(
    before: Route, after: Route, kind: RouteKind, most_rules: int | None = None, most_matches: int | None = None
) -> None:
    """Refuse a change that the API would refuse; what was over a limit before is not our doing and is let through.

    Args:
        before: The route as it is.
        after: The route as it would be.
        kind: Its kind.
        most_rules: How many rules the installed CRD takes, if that is known.
        most_matches: How many matches a rule, likewise.

    Raises:
        RouteError: with the object, the field, the value, the limit and a way out.

    """
    if after is before:
        return
    version = after.api_version.rpartition("/")[2]
    most = 1 if version in kind.one_rule_versions else most_rules or MAX_RULES
    _at_most(after, "spec.rules", len(before.rules), len(after.rules), most, _who(kind, most_rules))
    if kind.match is not None:
        old, new = _matches(before), _matches(after)
        _at_most(after, "matches of all rules together", old, new, MAX_MATCHES_OF_ROUTE)
    for index, rule in enumerate(after.rules):
        if not any(rule is old for old in before.rules):
            where = f"spec.rules[{index}]" + (f" ({rule.name})" if rule.name else "")
            _check_rule(before, after, where, rule)
            # A newer API may take more than we know: what some rule of the route has is no reason to refuse another.
            known = max((len(old.matches or []) for old in before.rules), default=0)
            limit = most_matches or MAX_MATCHES
            _at_most(after, f"{where}.matches", known, len(rule.matches or []), limit, _who(kind, most_matches))


def _who(kind: RouteKind, known: int | None) -> str:
    """Return whose limit it is: the installed CRD's where that is known."""
    return "the Gateway API" if known is None else f"the installed {kind.kind} CRD"


def _matches(route: Route) -> int:
    return sum(len(rule.matches or [{}]) for rule in route.rules)


def _at_most(route: Route, field: str, before: int, count: int, limit: int, who: str = "the Gateway API") -> None:
    if count > max(limit, before):
        raise RouteError(
            f"{route}: {field}: {count} needed, {who} takes {limit}; nothing was written."
            " Split the route, or let the plugin manage one rule only (ruleName)"
        )


def _check_rule(before: Route, route: Route, where: str, rule: Rule) -> None:
    lists: tuple[tuple[str, Callable[[Rule], int], int], ...] = (
        ("backendRefs", lambda item: len(item.backends), MAX_BACKENDS),
        ("filters", lambda item: len(item.filters or []), MAX_FILTERS),
        ("matches[].headers", _most_headers, MAX_HEADERS),
    )
    for field, count, limit in lists:
        known = max((count(old) for old in before.rules), default=0)
        _at_most(route, f"{where}.{field}", known, count(rule), limit)
    for number, ref in enumerate(rule.backends):
        if not 0 <= ref.effective_weight <= MAX_API_WEIGHT:
            raise RouteError(
                f"{route}: {where}.backendRefs[{number}] ({ref.name}): weight {ref.effective_weight} is outside"
                f" 0..{MAX_API_WEIGHT}; nothing was written"
            )


def _most_headers(rule: Rule) -> int:
    return max((len(match.get("headers") or []) for match in rule.matches or []), default=0)
