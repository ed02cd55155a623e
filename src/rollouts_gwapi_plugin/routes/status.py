"""What a route's status says about its gateways (decision D19, semantics of Gateway API conditions).

Takes a route, returns a `Verdict`. Only entries for a parentRef that the spec has now count; an entry of another parent
is left over. A condition older than the route's generation says nothing yet, nor does an Accepted that is Unknown; one
without observedGeneration counts as current.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.managed import mirror_targets

GATEWAY_DEFAULTS = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}


class Standing(Enum):
    """How far the gateways are, from good to bad."""

    USABLE = 0
    BEHIND = 1
    REFUSED = 2


@dataclass(frozen=True)
class Verdict:
    """What the parents say together; the text names parent, controller, condition, reason and message.

    `reported` is False where nobody says whether the route is accepted, which counts as usable.
    """

    standing: Standing
    text: str = ""
    reported: bool = True


def status_verdict(route: Route, names: frozenset[str]) -> Verdict:
    """Return the worst that a parent says; `names` are the Services that are ours. No parents reported: usable."""
    verdicts = [
        _entry_verdict(route, entry, names)
        for entry in (route.status or {}).get("parents") or []
        if isinstance(entry, dict) and _is_parent(route, entry.get("parentRef") or {})
    ]
    return max(verdicts, key=_badness, default=Verdict(Standing.USABLE, reported=False))


def _badness(verdict: Verdict) -> tuple[int, bool]:
    return verdict.standing.value, verdict.reported


def _is_parent(route: Route, reported: JsonObject) -> bool:
    return any(_identity(route, parent) == _identity(route, reported) for parent in route.spec.parent_refs or [])


def _identity(route: Route, parent: JsonObject) -> tuple[Any, ...]:
    given = {field: value for field, value in parent.items() if value is not None}
    filled = {**GATEWAY_DEFAULTS, "namespace": route.metadata.namespace, **given}
    return tuple(filled.get(field) for field in ("group", "kind", "namespace", "name", "sectionName", "port"))


def _entry_verdict(route: Route, entry: JsonObject, names: frozenset[str]) -> Verdict:
    conditions = {item.get("type"): item for item in entry.get("conditions") or [] if isinstance(item, dict)}
    parent = entry.get("parentRef") or {}
    section = f"/{parent['sectionName']}" if parent.get("sectionName") else ""
    who = f"{route}: parent {parent.get('name', '?')}{section} ({entry.get('controllerName', 'unknown controller')})"
    verdict = Verdict(Standing.USABLE, reported="Accepted" in conditions)
    for type_, bad in (("Accepted", "False"), ("ResolvedRefs", "False"), ("PartiallyInvalid", "True")):
        condition = conditions.get(type_)
        if condition is None:
            continue
        behind = _behind(route, condition)
        if type_ == "Accepted" and condition.get("status") not in {"True", "False"}:
            behind = behind or f"Accepted is {condition.get('status') or 'absent'}"
        if behind:
            # A newer generation may turn any condition over: what an old one says is no refusal.
            verdict = max(verdict, Verdict(Standing.BEHIND, f"{who}: {behind}"), key=_badness)
        elif condition.get("status") == bad and (type_ != "ResolvedRefs" or _names_ours(route, condition, names)):
            reason = f"{type_}={bad}, {condition.get('reason', 'no reason')}: {str(condition.get('message', ''))[:256]}"
            return Verdict(Standing.REFUSED, f"{who}: {reason}")
    return verdict


def _behind(route: Route, condition: JsonObject) -> str:
    observed = condition.get("observedGeneration")
    if not isinstance(observed, int) or observed >= route.metadata.generation:
        return ""
    return f"{condition.get('type')} is of generation {observed}, the route is at {route.metadata.generation}"


def _names_ours(route: Route, condition: JsonObject, names: frozenset[str]) -> bool:
    """Whether unresolved references can be ours: the message names one, or names nobody and nobody else is there."""
    words = set(re.split(r"[^A-Za-z0-9.-]+", str(condition.get("message", ""))))
    # A Service may be named with its domain, or at a sentence's end; its own name has no dots.
    words |= {word.partition(".")[0] for word in words}
    backends = {ref.name for rule in route.rules for ref in (*rule.backends, *mirror_targets(rule))}
    if words & backends:
        return bool(words & names)
    return backends <= names
