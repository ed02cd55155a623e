"""What follows traffic routing in a reconcile: experiment, scaling, pause, status (canary.go, sync.go). Pure.

Takes the cluster, the plan and how its actions went; returns the cluster as the next reconcile reads it. A call that
failed, and a last weight that was not verified, end the reconcile with nothing changed but Services already switched.

Left out: analysis runs (their phase is `Cluster.analysis`), step plugins (done at once), rollback windows, HPA and
restarts, none of which changes what a traffic router is asked beyond what is here.
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace

from rollouts_gwapi_plugin.embedded.host import pods, scaling
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, Experiment, Outcome, ReplicaSet, SwitchService
from rollouts_gwapi_plugin.embedded.host.rollout import (
    PAUSE_EXPERIMENT,
    PAUSE_STEP,
    REVISION_ANNOTATION,
    RolloutReader,
    moment_of,
    seconds,
    short_hash,
    timestamp,
)
from rollouts_gwapi_plugin.embedded.host.sequence import Plan
from rollouts_gwapi_plugin.model.base import JsonObject


@dataclass
class _Reconcile:
    """What one reconcile collects on its way to the new status (the controller's pauseContext and newStatus)."""

    now: float
    weights: JsonObject | None
    verified: bool | None = None
    aborted: bool = False
    add_pause: str = ""
    removed_pauses: set[str] = field(default_factory=set)
    clear_pauses: bool = False
    current_experiment: str = ""


def conclude(cluster: Cluster, plan: Plan, outcome: Outcome, now: float, done: int | None = None) -> Cluster:
    """Return the cluster after the reconcile; `done` says how many of the plan's actions were carried out."""
    switched = {action.service: action.pod_hash for action in plan.actions[:done] if isinstance(action, SwitchService)}
    cluster = replace(cluster, selectors={**cluster.selectors, **switched})
    if cluster.read.changed:
        return _noted(cluster)
    if outcome.error or _unverified_end(cluster, plan, outcome):
        return cluster
    work = _Reconcile(now, cluster.read.weights, aborted=cluster.read.aborted)
    if plan.sets_weight:
        work.weights = _new_weights(cluster, plan, outcome)
        work.verified = None if outcome.verify_error else outcome.verified
    cluster = _reconcile_experiment(cluster, work)
    cluster, scaled = pods.scale(cluster, pods.Moment(now, work.weights, work.aborted))
    if not scaled and not work.add_pause:
        _reconcile_pause(cluster.read, work)
    return _with_status(cluster, _synced(cluster, work))


def _noted(cluster: Cluster) -> Cluster:
    """Take note of a new template or new steps: the ReplicaSet, the revision, and a status from the beginning."""
    read = cluster.read
    status = deepcopy(read.status)
    if read.current_hash != read.pod_hash:
        raw = deepcopy(cluster.rollout)
        raw["metadata"].setdefault("annotations", {})[REVISION_ANNOTATION] = str((read.revision or 0) + 1)
        cluster = replace(cluster, rollout=raw)
        if cluster.new is None:
            cluster = cluster.with_replica_set(read.pod_hash, ReplicaSet())
    status |= {"currentPodHash": read.pod_hash, "currentStepHash": short_hash(read.steps), "pauseConditions": []}
    status |= {"abort": False, "promoteFull": False, "controllerPause": False}
    status["canary"] = {**(status.get("canary") or {}), "currentExperiment": ""}
    if read.steps:
        status["currentStepIndex"] = len(read.steps) if read.stable_hash == read.pod_hash else 0
    return _with_status(cluster, status)


def _unverified_end(cluster: Cluster, plan: Plan, outcome: Outcome) -> bool:
    """Tell whether the last weight is not verified, which the controller takes for an error."""
    read = cluster.read
    return (
        outcome.verified is False
        and not outcome.verify_error
        and plan.desired is not None
        and plan.desired.weight == read.max_weight
        and len(read.steps) >= (read.index or 0)
    )


def _new_weights(cluster: Cluster, plan: Plan, outcome: Outcome) -> JsonObject:
    """Return status.canary.weights (calculateWeightStatus); `verified` is only kept when another part changed."""
    read, desired = cluster.read, plan.desired
    stable_service, canary_service = read.canary.get("stableService") or "", read.canary.get("canaryService") or ""
    weight = desired.weight if desired else 0
    additional = [destination.json() for destination in (desired.destinations if desired else ())]
    stable = read.max_weight - weight - sum(int(one["weight"]) for one in additional)
    weights: JsonObject = {
        "canary": {"weight": weight, "podTemplateHash": plan.canary_hash, "serviceName": canary_service},
        "stable": {"weight": stable, "podTemplateHash": plan.stable_hash, "serviceName": stable_service},
    }
    if additional:
        weights["additional"] = additional
    previous = {key: value for key, value in (read.weights or {}).items() if key != "verified"}
    if previous == weights and read.weights is not None:
        return read.weights
    return weights if outcome.verified is None else {**weights, "verified": outcome.verified}


def _reconcile_experiment(cluster: Cluster, work: _Reconcile) -> Cluster:
    """Start, watch or end the experiment (reconcileExperiments)."""
    read, experiment = cluster.read, cluster.experiment
    if work.aborted or read.promote_full or read.step is None or read.step.get("experiment") is None:
        return replace(cluster, experiment=None)
    if experiment is None:
        if cluster.stable is None:
            return cluster
        name = f"{read.metadata['name']}-{read.pod_hash}-{read.revision or ''}-{read.index}"
        experiment = Experiment(name)
    match experiment.phase:
        case "Inconclusive":
            work.add_pause = PAUSE_EXPERIMENT
        case "Error" | "Failed":
            work.aborted = True
        case "Successful":
            pass
        case _:
            work.current_experiment = experiment.name
    return replace(cluster, experiment=experiment)


def _reconcile_pause(read: RolloutReader, work: _Reconcile) -> None:
    if read.spec.get("paused") or read.promote_full or read.step is None or read.step.get("pause") is None:
        return
    if read.pause_condition(PAUSE_STEP) is None and not read.status.get("controllerPause"):
        work.add_pause = PAUSE_STEP


def _synced(cluster: Cluster, work: _Reconcile) -> JsonObject:
    """Return the new status (syncRolloutStatusCanary)."""
    read = cluster.read
    status = deepcopy(read.status)
    canary = {**(status.get("canary") or {}), "weights": work.weights, "currentExperiment": work.current_experiment}
    status["canary"] = canary
    index = read.index
    if read.promote_full:
        work.clear_pauses, work.aborted = True, False
        index = len(read.steps) if read.steps else index
    if _promotes(cluster, work):
        _promote(read, status)
        return _with_pauses(read, status, replace(work, clear_pauses=True, aborted=False))
    if work.aborted:
        if read.steps:
            status["currentStepIndex"] = len(read.steps) if read.fully_promoted else 0
        return _with_pauses(read, status, work)
    if index is not None:
        if _step_is_done(cluster, work):
            # After a full promotion the index can so pass the number of steps.
            index += 1
            work.removed_pauses.add(PAUSE_STEP)
        status["currentStepIndex"] = index
    return _with_pauses(read, status, work)


def _promotes(cluster: Cluster, work: _Reconcile) -> bool:
    """Tell whether the canary becomes stable (shouldFullPromote)."""
    read, new = cluster.read, cluster.new
    if cluster.stable is None:
        return True
    if work.aborted or new is None:
        return False
    if new.available < read.replicas and not scaling.enough(read, new, read.replicas):
        return False
    return read.promote_full or not read.steps or read.index == len(read.steps)


def _promote(read: RolloutReader, status: JsonObject) -> None:
    status["promoteFull"] = False
    if read.steps:
        status["currentStepIndex"] = len(read.steps)
    if read.stable_hash == read.current_hash:
        return
    if read.ping_pong:
        ping = status["canary"].get("stablePingPong") == "ping"
        status["canary"]["stablePingPong"] = "pong" if ping else "ping"
    status["stableRS"] = read.current_hash


def _step_is_done(cluster: Cluster, work: _Reconcile) -> bool:  # noqa: PLR0911 - one return a kind of step
    """Tell whether the current step is complete (completedCurrentCanaryStep)."""
    read, step = cluster.read, cluster.read.step
    if step is None or read.spec.get("paused"):
        return False
    if step.get("pause") is not None:
        return _pause_is_over(read, step["pause"], work.now)
    if step.get("setCanaryScale") is not None:
        return scaling.at_desired_counts(cluster, work.weights)
    if step.get("experiment") is not None:
        return cluster.experiment is not None and cluster.experiment.phase == "Successful"
    if step.get("analysis") is not None:
        return cluster.analysis == "Successful"
    if any(step.get(kind) is not None for kind in ("setHeaderRoute", "setMirrorRoute", "plugin")):
        return True
    if step.get("setWeight") is None:
        return False
    return scaling.at_desired_counts(cluster, work.weights) and work.verified is not False


def _pause_is_over(read: RolloutReader, pause: JsonObject, now: float) -> bool:
    condition = read.pause_condition(PAUSE_STEP)
    if condition is None:
        # The controller had paused and the condition is gone: somebody promoted.
        return bool(read.status.get("controllerPause"))
    duration = seconds(pause.get("duration"))
    return duration is not None and now > moment_of(condition["startTime"]) + duration


def _with_pauses(read: RolloutReader, status: JsonObject, work: _Reconcile) -> JsonObject:
    """Return the status with abort and pauses as CalculatePauseStatus leaves them."""
    status["abort"] = work.aborted
    conditions = [one for one in read.status.get("pauseConditions") or [] if one["reason"] not in work.removed_pauses]
    controller_pause = bool(read.status.get("controllerPause"))
    if work.add_pause and read.pause_condition(work.add_pause) is None:
        conditions.append({"reason": work.add_pause, "startTime": timestamp(work.now)})
        controller_pause = True
    if work.aborted or work.clear_pauses:
        conditions = []
    status["pauseConditions"] = conditions
    status["controllerPause"] = controller_pause and bool(conditions)
    return status


def _with_status(cluster: Cluster, status: JsonObject) -> Cluster:
    """Return the cluster with the status; like the API, a change bumps the resourceVersion."""
    if status == cluster.read.status:
        return cluster
    version = int(cluster.read.metadata.get("resourceVersion") or 0) + 1
    metadata = {**cluster.rollout["metadata"], "resourceVersion": str(version)}
    return replace(cluster, rollout={**cluster.rollout, "metadata": metadata, "status": status})
