"""Read and patch objects: the official client's connection (so that any kubeconfig works) on plain dicts.

Whatever goes wrong is `ApiTrouble`, so that who waits can go on waiting while the API server is restarted.
"""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import urllib3
from kubernetes import client, config

JsonObject = dict[str, Any]

_GATEWAY = "/apis/gateway.networking.k8s.io/v1"
_ARGO = "/apis/argoproj.io/v1alpha1"
_KINDS = {
    "ConfigMap": ("/api/v1", "configmaps"),
    "Event": ("/api/v1", "events"),
    "Namespace": ("/api/v1", "namespaces"),
    "Pod": ("/api/v1", "pods"),
    "Secret": ("/api/v1", "secrets"),
    "Service": ("/api/v1", "services"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "ReplicaSet": ("/apis/apps/v1", "replicasets"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "EndpointSlice": ("/apis/discovery.k8s.io/v1", "endpointslices"),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "Gateway": (_GATEWAY, "gateways"),
    "HTTPRoute": (_GATEWAY, "httproutes"),
    "GRPCRoute": (_GATEWAY, "grpcroutes"),
    "TCPRoute": (_GATEWAY, "tcproutes"),
    "TLSRoute": (_GATEWAY, "tlsroutes"),
    "UDPRoute": (_GATEWAY, "udproutes"),
    "Rollout": (_ARGO, "rollouts"),
    "AnalysisRun": (_ARGO, "analysisruns"),
    "Experiment": (_ARGO, "experiments"),
}
_CLUSTER_WIDE = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
# A request that takes longer is asked again by who waits.
_REQUEST_SECONDS = 15.0
_NOT_FOUND = 404
_FIRST_ERROR = 400


class ApiTrouble(Exception):  # noqa: N818 - may pass by itself
    """The API server refused, or could not be reached."""


class Api:
    """One connection to the API server that a kubeconfig names."""

    def __init__(self, kubeconfig: Path) -> None:
        configuration = client.Configuration()
        # The package has no types.
        config.load_kube_config(str(kubeconfig), client_configuration=configuration)  # type: ignore[no-untyped-call]
        self.configuration = configuration
        self.server = str(configuration.host)
        # The official client's pool has the certificates, proxies and names of the kubeconfig in it.
        self.pool: urllib3.PoolManager = client.ApiClient(configuration).rest_client.pool_manager

    def path(self, kind: str, namespace: str, name: str = "") -> str:
        """Return the path of an object or of a collection."""
        group, plural = _KINDS[kind]
        place = "" if kind in _CLUSTER_WIDE or not namespace else f"/namespaces/{namespace}"
        return f"{group}{place}/{plural}" + (f"/{name}" if name else "")

    def read(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """Return the object, or None if there is none."""
        answer = self._request("GET", self.path(kind, namespace, name))
        return None if answer.status == _NOT_FOUND else self._json(answer)

    def all_of(self, kind: str, namespace: str) -> list[JsonObject]:
        """Return all objects of the kind in the namespace."""
        items: list[JsonObject] = self._json(self._request("GET", self.path(kind, namespace)))["items"]
        return items

    def patch(self, kind: str, namespace: str, name: str, patch: JsonObject | list[Any]) -> JsonObject:
        """Merge patch (a dict) or JSON patch (a list)."""
        content = "application/merge-patch+json" if isinstance(patch, dict) else "application/json-patch+json"
        body = json.dumps(patch).encode()
        return self._json(self._request("PATCH", self.path(kind, namespace, name), body=body, content=content))

    def watch(self, kind: str, namespace: str, name: str) -> Iterator[JsonObject]:
        """Yield the object as it is, then at each change, until the connection ends."""
        query = f"?watch=1&fieldSelector=metadata.name%3D{name}"
        try:
            answer = self._request("GET", self.path(kind, namespace) + query, stream=True)
            rest = b""
            for part in answer.stream():
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    yield json.loads(line)["object"]
        except (urllib3.exceptions.HTTPError, ValueError, KeyError) as error:
            raise ApiTrouble(f"watch of {kind} {namespace}/{name}: {error}") from error

    def _request(
        self, method: str, path: str, *, body: bytes | None = None, content: str = "", stream: bool = False
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", **({"Content-Type": content} if content else {})}
        authorization = self.configuration.get_api_key_with_prefix("authorization")
        if authorization:
            headers["Authorization"] = authorization
        try:
            return self.pool.request(
                method,
                self.server + path,
                headers=headers,
                body=body,
                retries=False,
                preload_content=not stream,
                timeout=urllib3.Timeout(connect=_REQUEST_SECONDS, read=None if stream else _REQUEST_SECONDS),
            )
        except urllib3.exceptions.HTTPError as error:
            raise ApiTrouble(f"{method} {path}: {error}") from error

    @staticmethod
    def _json(answer: urllib3.BaseHTTPResponse) -> JsonObject:
        if answer.status >= _FIRST_ERROR:
            raise ApiTrouble(f"{answer.url}: {answer.status} {answer.data[:500].decode(errors='replace')}")
        result: JsonObject = json.loads(answer.data)
        return result


@dataclass
class RouteWatch:
    """A thread that keeps each state of an object with the time at which it was seen; a context manager."""

    api: Api
    kind: str
    namespace: str
    name: str
    states: list[tuple[float, JsonObject]] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Begin."""
        self.stopping = threading.Event()
        # A daemon: a watch ends only when something comes or the server closes it.
        threading.Thread(target=self._follow, name=f"watch {self.name}", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End with the next event."""
        self.stopping.set()

    def _follow(self) -> None:
        while not self.stopping.wait(0.1):
            try:
                for state in self.api.watch(self.kind, self.namespace, self.name):
                    if self.stopping.is_set():
                        return
                    self.states.append((time.monotonic(), state))
            except ApiTrouble:
                continue
