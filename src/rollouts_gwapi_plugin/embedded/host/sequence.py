"""The actions of one reconcile up to the end of traffic routing, in the controller's order. Pure.

Takes what the controller knows; returns a `Plan`: Service switches and plugin calls. A call that fails ends the
reconcile there; VerifyWeight, the last one, never does. Nothing is sent in a reconcile that only takes note of a new
template or new steps, and all from the availability check on is left out while stable lacks pods for its share.
"""

from dataclasses import dataclass

from rollouts_gwapi_plugin.embedded.host import scaling
from rollouts_gwapi_plugin.embedded.host.cluster import (
    NEWEST,
    RESETS_BEFORE_HASH,
    Action,
    Call,
    Cluster,
    SwitchService,
    Version,
)
from rollouts_gwapi_plugin.embedded.host.desired import Branch, Desired, desired_traffic, dynamic_rollback_hash
from rollouts_gwapi_plugin.embedded.host.rollout import RolloutReader
from rollouts_gwapi_plugin.model.base import JsonObject


@dataclass(frozen=True)
class Plan:
    """What is to be done; `desired` is None where the reconcile has no traffic routing."""

    actions: tuple[Action, ...] = ()
    desired: Desired | None = None
    canary_hash: str = ""
    stable_hash: str = ""

    @property
    def sets_weight(self) -> bool:
        """Whether the calls get as far as the weight."""
        return any(isinstance(action, Call) and action.method == "SetWeight" for action in self.actions)

    @property
    def calls(self) -> list[Call]:
        """The plugin calls alone."""
        return [action for action in self.actions if isinstance(action, Call)]


def plan(cluster: Cluster, version: Version = NEWEST) -> Plan:
    """Return what the controller of a version does in this reconcile."""
    read = cluster.read
    if read.changed:
        return Plan()
    services = _Services(cluster)
    _switch_services(cluster, services)
    if not (read.traffic_routing.get("plugins") or {}):
        return Plan(tuple(services.switches))
    desired = desired_traffic(cluster, version)
    if desired.branch is Branch.ABORTED and (not read.dynamic or desired.weight == 0):
        services.ensure(read.canary.get("canaryService") or "", read.stable_hash, checked=False)
    actions: list[Action] = list(services.switches)
    if desired.removes:
        actions.append(Call("RemoveManagedRoutes", {"rollout": cluster.rollout}))
    canary_hash = read.pod_hash if cluster.new is not None else ""
    if desired.branch is Branch.DYNAMIC_ROLLBACK:
        canary_hash = dynamic_rollback_hash(cluster) or ""
    stable_hash = read.stable_hash if cluster.stable is not None else ""
    if _stable_suffices(cluster, desired):
        actions += _step_call(read)
        actions += _weight_calls(cluster, desired, version, canary_hash, stable_hash)
    return Plan(tuple(actions), desired, canary_hash, stable_hash)


class _Services:
    """The Services' selectors as they change during one reconcile."""

    def __init__(self, cluster: Cluster) -> None:
        self.switches: list[SwitchService] = []
        self._cluster = cluster
        self._selectors = dict(cluster.selectors)

    def ensure(self, service: str, pod_hash: str, *, checked: bool) -> None:
        """Switch a Service unless it stands or must wait for pods (ensureSVCTargets)."""
        found = self._cluster.replica_sets.get(pod_hash)
        if found is None or not service or self._selectors.get(service) == pod_hash:
            return
        adopted = service in self._selectors
        if checked and ((not adopted and not found.fully_available) or found.available == 0):
            return
        self._selectors[service] = pod_hash
        self.switches.append(SwitchService(service, pod_hash))


def _switch_services(cluster: Cluster, services: _Services) -> None:
    """Switch as reconcilePingAndPongService and reconcileStableAndCanaryService do.

    While an update is aborted the canary Service is so switched to the canary and, later in the same reconcile, back to
    stable, as long as the canary has pods.
    """
    read = cluster.read
    stable_service, canary_service = read.services()
    if read.ping_pong:
        if not read.fully_promoted:
            services.ensure(canary_service, read.pod_hash, checked=False)
        return
    services.ensure(stable_service, read.stable_hash, checked=True)
    if dynamic_rollback_hash(cluster) is None:
        services.ensure(canary_service, read.pod_hash, checked=True)


def _stable_suffices(cluster: Cluster, desired: Desired) -> bool:
    """Tell whether stable has the pods for its share (checkReplicasAvailable)."""
    read, stable = cluster.read, cluster.stable
    if stable is None:
        return False
    needed = (read.max_weight - desired.weight) * read.replicas // read.max_weight
    return stable.available >= needed or scaling.enough(read, stable, needed)


def _step_call(read: RolloutReader) -> list[Action]:
    step = read.step or {}
    if (read.revision or 0) <= 1:
        return []
    calls: list[Action] = []
    for field, method in (("setHeaderRoute", "SetHeaderRoute"), ("setMirrorRoute", "SetMirrorRoute")):
        if step.get(field) is not None:
            calls.append(Call(method, {"rollout": read.raw, field: step[field]}))
    return calls


def _weight_calls(
    cluster: Cluster, desired: Desired, version: Version, canary_hash: str, stable_hash: str
) -> list[Action]:
    rollout, read = {"rollout": cluster.rollout}, cluster.read
    others: JsonObject = {"additionalDestinations": [destination.json() for destination in desired.destinations]}
    weight: JsonObject = {**rollout, "desiredWeight": desired.weight, **others}
    hashes: JsonObject = {**rollout, "canaryHash": canary_hash, "stableHash": stable_hash, **others}
    calls: list[Action] = []
    vanished = cluster.new is None or cluster.new.available == 0
    if version >= RESETS_BEFORE_HASH and vanished and (read.canary_weight or 0) > 0:
        calls.append(Call("SetWeight", weight))
    return [*calls, Call("UpdateHash", hashes), Call("SetWeight", weight), Call("VerifyWeight", weight)]
