"""Weights of one rule, experiment backends included (decisions D9, D11, D31).

Takes a rule that has the pair and returns it with canary = w, experiments as given and stable the rest. Foreign
backends keep content and order. A backend that has its weight already stays the same object, and so does a rule.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import BackendRef, Rule
from rollouts_gwapi_plugin.routes.canonical import BackendIdentity, backend_identity
from rollouts_gwapi_plugin.routes.desired import MAX_API_WEIGHT, Desired, Destination
from rollouts_gwapi_plugin.routes.limits import MAX_BACKENDS
from rollouts_gwapi_plugin.routes.pair import Pair


class ExperimentError(RouteError):
    """An experiment's backends can't be set on this route; the pair alone can (D31)."""


@dataclass(frozen=True)
class Split:
    """The numbers of a rule, and which backends are experiments of this Rollout."""

    stable: int
    canary: int
    destinations: tuple[Destination, ...]
    ours: frozenset[BackendIdentity]


def split_of(desired: Desired, pair: Pair, recorded: Iterable[BackendIdentity], *, experiments: bool = True) -> Split:
    """Return the numbers; without experiments their share stays with stable, and what stands of them goes (D31)."""
    destinations = desired.destinations if experiments else ()
    stable = max(0, desired.max_weight - desired.weight - sum(destination.weight for destination in destinations))
    named = {pair.experiment(destination.name, desired.namespace) for destination in desired.destinations}
    ours = frozenset({*recorded, *named}) - {pair.identity(pair.stable), pair.identity(pair.canary)}
    return Split(stable, desired.weight, destinations, ours)


def weigh(rule: Rule, pair: Pair, split: Split, desired: Desired) -> Rule:
    """Return the rule with the split's weights.

    Raises:
        ExperimentError: an experiment's Service has no port that fits, or the rule no room for it.

    """
    heaviest = max((destination.weight for destination in split.destinations), default=0)
    if heaviest > MAX_API_WEIGHT:
        raise ExperimentError(f"an experiment asks for weight {heaviest}, the Gateway API takes {MAX_API_WEIGHT}")
    wanted = _experiment_refs(rule, pair, split, desired)
    backends: list[BackendRef] = []
    for ref in rule.backends:
        if pair.is_stable(ref):
            backends.append(ref.with_weight(split.stable))
        elif pair.is_canary(ref):
            backends.append(ref.with_weight(split.canary))
        elif backend_identity(ref, pair.route_namespace) not in split.ours:
            backends.append(ref)
        elif (same := _same(wanted, ref)) is not None:
            wanted.remove(same)
            backends.append(ref.with_weight(same.effective_weight))
    if wanted and len(backends) + len(wanted) > MAX_BACKENDS:
        names = ", ".join(destination.name for destination in split.destinations)
        raise ExperimentError(
            f"a rule would have {len(backends) + len(wanted)} backendRefs with the experiment's ({names}),"
            f" the Gateway API takes {MAX_BACKENDS}"
        )
    return rule.with_backends([*backends, *wanted])


def weigh_copy(rule: Rule, pair: Pair, split: Split, namespace: str) -> Rule:
    """Return another Rollout's mirror rule with the split's weights.

    Its backends stay, since by them its own Rollout may know it: the share of an experiment that is not there stays
    with stable, and one that is over has no share.
    """
    shares = {pair.experiment(item.name, namespace): item.weight for item in split.destinations}
    there = {backend_identity(ref, pair.route_namespace) for ref in rule.backends}
    absent = sum(weight for identity, weight in shares.items() if identity not in there)

    def weight(ref: BackendRef) -> int | None:
        if pair.is_stable(ref):
            return split.stable + absent
        if pair.is_canary(ref):
            return split.canary
        identity = backend_identity(ref, pair.route_namespace)
        return shares.get(identity, 0) if identity in split.ours else None

    weights = [(ref, weight(ref)) for ref in rule.backends]
    return rule.with_backends([ref if share is None else ref.with_weight(share) for ref, share in weights])


def _same(wanted: list[BackendRef], ref: BackendRef) -> BackendRef | None:
    return next((other for other in wanted if other.name == ref.name and other.port == ref.port), None)


def _experiment_refs(rule: Rule, pair: Pair, split: Split, desired: Desired) -> list[BackendRef]:
    """Return the references that the rule should have, one for each backend of stable, so that shares hold for each."""
    refs: list[BackendRef] = []
    stables = [ref for ref in rule.backends if pair.is_stable(ref)]
    for destination in split.destinations:
        identity = pair.experiment(destination.name, desired.namespace)
        there = [ref for ref in rule.backends if backend_identity(ref, pair.route_namespace) == identity]
        for index, stable in enumerate(stables):
            raw: JsonObject = {
                field: value
                for field, value in stable.dump().items()
                if field in {"group", "kind", "namespace"} and value is not None
            }
            if identity[2] != (stable.namespace or pair.route_namespace):
                raw["namespace"] = identity[2]
            # What stands there has its port already; the Service is not asked again.
            port = there[index].port if index < len(there) else _port(destination, stable.port, desired)
            if port is not None:
                raw["port"] = port
            refs.append(BackendRef.model_validate({**raw, "name": destination.name, "weight": destination.weight}))
    return refs


def unresolved(rules: Iterable[Rule], pair: Pair, desired: Desired) -> tuple[str, ...]:
    """Return the destinations whose Service must be read before the weighted rules can have them."""
    names: dict[str, None] = {}
    for rule in rules:
        present: dict[BackendIdentity, int] = {}
        for ref in rule.backends:
            identity = backend_identity(ref, pair.route_namespace)
            present[identity] = present.get(identity, 0) + 1
        stables = present.get(pair.identity(pair.stable), 0)
        for destination in desired.destinations:
            identity = pair.experiment(destination.name, desired.namespace)
            if destination.ports is None and present.get(identity, 0) < stables:
                names[destination.name] = None
    return tuple(names)


def _port(destination: Destination, own: int | None, desired: Desired) -> int | None:
    """Return the Service's port for a port of the pair: the same number, else the same name, else its only port."""
    ports = destination.ports or ()
    numbers = [port.port for port in ports]
    if own is None or own in numbers:
        return own
    names = {port.name for port in desired.stable_ports if port.port == own and port.name}
    by_name = [port.port for port in ports if port.name in names]
    if by_name or len(numbers) == 1:
        return (by_name or numbers)[0]
    listing = ", ".join(f"{port.port} ({port.name})" if port.name else str(port.port) for port in ports) or "no ports"
    raise ExperimentError(
        f"experiment Service {desired.namespace}/{destination.name}: no port fits port {own} of Service"
        f" {desired.stable}; it has {listing}. Name the container port as the stable Service's port is named,"
        f" or expose {own}"
    )
