"""How many pods the controller wants, and when that is reached (utils/replicaset/canary.go). Pure."""

from math import ceil

from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, ReplicaSet
from rollouts_gwapi_plugin.embedded.host.rollout import DEFAULT_ABORT_DELAY, RolloutReader
from rollouts_gwapi_plugin.model.base import JsonObject


def replica_counts(cluster: Cluster, weights: JsonObject | None) -> tuple[int, int]:
    """Return how many canary and stable pods are wanted (CalculateReplicaCountsForTrafficRoutedCanary)."""
    read = cluster.read
    explicit, weight = _canary_scale(cluster)
    canary = explicit if explicit is not None else _at_least(read, _share(read, weight))
    if not read.dynamic:
        return canary, read.replicas
    stable = _share(read, read.max_weight - weight)
    if weights is not None:
        stable = max(stable, _share(read, weights["stable"]["weight"]))
        if read.aborted:
            canary = max(canary, _share(read, weights["canary"]["weight"]))
    return _at_least(read, canary), _at_least(read, stable)


def at_desired_counts(cluster: Cluster, weights: JsonObject | None) -> bool:
    """Tell whether canary and stable have the wanted pods (AtDesiredReplicaCountsForCanary)."""
    canary, stable = replica_counts(cluster, weights)
    new, old = cluster.new, cluster.stable
    if not enough(cluster.read, new, canary):
        return False
    return cluster.read.dynamic or (old is not None and old.desired == stable)


def enough(read: RolloutReader, found: ReplicaSet | None, desired: int) -> bool:
    """Tell whether a ReplicaSet is at its count, or over `replicaProgressThreshold`."""
    if found is None:
        return False
    threshold = read.canary.get("replicaProgressThreshold")
    if not threshold or threshold["value"] < 0:
        return found.desired == desired == found.available
    if threshold["type"] == "Percentage":
        return desired == 0 or 100 * found.available >= threshold["value"] * desired
    return found.available >= int(threshold["value"])


def desired_canary_weight(cluster: Cluster) -> int:
    """Return the weight that the canary's pods are counted by (GetDesiredCanaryWeight)."""
    read, new, stable = cluster.read, cluster.new, cluster.stable
    if not (read.aborted and read.dynamic and new is not None and stable is not None):
        return read.current_set_weight()
    canary = max(read.replicas - stable.available, new.available)
    for step in reversed(read.steps):
        if step.get("setWeight") is not None and _share(read, step["setWeight"]) < canary:
            return int(step["setWeight"])
    return 0


def abort_delay(read: RolloutReader) -> tuple[int | None, bool]:
    """Return after how many seconds an aborted canary ends (None: never), and whether the user said so."""
    delay = read.canary.get("abortScaleDownDelaySeconds")
    if delay is None:
        return DEFAULT_ABORT_DELAY, False
    return (None if delay == 0 else int(delay)), True


def _canary_scale(cluster: Cluster) -> tuple[int | None, int]:
    """Return an explicit count, or the weight to count by (GetCanaryReplicasOrWeight)."""
    read = cluster.read
    if read.promote_full or not read.stable_hash or read.fully_promoted:
        return None, read.max_weight
    scale = _set_canary_scale(read)
    if scale and scale.get("replicas") is not None:
        return int(scale["replicas"]), 0
    if scale and scale.get("weight") is not None:
        return None, int(scale["weight"])
    return None, desired_canary_weight(cluster)


def _set_canary_scale(read: RolloutReader) -> JsonObject | None:
    if read.step is None or read.index is None or (read.aborted and abort_delay(read)[0] is not None):
        return None
    for step in reversed(read.steps[: read.index + 1]):
        scale: JsonObject | None = step.get("setCanaryScale")
        if scale is not None:
            return None if scale.get("matchTrafficWeight") else scale
    return None


def _share(read: RolloutReader, weight: int) -> int:
    return ceil(weight * read.replicas / read.max_weight)


def _at_least(read: RolloutReader, count: int) -> int:
    return max(count, int(read.canary.get("minPodsPerReplicaSet") or 0)) if count else count
