"""Which ReplicaSet the controller scales in one reconcile (reconcileCanaryReplicaSets and below). Pure.

Takes the cluster, the weights before and after this reconcile's calls, and a time; returns the cluster with at most
one of stable, canary and the old ReplicaSets scaled, in this order, and whether one was. New pods are not available
yet.
"""

from dataclasses import dataclass, replace

from rollouts_gwapi_plugin.embedded.host import scaling
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, ReplicaSet
from rollouts_gwapi_plugin.embedded.host.rollout import DEFAULT_SCALE_DOWN_DELAY, RolloutReader
from rollouts_gwapi_plugin.model.base import JsonObject

DEFAULT_MAX_UNAVAILABLE = "25%"


@dataclass(frozen=True)
class Moment:
    """What scaling depends on beside the cluster; `aborted` includes an abort of this reconcile."""

    now: float
    weights: JsonObject | None
    aborted: bool


def scale(cluster: Cluster, moment: Moment) -> tuple[Cluster, bool]:
    """Return the cluster with one ReplicaSet scaled, and whether one was."""
    if cluster.read.spec.get("paused"):
        return cluster, False
    cluster = _without_deadlines(cluster, moment)
    for step in (_scale_stable, _scale_new, _scale_others):
        scaled = step(cluster, moment)
        if any(scaled.replica_sets[name].desired != found.desired for name, found in cluster.replica_sets.items()):
            return scaled, True
        cluster = scaled
    return cluster, False


def _resized(cluster: Cluster, pod_hash: str, desired: int) -> Cluster:
    found = cluster.replica_sets[pod_hash]
    # Pods that are taken away are gone at once; new ones have to start.
    return cluster.with_replica_set(pod_hash, replace(found, desired=desired, available=min(found.available, desired)))


def _delays_on_abort(cluster: Cluster, moment: Moment) -> bool:
    """Tell whether an aborted canary keeps its pods for a while (shouldDelayScaleDownOnAbort)."""
    delay, chosen = scaling.abort_delay(cluster.read)
    waits = moment.aborted and cluster.stable is not None and delay is not None
    return waits and (chosen or not cluster.read.dynamic)


def _without_deadlines(cluster: Cluster, moment: Moment) -> Cluster:
    read = cluster.read
    for pod_hash in {read.pod_hash, read.stable_hash} & set(cluster.replica_sets):
        if pod_hash == read.pod_hash and _delays_on_abort(cluster, moment):
            continue
        cluster = cluster.with_replica_set(pod_hash, replace(cluster.replica_sets[pod_hash], scale_down_at=None))
    return cluster


def _scale_stable(cluster: Cluster, moment: Moment) -> Cluster:
    del moment
    read = cluster.read
    if cluster.stable is None or read.stable_hash == read.pod_hash:
        return cluster
    # By the weights of the previous reconcile: stable's pods follow its traffic, one reconcile behind.
    return _resized(cluster, read.stable_hash, scaling.replica_counts(cluster, read.weights)[1])


def _scale_new(cluster: Cluster, moment: Moment) -> Cluster:
    read, found = cluster.read, cluster.new
    if found is None:
        return cluster
    wanted = scaling.replica_counts(cluster, moment.weights)[0]
    if _delays_on_abort(cluster, moment):
        delay, _ = scaling.abort_delay(read)
        if found.scale_down_at is None:
            stable_is_whole = cluster.stable is not None and cluster.stable.available == read.replicas
            at = moment.now + (delay or 0) if stable_is_whole else None
            return cluster.with_replica_set(read.pod_hash, replace(found, scale_down_at=at))
        if moment.now < found.scale_down_at:
            return cluster
        wanted = 0
    return _resized(cluster, read.pod_hash, wanted)


def _scale_others(cluster: Cluster, moment: Moment) -> Cluster:
    """End old ReplicaSets as far as enough pods remain (scaleDownOldReplicaSetsForCanary)."""
    read = cluster.read
    kept = {read.pod_hash, read.stable_hash, *cluster.selectors.values()}
    spare = sum(found.available for found in cluster.replica_sets.values()) - (read.replicas - _max_unavailable(read))
    for pod_hash, found in cluster.replica_sets.items():
        if pod_hash in kept or not found.desired or spare <= 0:
            continue
        waiting = _waiting(read, found, moment.now)
        if waiting is not None:
            cluster = cluster.with_replica_set(pod_hash, waiting)
            continue
        spare -= found.desired
        cluster = _resized(cluster, pod_hash, 0)
    return cluster


def _waiting(read: RolloutReader, found: ReplicaSet, now: float) -> ReplicaSet | None:
    """Return the ReplicaSet with its deadline while it is to stay, None once it is to end."""
    delay = read.canary.get("scaleDownDelaySeconds")
    delay = DEFAULT_SCALE_DOWN_DELAY if delay is None else int(delay)
    if found.scale_down_at is not None:
        return found if now < found.scale_down_at else None
    if not read.fully_promoted or read.dynamic or not delay:
        return None
    return replace(found, scale_down_at=now + delay)


def _max_unavailable(read: RolloutReader) -> int:
    value = str(read.canary.get("maxUnavailable", DEFAULT_MAX_UNAVAILABLE))
    return read.replicas * int(value[:-1]) // 100 if value.endswith("%") else int(value)
