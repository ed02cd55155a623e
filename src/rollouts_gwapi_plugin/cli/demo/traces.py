"""What a rollout has on the API at a moment: weights, what was added to the routes, what the ledger records. Pure.

Judged against the routes as they were before the update: where nothing but weights is asked for, nothing else may
differ; at the end nothing at all, the ledger is empty, and no label is left. A RouteTable's routes are rules here, and
its destinations backends; a destination with weight 0 is not there.
"""

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from rollouts_gwapi_plugin.embedded.dataplane.routetable import effective_weights
from rollouts_gwapi_plugin.model.base import JsonObject

_LEDGER_KEY = re.compile(
    r"(http|grpc|tcp|tls|udp|routeTable)(ManagedHeaderRoutes|ManagedMirrorRoutes|ExperimentBackends)"
)
_SECTIONS = ("http", "tcp", "tls")

# The backends of a rule: each one's Service and weight.
Weights = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class RouteTrace:
    """One route; `weights` has those of each rule with the pair (stable, canary), `raw` is the object itself."""

    name: str
    weights: tuple[Weights, ...]
    added_rules: int
    added_backends: int
    pair: tuple[str, str]
    raw: JsonObject = field(repr=False)


def trace(route: JsonObject, before: JsonObject, pair: tuple[str, str]) -> RouteTrace:
    """Return what stands on a route; `before` is the route as it was before the update."""
    rules, old = _rules(route), _rules(before)
    backends, own = [_weights(rule) for rule in rules], {name for rule in old for name, _ in _weights(rule)}
    if _is_table(route):
        # There stable alone makes a route a weighted one: the canary is added, and out of it with weight 0.
        own |= {*pair}
        weighted = [
            _with_pair(weights, pair)
            for rule, weights in zip(rules, backends, strict=True)
            if _is_weighted(rule, old, pair[0])
        ]
    else:
        weighted = [weights for weights in backends if {*pair} <= {name for name, _ in weights}]
    return RouteTrace(
        name=f"{route['kind']} {route['metadata']['name']}",
        weights=tuple(weighted),
        added_rules=len(rules) - len(old),
        added_backends=sum(name not in own for weights in backends for name, _ in weights),
        pair=pair,
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
    now, then = (_users_part(route, found.pair, weights=done) for route in (found.raw, before))
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
        if _LEDGER_KEY.fullmatch(key)
    ]
    return sum(len(value["rollouts"].get(rollout, {}).get("routes", {})) for value in values)


def told(weights: Weights) -> str:
    """Return weights in one line."""
    return ", ".join(f"{name} {weight}" for name, weight in weights)


def _is_table(route: JsonObject) -> bool:
    return bool(route["kind"] == "RouteTable")


def _rules(route: JsonObject) -> list[JsonObject]:
    spec = route["spec"]
    sections = _SECTIONS if _is_table(route) else ("rules",)
    return [rule for section in sections for rule in spec.get(section) or []]


def _backends(rule: JsonObject) -> list[JsonObject]:
    found: list[JsonObject] = rule.get("backendRefs") or (rule.get("forwardTo") or {}).get("destinations") or []
    return found


def _weights(rule: JsonObject) -> Weights:
    backends = _backends(rule)
    if "forwardTo" not in rule:
        return tuple((ref["name"], int(ref.get("weight", 1))) for ref in backends)
    try:
        shares = effective_weights(backends)
    except ValueError:
        # Gloo refuses it; what stands there is told.
        shares = [int(raw.get("weight") or 0) for raw in backends]
    return tuple((raw["ref"]["name"], share) for raw, share in zip(backends, shares, strict=True))


def _is_weighted(rule: JsonObject, old: list[JsonObject], stable: str) -> bool:
    """Whether a RouteTable's route has stable, or is named as one that had."""
    named = [one for one in old if one.get("name") and one.get("name") == rule.get("name")]
    return any(name == stable for one in (rule, *named) for name, _ in _weights(one))


def _with_pair(weights: Weights, pair: tuple[str, str]) -> Weights:
    """Return the weights with stable and canary first, 0 where they are not there."""
    there = dict(weights)
    return (*((name, there.get(name, 0)) for name in pair), *(one for one in weights if one[0] not in pair))


def _users_part(route: JsonObject, pair: tuple[str, str], *, weights: bool) -> JsonObject:
    copy = deepcopy(route)
    for rule in _rules(copy) if not weights else ():
        if _is_table(route) and "forwardTo" in rule:
            rule["forwardTo"]["destinations"] = [raw for raw in _backends(rule) if raw["ref"]["name"] not in pair]
        for backend in _backends(rule):
            backend.pop("weight", None)
    metadata = route["metadata"]
    return {"spec": copy["spec"], "metadata": {key: metadata.get(key) or {} for key in ("labels", "annotations")}}
