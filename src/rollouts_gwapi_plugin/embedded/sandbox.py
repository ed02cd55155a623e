"""A whole small cluster: API server, reference Gateway, and pods that answer with the name of their version.

Takes the manifests that a user would apply (Gateway, routes, Services, roles); while its context is open they are on an
embedded API under RBAC, the Gateway routes real requests by them, and `run_pods` keeps the pods that a controller's
ReplicaSets and experiments ask for. `settle` waits until the Gateway has in effect what the API has.
"""

import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.apiserver.certificate import make_certificate
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Endpoints
from rollouts_gwapi_plugin.embedded.dataplane.gateway import ReferenceGateway
from rollouts_gwapi_plugin.embedded.dataplane.watching import ApiConnection
from rollouts_gwapi_plugin.embedded.experiments import Experiments
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, SwitchService
from rollouts_gwapi_plugin.embedded.host.rollout import HASH_LABEL
from rollouts_gwapi_plugin.embedded.pods import VersionPods, version_name
from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.base import JsonObject

# The Gateway follows by watches inside one machine, which takes milliseconds; a busy one may take longer.
SETTLE_SECONDS = 10.0
# What the plugin calls itself to the API server.
PLUGIN_AGENT = "rollouts-gwapi-plugin/"
ROUTE_KINDS = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute", "RouteTable")
# Gloo Platform's gateway serves RouteTables alone.
GATEWAY_KINDS = ("Gateway", "VirtualGateway")


class Sandbox:
    """The cluster; everything in it ends with its context. `clock` is the time that experiments go by."""

    def __init__(
        self, manifests: Iterable[JsonObject], namespace: str, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._manifests = list(manifests)
        gateways = [found for found in self._manifests if found["kind"] in GATEWAY_KINDS]
        if len(gateways) != 1:
            raise ConfigError(f"the manifests need one Gateway, {len(gateways)} were found")
        self.namespace = namespace
        self.api = ApiServer(rbac=True)
        self._versions: dict[str, VersionPods] = {}
        self._templates: dict[str, JsonObject] = {}
        self._endpoints = Endpoints()
        self._experiments = Experiments(self.api, namespace, self._start_pods, self._template, clock)
        hostnames = _tls_hostnames(self._manifests)
        self._certificate = make_certificate(hostnames) if hostnames else None
        self._stack = ExitStack()
        connection = ApiConnection(self.api.url, token=self.api.access.admin_token)
        self._stack.callback(connection.close)
        self.gateway = ReferenceGateway(connection, gateways[0], self._endpoints)

    def __enter__(self) -> Self:
        with self._stack:
            self._stack.enter_context(self.api)
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="rollouts-gwapi-sandbox-"))
            self.kubeconfig = self.api.write_kubeconfig(Path(folder) / "kubeconfig")
            self.api.load(self._manifests)
            self._stack.enter_context(self.gateway)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def certificate_pem(self) -> str:
        """The certificate that pods with TLS show; there is one where the manifests have a TLSRoute."""
        return self._certificate.pem if self._certificate else ""

    def switch(self, switch: SwitchService) -> None:
        """Point a Service at the pods of one version, as the controller does."""
        change = {"spec": {"selector": {HASH_LABEL: switch.pod_hash}}}
        self.api.patch("Service", self.namespace, switch.service, change)

    def run_pods(self, cluster: Cluster) -> Cluster:
        """Start and end pods as ReplicaSets and experiments ask; return the cluster with all of them available."""
        self._templates[cluster.read.pod_hash] = cluster.rollout["spec"]["template"]
        for pod_hash, found in cluster.replica_sets.items():
            if found.desired and pod_hash not in self._versions:
                template = self._templates.get(pod_hash)
                name = pod_hash if template is None else version_name(template) or pod_hash
                self._versions[pod_hash] = self._start_pods(name, template or cluster.rollout["spec"]["template"])
        cluster = self._experiments.reconcile(cluster)
        running = [pod_hash for pod_hash, found in cluster.replica_sets.items() if found.desired]
        pods = [self._versions[pod_hash].pod(self.namespace, {HASH_LABEL: pod_hash}) for pod_hash in running]
        self._endpoints.replace([*pods, *self._experiments.pods()])
        return cluster.all_available()

    def backend_of(self, cluster: Cluster, service: str) -> str:
        """Return the name of the pods to which the controller has pointed a Service; empty where there are none."""
        version = self._versions.get(cluster.selectors.get(service, ""))
        return version.name if version else self._experiments.backend_of(service)

    def times(self, name: str, request_id: str) -> int:
        """Return how often a request arrived at the pods of a name."""
        return sum(version.times(request_id) for version in self._versions.values() if version.name == name)

    def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until what is on the API is in effect.

        Raises:
            Unavailable: It is not after that many seconds.
        """
        deadline = time.monotonic() + seconds
        for kind in (*ROUTE_KINDS, "MirrorPolicy", "Service"):
            for found in self.api.list(kind):
                metadata = found["metadata"]
                wanted = int(metadata["resourceVersion"]) if kind == "Service" else metadata["generation"]
                remaining = max(0.0, deadline - time.monotonic())
                self.gateway.wait_for(kind, metadata["namespace"], metadata["name"], wanted, remaining)

    def plugin_calls(self) -> tuple[int, int]:
        """Return how many reads and how many writes the plugin has sent to the API."""
        asked = [request for request in self.api.requests if request.user_agent.startswith(PLUGIN_AGENT)]
        writes = sum(request.is_write for request in asked)
        return len(asked) - writes, writes

    def _start_pods(self, name: str, template: JsonObject) -> VersionPods:
        tls = self._certificate.context if self._certificate else None
        return self._stack.enter_context(VersionPods(name, template, tls))

    def _template(self, pod_hash: str) -> JsonObject:
        return self._templates[pod_hash]


def _tls_hostnames(manifests: list[JsonObject]) -> list[str]:
    routes = [found for found in manifests if found["kind"] == "TLSRoute"]
    return [name for route in routes for name in route["spec"].get("hostnames") or []]
