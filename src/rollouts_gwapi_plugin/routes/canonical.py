"""Rules modulo the API's defaults: when are two rules the same, and what is a rule's fingerprint.

The API server fills in defaults (a header match is Exact, a backend is a Service of the core group, …), so what comes
back differs from what was sent without being different. `canonical_*` fill the same defaults in.
"""

import hashlib
import json
from typing import Any

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import BackendRef, Rule

# Half of a SHA-256: collisions are out of reach, and a ledger of many rules stays small.
FINGERPRINT_LENGTH = 32
BackendIdentity = tuple[str, str, str, str]


def backend_identity(ref: BackendRef, route_namespace: str) -> BackendIdentity:
    """Group, kind, namespace and name of a backend; ports do not tell backends apart (D9)."""
    group, kind = ref.group_kind
    return group, kind, ref.namespace or route_namespace, ref.name


def canonical_matches(matches: list[JsonObject] | None, kind: str) -> list[JsonObject]:
    """Return matches with the API's defaults; an HTTPRoute's rule without matches has one for every path."""
    return [canonical_match(match, kind) for match in matches or [{}]]


def canonical_match(match: JsonObject, kind: str) -> JsonObject:
    """One match with the API's defaults, header names without case, empty lists absent."""
    result = {key: value for key, value in match.items() if value not in (None, [])}
    if kind == "HTTPRoute":
        result["path"] = _filled(match.get("path"), type="PathPrefix", value="/")
    if isinstance(match.get("method"), dict):
        result["method"] = _filled(match["method"], type="Exact")
    for field in ("headers", "queryParams"):
        if field in result:
            entries = [_filled(entry, type="Exact") for entry in result[field]]
            if field == "headers":
                entries = [{**entry, "name": str(entry.get("name", "")).lower()} for entry in entries]
            result[field] = sorted(entries, key=lambda entry: str(entry.get("name", "")))
    return result


def _filled(value: JsonObject | None, /, **defaults: str) -> JsonObject:
    """Return an object with the API's defaults, which also stand in for explicit nulls."""
    return {**defaults, **{key: item for key, item in (value or {}).items() if item is not None}}


def _canonical_filters(filters: list[JsonObject] | None) -> list[JsonObject]:
    result = []
    for item in filters or []:
        mirror = item.get("requestMirror")
        if isinstance(mirror, dict) and isinstance(mirror.get("backendRef"), dict):
            target = _filled(mirror["backendRef"], group="", kind="Service")
            percent = {} if mirror.get("percent") == 100 else {k: v for k, v in mirror.items() if k == "percent"}  # noqa: PLR2004 - per cent
            rest = {key: value for key, value in mirror.items() if key not in {"backendRef", "percent"}}
            result.append({**item, "requestMirror": {**rest, **percent, "backendRef": target}})
        else:
            result.append(item)
    return result


def fingerprint(rule: Rule, kind: str, route_namespace: str, experiments: frozenset[BackendIdentity]) -> str:
    """Tell a rule by matches, filters and backend identities, without name, weights and experiment backends (D7)."""
    backends = [backend_identity(ref, route_namespace) for ref in rule.backends]
    content = {
        "matches": canonical_matches(rule.matches, kind),
        "filters": _canonical_filters(rule.filters),
        "backends": [list(identity) for identity in backends if identity not in experiments],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_LENGTH]


def same_rule(left: Rule, right: Rule, kind: str) -> bool:
    """Whether two rules are the same modulo defaults, their names aside."""
    return _canonical_rule(left, kind) == _canonical_rule(right, kind)


def _canonical_rule(rule: Rule, kind: str) -> JsonObject:
    raw: JsonObject = rule.dump()
    raw.pop("name", None)
    raw["matches"] = canonical_matches(rule.matches, kind)
    raw["filters"] = _canonical_filters(rule.filters)
    raw["backendRefs"] = [_canonical_backend(ref) for ref in rule.backends]
    return {key: value for key, value in raw.items() if value not in (None, [])}


def _canonical_backend(ref: BackendRef) -> dict[str, Any]:
    group, kind = ref.group_kind
    return {**ref.dump(), "group": group, "kind": kind, "weight": ref.effective_weight}
