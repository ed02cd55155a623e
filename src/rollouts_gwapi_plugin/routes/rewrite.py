"""Rules that replace the matched prefix, narrowed to a longer path (decisions D14, D22).

Such a rule may have one match only, a PathPrefix, and what is replaced is that very prefix: a rule made from it with a
narrower path must replace what belongs to the narrower one, or every answer would change. The filter may be the rule's
or one of a backend's.
"""

from collections.abc import Iterator
from typing import Any

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.httproute import path_of

_FIELDS = ("urlRewrite", "requestRedirect")


def replaces_prefix(rule: Rule) -> bool:
    """Whether some filter replaces the matched prefix, and so the API wants exactly one match."""
    return any(True for item in _filters(rule) for _ in _replacements(item))


def narrowed(rule: Rule, own: JsonObject, match: JsonObject) -> Rule | None:
    """Return the rule with its filters as they must be for a match inside its own; None where the API can't say it."""
    before, after = path_of(own), path_of(match)
    if before == after or not replaces_prefix(rule):
        return rule
    if before["type"] != "PathPrefix" or after["type"] not in {"PathPrefix", "Exact"}:
        return None
    rest = str(after["value"])[len(str(before["value"]).rstrip("/")) :]
    exact = after["type"] == "Exact"
    fields: dict[str, Any] = {}
    if rule.filters is not None:
        fields["filters"] = [_moved(item, rest, exact=exact) for item in rule.filters]
    if rule.backend_refs is not None:
        fields["backend_refs"] = [
            ref if ref.filters is None else ref.replace(filters=[_moved(i, rest, exact=exact) for i in ref.filters])
            for ref in rule.backend_refs
        ]
    return rule.replace(**fields)


def _filters(rule: Rule) -> Iterator[JsonObject]:
    yield from rule.filters or []
    for ref in rule.backends:
        yield from ref.filters or []


def _replacements(item: JsonObject) -> Iterator[str]:
    for field in _FIELDS:
        path = (item.get(field) or {}).get("path") or {}
        if path.get("type") == "ReplacePrefixMatch":
            yield field


def _moved(item: JsonObject, rest: str, *, exact: bool) -> JsonObject:
    """Return the filter for a match that is longer by `rest`."""
    result = item
    for field in _replacements(item):
        change = item[field]["path"]
        stem = str(change.get("replacePrefixMatch") or "").rstrip("/")
        if exact:
            path = {"type": "ReplaceFullPath", "replaceFullPath": f"{stem}{rest}" or "/"}
        else:
            path = {**change, "replacePrefixMatch": f"{stem}{rest.rstrip('/')}" or "/"}
        result = {**result, field: {**item[field], "path": path}}
    return result
