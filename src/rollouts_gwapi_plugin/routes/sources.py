"""The rules that managed rules are made from, and what has been made (decisions D13 to D15)."""

from dataclasses import dataclass

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import BackendRef, Rule
from rollouts_gwapi_plugin.routes.pair import Pair


@dataclass(frozen=True)
class Source:
    """A weighted rule: the user's, or (`mirrored`) a mirror rule of ours without our filter."""

    rule: Rule
    # The place of the user's rule among the user's rules.
    index: int
    mirrored: bool = False


@dataclass(frozen=True)
class Made:
    """A managed rule, not named yet; `before_source` where it must win a tie against its source."""

    rule: Rule
    index: int
    before_source: bool


def matches_of(rule: Rule) -> list[JsonObject]:
    """Return the rule's matches; no matches mean one that matches everything."""
    return rule.matches or [{}]


def forbids_several_matches(rule: Rule) -> bool:
    """Whether the API wants exactly one match: a filter replaces the matched prefix."""
    for item in rule.filters or []:
        for field in ("urlRewrite", "requestRedirect"):
            path = (item.get(field) or {}).get("path") or {}
            if path.get("type") == "ReplacePrefixMatch":
                return True
    return False


def canary_of(rule: Rule, pair: Pair) -> BackendRef:
    """Return the rule's first canary backend without its weight, which then is the API's default of 1."""
    first = next(ref for ref in rule.backends if pair.is_canary(ref))
    raw = first.dump()
    raw.pop("weight", None)
    return BackendRef.model_validate(raw)
