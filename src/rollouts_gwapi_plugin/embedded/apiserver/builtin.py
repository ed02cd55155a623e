"""The kinds that are there without a CustomResourceDefinition.

`CORE` are the API server's own. `STAND_INS` serve the route kinds and Argo Rollouts' kinds where no
CustomResourceDefinitions were given: any field passes, and the Gateway API's defaults are filled in.
"""

from rollouts_gwapi_plugin.embedded.apiserver.fields import LIST_KEYS, LIST_TYPE, MAP_TYPE
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Kind, Version
from rollouts_gwapi_plugin.embedded.apiserver.patch import MERGE_KEY
from rollouts_gwapi_plugin.embedded.apiserver.schema import PRESERVE
from rollouts_gwapi_plugin.model.base import JsonObject

GATEWAY_GROUP = "gateway.networking.k8s.io"


def _core(  # noqa: PLR0913 - a row of a table, by keywords
    group: str,
    plural: str,
    kind: str,
    *short_names: str,
    version: str = "v1",
    namespaced: bool = True,
    generation: bool = False,
    deleted_object: bool = False,
    status: bool = False,
    schema: JsonObject | None = None,
) -> Kind:  # fmt: skip
    return Kind(
        group=group, plural=plural, kind=kind, short_names=short_names, namespaced=namespaced, custom=False,
        generation=generation, deleted_object=deleted_object, singular=kind.lower(),
        versions=(Version(version, storage=True, status=status, schema=schema),),
    )  # fmt: skip


def _open(properties: JsonObject | None = None, **more: object) -> JsonObject:
    return {"type": "object", PRESERVE: True, "properties": properties or {}, **more}


def _list(items: JsonObject, **more: object) -> JsonObject:
    return {"type": "array", "items": items, **more}


_RBAC = "rbac.authorization.k8s.io"
_PORTS = _list(
    _open({"protocol": {"type": "string", "default": "TCP"}}),
    **{LIST_TYPE: "map", LIST_KEYS: ["port", "protocol"], MERGE_KEY: "port"},
)
_SERVICE = _open({
    "spec": _open({
        "ports": _PORTS,
        "sessionAffinity": {"type": "string", "default": "None"},
        "type": {"type": "string", "default": "ClusterIP"},
        "selector": {"type": "object", "additionalProperties": {"type": "string"}, MAP_TYPE: "atomic"},
    }),
})  # fmt: skip
_TEXTS: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}
_CONFIG_MAP: JsonObject = {
    "type": "object",
    "properties": {"data": _TEXTS, "binaryData": _TEXTS, "immutable": {"type": "boolean"}},
}
CORE: tuple[Kind, ...] = (
    _core("", "configmaps", "ConfigMap", "cm", schema=_CONFIG_MAP),
    _core("", "events", "Event", "ev"),
    _core("", "endpoints", "Endpoints", "ep"),
    _core("", "namespaces", "Namespace", "ns", namespaced=False, deleted_object=True, status=True),
    _core("", "nodes", "Node", "no", namespaced=False, status=True),
    _core("", "pods", "Pod", "po", generation=True, deleted_object=True, status=True),
    _core("", "secrets", "Secret"),
    _core("", "serviceaccounts", "ServiceAccount", "sa", deleted_object=True),
    _core("", "services", "Service", "svc", deleted_object=True, status=True, schema=_SERVICE),
    _core("apps", "deployments", "Deployment", "deploy", generation=True, status=True),
    _core("apps", "replicasets", "ReplicaSet", "rs", generation=True, status=True),
    _core("batch", "jobs", "Job", generation=True, status=True),
    _core("coordination.k8s.io", "leases", "Lease"),
    _core("discovery.k8s.io", "endpointslices", "EndpointSlice", generation=True),
    _core("events.k8s.io", "events", "Event", "ev"),
    _core("networking.k8s.io", "ingresses", "Ingress", "ing", generation=True, status=True),
    _core(_RBAC, "clusterroles", "ClusterRole", namespaced=False),
    _core(_RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    _core(_RBAC, "roles", "Role"),
    _core(_RBAC, "rolebindings", "RoleBinding"),
    _core("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "crd", "crds",
          namespaced=False, generation=True, status=True),
)  # fmt: skip


def _stand_in(
    group: str, plural: str, kind: str, versions: str, schema: JsonObject, *, namespaced: bool = True
) -> Kind:
    names = versions.split()
    rows = tuple(Version(name, storage=name == names[0], schema=schema, status=True, validated=False) for name in names)
    return Kind(group=group, plural=plural, kind=kind, versions=rows, namespaced=namespaced, singular=kind.lower())


_PARENTS = _list(
    _open({"group": {"type": "string", "default": GATEWAY_GROUP}, "kind": {"type": "string", "default": "Gateway"}})
)
_REFERENCE: JsonObject = {
    "group": {"type": "string", "default": ""},
    "kind": {"type": "string", "default": "Service"},
}
_BACKEND: JsonObject = _REFERENCE | {"weight": {"type": "integer", "format": "int32", "default": 1}}
_EXACT: JsonObject = {"type": {"type": "string", "default": "Exact"}}
_FILTERS = _list(_open({"requestMirror": _open({"backendRef": _open(_REFERENCE)})}))
_BACKENDS = _list(_open(_BACKEND | {"filters": _FILTERS}))
_ANY_PATH = {"type": "PathPrefix", "value": "/"}
_HTTP_MATCHES = _list(
    _open({
        "path": _open(
            {"type": {"type": "string", "default": "PathPrefix"}, "value": {"type": "string", "default": "/"}},
            default=_ANY_PATH,
        ),
        "headers": _list(_open(_EXACT)),
        "queryParams": _list(_open(_EXACT)),
    }),
    default=[{"path": _ANY_PATH}],
)  # fmt: skip
_GRPC_MATCHES = _list(_open({"headers": _list(_open(_EXACT)), "method": _open(_EXACT)}))


def _route(rule: JsonObject) -> JsonObject:
    rules = _list(_open({"backendRefs": _BACKENDS, "filters": _FILTERS} | rule))
    return _open({"spec": _open({"parentRefs": _PARENTS, "rules": rules}), "status": _open()})


_ANYTHING = _open()
STAND_INS: tuple[Kind, ...] = (
    _stand_in(GATEWAY_GROUP, "httproutes", "HTTPRoute", "v1 v1beta1", _route({"matches": _HTTP_MATCHES})),
    _stand_in(GATEWAY_GROUP, "grpcroutes", "GRPCRoute", "v1", _route({"matches": _GRPC_MATCHES})),
    _stand_in(GATEWAY_GROUP, "tcproutes", "TCPRoute", "v1 v1alpha2", _route({})),
    _stand_in(GATEWAY_GROUP, "tlsroutes", "TLSRoute", "v1 v1alpha3 v1alpha2", _route({})),
    _stand_in(GATEWAY_GROUP, "udproutes", "UDPRoute", "v1 v1alpha2", _route({})),
    _stand_in(GATEWAY_GROUP, "gateways", "Gateway", "v1 v1beta1", _ANYTHING),
    _stand_in(GATEWAY_GROUP, "gatewayclasses", "GatewayClass", "v1 v1beta1", _ANYTHING, namespaced=False),
    _stand_in(GATEWAY_GROUP, "referencegrants", "ReferenceGrant", "v1beta1 v1", _ANYTHING),
    _stand_in("networking.gloo.solo.io", "routetables", "RouteTable", "v2", _ANYTHING),
    _stand_in("networking.gloo.solo.io", "virtualgateways", "VirtualGateway", "v2", _ANYTHING),
    _stand_in("trafficcontrol.policy.gloo.solo.io", "mirrorpolicies", "MirrorPolicy", "v2", _ANYTHING),
    _stand_in("argoproj.io", "rollouts", "Rollout", "v1alpha1", _ANYTHING),
    _stand_in("argoproj.io", "experiments", "Experiment", "v1alpha1", _ANYTHING),
    _stand_in("argoproj.io", "analysisruns", "AnalysisRun", "v1alpha1", _ANYTHING),
    _stand_in("argoproj.io", "analysistemplates", "AnalysisTemplate", "v1alpha1", _ANYTHING),
    _stand_in("argoproj.io", "clusteranalysistemplates", "ClusterAnalysisTemplate", "v1alpha1", _ANYTHING,
              namespaced=False),
)  # fmt: skip
