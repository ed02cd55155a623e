"""The controller's Go structs, as far as a traffic router could want them (argo-rollouts v1alpha1, apimachinery, core).

Everything of `spec.strategy.canary` and `status` is here but analysis and experiment details that no router reads; of
the pod template containers with name, image and ports. Field order is not Go's: gob matches fields by name.
"""

from rollouts_gwapi_plugin.embedded.host.shapes import (
    Shape,
    boolean,
    by_value,
    int_or_string,
    integer,
    list_of,
    map_of,
    raw_json,
    struct,
    text,
    time,
)
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.wire.gob import Interface

_STRINGS = map_of(text)
_SELECTOR = struct(
    "LabelSelector",
    {
        "matchLabels": _STRINGS,
        "matchExpressions": list_of(
            struct("LabelSelectorRequirement", {"key": text, "operator": text, "values": list_of(text)})
        ),
    },
)
_OBJECT_META = struct(
    "ObjectMeta",
    {
        "name": text,
        "generateName": text,
        "namespace": text,
        "selfLink": text,
        "uid": ("UID", text),
        "resourceVersion": text,
        "generation": integer,
        "creationTimestamp": time,
        "deletionTimestamp": time,
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "finalizers": list_of(text),
    },
)
_POD_METADATA = struct("PodTemplateMetadata", {"labels": _STRINGS, "annotations": _STRINGS})
_CONTAINER = struct(
    "Container",
    {
        "name": text,
        "image": text,
        "ports": list_of(
            struct("ContainerPort", {"name": text, "hostPort": integer, "containerPort": integer, "protocol": text})
        ),
    },
)
_POD_TEMPLATE = struct(
    "PodTemplateSpec",
    {
        "metadata": ("ObjectMeta", by_value(_OBJECT_META)),
        "spec": by_value(struct("PodSpec", {"containers": list_of(_CONTAINER)})),
    },
)

_STRING_MATCH = struct("StringMatch", {"exact": text, "prefix": text, "regex": text})
SET_HEADER_ROUTE = struct(
    "SetHeaderRoute",
    {
        "name": text,
        "match": list_of(struct("HeaderRoutingMatch", {"headerName": text, "headerValue": _STRING_MATCH})),
    },
)
SET_MIRROR_ROUTE = struct(
    "SetMirrorRoute",
    {
        "name": text,
        "match": list_of(
            struct("RouteMatch", {"method": _STRING_MATCH, "path": _STRING_MATCH, "headers": map_of(_STRING_MATCH)})
        ),
        "percentage": integer,
    },
)
_EXPERIMENT_TEMPLATE = struct(
    "RolloutExperimentTemplate",
    {
        "name": text,
        "specRef": text,
        "replicas": integer,
        "metadata": by_value(_POD_METADATA),
        "selector": _SELECTOR,
        "weight": integer,
        "service": struct("TemplateService", {"name": text}),
    },
)
_ANALYSIS_TEMPLATES = list_of(struct("AnalysisTemplateRef", {"templateName": text, "clusterScope": boolean}))
_STEP = struct(
    "CanaryStep",
    {
        "setWeight": integer,
        "pause": struct("RolloutPause", {"duration": int_or_string}),
        "experiment": struct(
            "RolloutExperimentStep",
            {
                "templates": list_of(_EXPERIMENT_TEMPLATE),
                "duration": text,
                "scaleDownDelaySeconds": integer,
            },
        ),
        "analysis": struct("RolloutAnalysis", {"templates": _ANALYSIS_TEMPLATES}),
        "setCanaryScale": struct(
            "SetCanaryScale", {"weight": integer, "replicas": integer, "matchTrafficWeight": boolean}
        ),
        "setHeaderRoute": SET_HEADER_ROUTE,
        "setMirrorRoute": SET_MIRROR_ROUTE,
        "plugin": struct("PluginStep", {"name": text, "config": raw_json}),
    },
)
_TRAFFIC_ROUTING = struct(
    "RolloutTrafficRouting",
    {
        "managedRoutes": list_of(struct("MangedRoutes", {"name": text})),
        "plugins": map_of(raw_json),
        "maxTrafficWeight": integer,
    },
)
_CANARY = struct(
    "CanaryStrategy",
    {
        "canaryService": text,
        "stableService": text,
        "steps": list_of(_STEP),
        "trafficRouting": _TRAFFIC_ROUTING,
        "maxUnavailable": int_or_string,
        "maxSurge": int_or_string,
        "canaryMetadata": _POD_METADATA,
        "stableMetadata": _POD_METADATA,
        "scaleDownDelaySeconds": integer,
        "scaleDownDelayRevisionLimit": integer,
        "abortScaleDownDelaySeconds": integer,
        "dynamicStableScale": boolean,
        "pingPong": struct("PingPongSpec", {"pingService": text, "pongService": text}),
        "minPodsPerReplicaSet": integer,
        "replicaProgressThreshold": struct("ReplicaProgressThreshold", {"type": text, "value": integer}),
    },
)
_SPEC = struct(
    "RolloutSpec",
    {
        "replicas": integer,
        "selector": _SELECTOR,
        "template": by_value(_POD_TEMPLATE),
        "workloadRef": struct("ObjectRef", {"apiVersion": ("APIVersion", text), "kind": text, "name": text}),
        "minReadySeconds": integer,
        "rollbackWindow": struct("RollbackWindowSpec", {"revisions": integer}),
        "strategy": by_value(struct("RolloutStrategy", {"canary": _CANARY})),
        "revisionHistoryLimit": integer,
        "paused": boolean,
        "progressDeadlineSeconds": integer,
        "progressDeadlineAbort": boolean,
        "restartAt": time,
    },
)

DESTINATIONS = list_of(struct("WeightDestination", {"weight": integer, "serviceName": text, "podTemplateHash": text}))
_DESTINATION = by_value(struct("WeightDestination", {"weight": integer, "serviceName": text, "podTemplateHash": text}))
_CANARY_STATUS = struct(
    "CanaryStatus",
    {
        "currentExperiment": text,
        "weights": struct(
            "TrafficWeights",
            {"canary": _DESTINATION, "stable": _DESTINATION, "additional": DESTINATIONS, "verified": boolean},
        ),
        "stablePingPong": text,
    },
)
_CONDITION = struct(
    "RolloutCondition",
    {
        "type": text,
        "status": text,
        "lastUpdateTime": time,
        "lastTransitionTime": time,
        "reason": text,
        "message": text,
    },
)
_STATUS = struct(
    "RolloutStatus",
    {
        "abort": boolean,
        "pauseConditions": list_of(struct("PauseCondition", {"reason": text, "startTime": time})),
        "controllerPause": boolean,
        "abortedAt": time,
        "currentPodHash": text,
        "currentStepHash": text,
        "replicas": integer,
        "updatedReplicas": integer,
        "readyReplicas": integer,
        "availableReplicas": integer,
        "currentStepIndex": integer,
        "collisionCount": integer,
        "observedGeneration": text,
        "conditions": list_of(_CONDITION),
        "canary": by_value(_CANARY_STATUS),
        "HPAReplicas": integer,
        "selector": text,
        "stableRS": text,
        "restartedAt": time,
        "promoteFull": boolean,
        "phase": text,
        "message": text,
        "workloadObservedGeneration": text,
    },
)
ROLLOUT = struct(
    "Rollout",
    {"metadata": ("ObjectMeta", by_value(_OBJECT_META)), "spec": by_value(_SPEC), "status": by_value(_STATUS)},
)

_ROLLOUT_ARGUMENT = {"rollout": by_value(ROLLOUT)}
_WEIGHT = struct(
    "SetWeightAndVerifyWeightArgs",
    {**_ROLLOUT_ARGUMENT, "desiredWeight": integer, "additionalDestinations": DESTINATIONS},
)
# By method: the argument struct, under the name that the controller registers it by. InitPlugin and Type have none.
ARGUMENTS: dict[str, tuple[str, Shape]] = {
    "UpdateHash": (
        "UpdateHashArgs",
        struct(
            "UpdateHashArgs",
            {**_ROLLOUT_ARGUMENT, "canaryHash": text, "stableHash": text, "additionalDestinations": DESTINATIONS},
        ),
    ),
    "SetWeight": ("SetWeightAndVerifyWeightArgs", _WEIGHT),
    "VerifyWeight": ("SetWeightAndVerifyWeightArgs", _WEIGHT),
    "SetHeaderRoute": (
        "SetHeaderArgs",
        struct("SetHeaderArgs", {**_ROLLOUT_ARGUMENT, "setHeaderRoute": by_value(SET_HEADER_ROUTE)}),
    ),
    "SetMirrorRoute": (
        "SetMirrorArgs",
        struct("SetMirrorArgs", {**_ROLLOUT_ARGUMENT, "setMirrorRoute": by_value(SET_MIRROR_ROUTE)}),
    ),
    "RemoveManagedRoutes": ("RemoveManagedRoutesArgs", struct("RemoveManagedRoutesArgs", _ROLLOUT_ARGUMENT)),
}


def argument(method: str, arguments: JsonObject) -> Interface | None:
    """Return what the controller sends as the argument of a method."""
    if method not in ARGUMENTS:
        return None
    name, shape = ARGUMENTS[method]
    return Interface(name, shape.convert(arguments), shape.go_type)
