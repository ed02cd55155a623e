"""What a rollout has on the API at a moment: weights, what was added to the routes, what the ledger records. Pure.

Judged against the routes as they were before the update: where nothing but weights is asked for, nothing else may
differ; at the end nothing at all, the ledger is empty, and no label is left.
"""

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from rollouts_gwapi_plugin.model.base import JsonObject

_LEDGER_KEY = re.compile(r"^(http|grpc|tcp|tls|udp)(ManagedHeaderRoutes|ManagedMirrorRoutes|ExperimentBackends)$")


# The backendRefs of a rule: each one's Service and weight.
Weights = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class RouteTrace:
    """One route; `weights` has those of each rule with the pair, `raw` is the object itself."""

    name: str
    weights: tuple[Weights, ...]
    added_rules: int
    added_backends: int
    raw: JsonObject = field(repr=False)


def trace(route: JsonObject, before: JsonObject, pair: tuple[str, str]) -> RouteTrace:
    """Return what stands on a route; `before` is the route as it was before the update."""
    rules, old = route["spec"].get("rules") or [], before["spec"].get("rules") or []
    backends, own = [_weights(rule) for rule in rules], {name for rule in old for name, _ in _weights(rule)}
    return RouteTrace(
        name=f"{route['kind']} {route['metadata']['name']}",
        weights=tuple(weights for weights in backends if {*pair} <= {name for name, _ in weights}),
        added_rules=len(rules) - len(old),
        added_backends=sum(name not in own for weights in backends for name, _ in weights),
        raw=route,
    )


def wrong_weights(found: RouteTrace, asked: Mapping[str, int]) -> str:
    """Return what is wrong with the weights of the rules with the pair, empty if nothing is; others' may be any."""
    for weights in found.weights:
        if {(name, weight) for name, weight in weights if name in asked} != set(asked.items()):
            return f"{found.name} has the weights {told(weights)}, asked were {told(tuple(asked.items()))}"
    return ""


def leftovers(found: RouteTrace, before: JsonObject, *, done: bool) -> str:
    """Return what differs from the route as it was, weights aside; when the rollout is `done`, in nothing at all."""
    now, then = _users_part(found.raw, weights=done), _users_part(before, weights=done)
    if now["spec"] != then["spec"]:
        return f"{found.name} is not as it was before: {json.dumps(now['spec'])}"
    if done and now["metadata"] != then["metadata"]:
        return f"{found.name} has other labels or annotations than before: {json.dumps(now['metadata'])}"
    return ""


def ledger_entries(config_maps: Iterable[JsonObject], rollout: str) -> int:
    """Return on how many routes the ledger has something of the Rollout (`namespace/name`)."""
    values = [
        json.loads(value)
        for config_map in config_maps
        for key, value in (config_map.get("data") or {}).items()
        if _LEDGER_KEY.match(key)
    ]
    return sum(len(value["rollouts"].get(rollout, {}).get("routes", {})) for value in values)


def told(weights: Weights) -> str:
    """Return weights in one line."""
    return ", ".join(f"{name} {weight}" for name, weight in weights)


def _weights(rule: JsonObject) -> Weights:
    return tuple((ref["name"], int(ref.get("weight", 1))) for ref in rule.get("backendRefs") or [])


def _users_part(route: JsonObject, *, weights: bool) -> JsonObject:
    spec = deepcopy(route["spec"])
    if not weights:
        for rule in spec.get("rules") or []:
            for ref in rule.get("backendRefs") or []:
                ref.pop("weight", None)
    metadata = route["metadata"]
    return {"spec": spec, "metadata": {key: metadata.get(key) or {} for key in ("labels", "annotations")}}
