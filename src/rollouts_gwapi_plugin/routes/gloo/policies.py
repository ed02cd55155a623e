"""MirrorPolicies: what makes a managed mirror route mirror.

A policy selects exactly one route, by the label that only this route has; it is never without a selector, which would
mean the whole workspace. It stands in the RouteTable's namespace under the label's value, and goes with its route.
"""

from typing import Final

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.gloo.destination import without_weight
from rollouts_gwapi_plugin.routes.gloo.managed import ManagedRoute
from rollouts_gwapi_plugin.routes.gloo.marks import LABELS
from rollouts_gwapi_plugin.routes.kinds import MIRROR_POLICY
from rollouts_gwapi_plugin.routes.managed import Purpose
from rollouts_gwapi_plugin.routes.mirror import ALL

# For people: whose policy it is, and for which route of which RouteTable.
ROLLOUT_ANNOTATION: Final = "rollouts.argoproj.io/rollout"
ROUTE_ANNOTATION: Final = "rollouts.argoproj.io/managed-route"


def mirror_policy(managed: ManagedRoute, table: Route, rollout: str) -> JsonObject:
    """Return the policy of a managed mirror route."""
    label = LABELS[Purpose.MIRROR]
    name = managed.item.labels[label]
    config: JsonObject = {"destination": without_weight(managed.canary or {})}
    if managed.percent != ALL:
        config["percentage"] = managed.percent
    metadata: JsonObject = {
        "name": name,
        "namespace": table.metadata.namespace,
        "labels": {"app.kubernetes.io/managed-by": "rollouts-gwapi-plugin"},
        "annotations": {ROLLOUT_ANNOTATION: rollout, ROUTE_ANNOTATION: f"{table.metadata.name}/{managed.item.name}"},
    }
    if table.metadata.uid:
        # A RouteTable that is deleted takes its policies along.
        owner = {"apiVersion": table.api_version, "kind": table.kind, "name": table.metadata.name}
        metadata["ownerReferences"] = [{**owner, "uid": table.metadata.uid}]
    return {
        "apiVersion": f"{MIRROR_POLICY.group}/{MIRROR_POLICY.versions[0]}",
        "kind": MIRROR_POLICY.kind,
        "metadata": metadata,
        "spec": {"applyToRoutes": [{"route": {"labels": {label: name}}}], "config": config},
    }
