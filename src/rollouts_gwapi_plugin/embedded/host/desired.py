"""Which weight the controller asks for, and why: the branches of reconcileTrafficRouting (trafficrouting.go). Pure.

| branch | when (the first that holds) |
| --- | --- |
| A | dynamicStableScale, back to stable before it is fully available |
| B | fully promoted |
| C | aborted |
| D | no canary pod is available |
| E | full promotion was asked for |
| F | a step, and the pods are not yet at its count |
| G | a step |
| H | past the last step |
| I | no steps at all |
"""

from dataclasses import dataclass
from enum import Enum

from rollouts_gwapi_plugin.embedded.host import scaling
from rollouts_gwapi_plugin.embedded.host.cluster import REMOVES_WITHOUT_CANARY, Cluster, Destination, Version
from rollouts_gwapi_plugin.embedded.host.rollout import RolloutReader


class Branch(Enum):
    """The branch that a reconcile takes."""

    DYNAMIC_ROLLBACK = "A"
    PROMOTED = "B"
    ABORTED = "C"
    NO_CANARY = "D"
    PROMOTE_FULL = "E"
    SCALING = "F"
    STEP = "G"
    PAST_STEPS = "H"
    NO_STEPS = "I"


@dataclass(frozen=True)
class Desired:
    """What the branch asks for; `removes` says whether RemoveManagedRoutes is sent."""

    branch: Branch
    weight: int = 0
    destinations: tuple[Destination, ...] = ()
    removes: bool = False


def desired_traffic(cluster: Cluster, version: Version) -> Desired:  # noqa: PLR0911 - one return a branch
    """Return what the controller of a version asks for."""
    branch, read = _branch(cluster), cluster.read
    running = _experiment_destinations(cluster)
    match branch:
        case Branch.DYNAMIC_ROLLBACK:
            return Desired(branch, _weight_on_the_way_back(cluster))
        case Branch.PROMOTED:
            return Desired(branch, removes=True)
        case Branch.ABORTED:
            return Desired(branch, _weight_on_the_way_back(cluster), removes=True)
        case Branch.NO_CANARY:
            return Desired(branch, 0, running, removes=version >= REMOVES_WITHOUT_CANARY)
        case Branch.PROMOTE_FULL:
            return Desired(branch, _promote_full_weight(cluster), removes=True)
        case Branch.SCALING:
            return Desired(branch, read.last_weight((read.index or 0) - 1) if read.index else 0, running)
        case Branch.STEP:
            return Desired(branch, read.current_set_weight(), running)
        case Branch.PAST_STEPS:
            return Desired(branch, read.max_weight)
        case Branch.NO_STEPS:
            return Desired(branch)


def dynamic_rollback_hash(cluster: Cluster) -> str | None:
    """Return the previous canary's hash while branch A holds (IsDynamicallyRollingBackToStable)."""
    read, new = cluster.read, cluster.new
    if not (read.fully_promoted and read.traffic_routing and read.dynamic) or read.weights is None or new is None:
        return None
    previous: str = read.weights["canary"].get("podTemplateHash") or ""
    return None if previous == read.pod_hash or new.available >= read.replicas else previous


def _branch(cluster: Cluster) -> Branch:
    read, new = cluster.read, cluster.new
    if dynamic_rollback_hash(cluster) is not None:
        return Branch.DYNAMIC_ROLLBACK
    if read.fully_promoted:
        return Branch.PROMOTED
    if read.aborted:
        return Branch.ABORTED
    if new is None or new.available == 0:
        return Branch.NO_CANARY
    if read.promote_full:
        return Branch.PROMOTE_FULL
    return _step_branch(cluster, read)


def _step_branch(cluster: Cluster, read: RolloutReader) -> Branch:
    if read.index is None:
        return Branch.NO_STEPS
    if not scaling.at_desired_counts(cluster, None):
        return Branch.SCALING
    # The controller compares for equality; an index beyond the end counts as a step, with the maximum as its weight.
    return Branch.PAST_STEPS if read.index == len(read.steps) else Branch.STEP


def _experiment_destinations(cluster: Cluster) -> tuple[Destination, ...]:
    step = cluster.read.step
    running = cluster.experiment is not None and cluster.experiment.phase == "Running"
    if step is None or cluster.experiment is None or not running:
        return ()
    return cluster.experiment.destinations


def _promote_full_weight(cluster: Cluster) -> int:
    read, new = cluster.read, cluster.new
    if read.dynamic and new is not None:
        return read.max_weight * new.available // read.replicas
    return read.canary_weight or 0


def _weight_on_the_way_back(cluster: Cluster) -> int:
    """Return the weight while stable takes over again (calculateDesiredWeightOnAbortOrStableRollback)."""
    read, new, stable = cluster.read, cluster.new, cluster.stable
    if not read.dynamic or stable is None or new is None or not read.replicas:
        return 0
    wanted = scaling.desired_canary_weight(cluster)
    stable_share = read.max_weight * stable.available // read.replicas
    expected = max(0, read.max_weight - stable_share)
    current = read.canary_weight
    if current is None:
        return max(expected, wanted)
    if wanted <= 0:
        return min(expected, current)
    if stable_share < read.max_weight - wanted:
        return current
    return min(wanted, current)
