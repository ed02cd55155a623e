"""What users do to a Rollout, as `kubectl argo rollouts` and `kubectl apply` do it. Pure: a new cluster each."""

from copy import deepcopy
from dataclasses import replace

from rollouts_gwapi_plugin.embedded.host.cluster import Cluster
from rollouts_gwapi_plugin.model.base import JsonObject


def _with(cluster: Cluster, *, spec: JsonObject | None = None, status: JsonObject | None = None) -> Cluster:
    rollout = deepcopy(cluster.rollout)
    metadata = rollout["metadata"]
    metadata["resourceVersion"] = str(int(metadata.get("resourceVersion") or 0) + 1)
    if spec:
        metadata["generation"] = int(metadata.get("generation") or 0) + 1
    rollout["spec"] = {**rollout["spec"], **(spec or {})}
    rollout["status"] = {**(rollout.get("status") or {}), **(status or {})}
    return replace(cluster, rollout=rollout)


def new_revision(cluster: Cluster, image: str) -> Cluster:
    """Set the image of the template's first container; an earlier image is a rollback."""
    template = deepcopy(cluster.rollout["spec"].get("template") or {})
    containers = template.setdefault("spec", {}).setdefault("containers", [{"name": "main"}])
    containers[0]["image"] = image
    return _with(cluster, spec={"template": template})


def label_template(cluster: Cluster, name: str, value: str) -> Cluster:
    """Set a label of the template; an earlier value is a rollback."""
    template = deepcopy(cluster.rollout["spec"].get("template") or {})
    template.setdefault("metadata", {}).setdefault("labels", {})[name] = value
    return _with(cluster, spec={"template": template})


def change_steps(cluster: Cluster, steps: list[JsonObject]) -> Cluster:
    """Set other steps; the controller starts from the first."""
    strategy = deepcopy(cluster.rollout["spec"]["strategy"])
    strategy["canary"]["steps"] = steps
    return _with(cluster, spec={"strategy": strategy})


def promote(cluster: Cluster) -> Cluster:
    """Go on: end the pause, or else skip the current step."""
    read = cluster.read
    if read.status.get("pauseConditions"):
        return _with(cluster, spec={"paused": False}, status={"pauseConditions": []})
    index = read.index
    if index is None or index >= len(read.steps):
        return cluster
    return _with(cluster, status={"currentStepIndex": index + 1})


def promote_full(cluster: Cluster) -> Cluster:
    """Skip all steps."""
    return cluster if cluster.read.fully_promoted else _with(cluster, status={"promoteFull": True})


def abort(cluster: Cluster) -> Cluster:
    """Go back to stable."""
    return _with(cluster, status={"abort": True})


def retry(cluster: Cluster) -> Cluster:
    """Start an aborted update again."""
    return _with(cluster, status={"abort": False})


def set_paused(cluster: Cluster, *, paused: bool) -> Cluster:
    """Stop scaling and steps, not traffic; or go on."""
    return _with(cluster, spec={"paused": paused})
