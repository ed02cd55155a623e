"""A whole small cluster: API server, reference Gateway, and pods that answer with the name of their version.

Takes the manifests that a user would apply (Gateway, routes, Services, roles); while its context is open they are on an
embedded API under RBAC, the Gateway routes real requests by them, and `run_pods` keeps the pods that a controller's
ReplicaSets ask for: one echo backend a version. `settle` waits until the Gateway has in effect what the API has.
"""

import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.backends import EchoBackend
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Endpoints, Pod
from rollouts_gwapi_plugin.embedded.dataplane.gateway import ReferenceGateway
from rollouts_gwapi_plugin.embedded.dataplane.watching import ApiConnection
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, SwitchService
from rollouts_gwapi_plugin.embedded.host.rollout import HASH_LABEL
from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.base import JsonObject

# The Gateway follows by watches inside one machine, which takes milliseconds; a busy one may take longer.
SETTLE_SECONDS = 10.0
# What the plugin calls itself to the API server.
PLUGIN_AGENT = "rollouts-gwapi-plugin/"
ROUTE_KINDS = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute")


class Sandbox:
    """The cluster; everything in it ends with its context."""

    def __init__(self, manifests: Iterable[JsonObject], namespace: str) -> None:
        self._manifests = list(manifests)
        gateways = [found for found in self._manifests if found["kind"] == "Gateway"]
        if len(gateways) != 1:
            raise ConfigError(f"the manifests need one Gateway, {len(gateways)} were found")
        self.namespace = namespace
        self.api = ApiServer(rbac=True)
        self.backends: dict[str, EchoBackend] = {}
        self._endpoints = Endpoints()
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

    def switch(self, switch: SwitchService) -> None:
        """Point a Service at the pods of one version, as the controller does."""
        change = {"spec": {"selector": {HASH_LABEL: switch.pod_hash}}}
        self.api.patch("Service", self.namespace, switch.service, change)

    def run_pods(self, cluster: Cluster) -> Cluster:
        """Start and end pods as the ReplicaSets ask; return the cluster with all of them available."""
        for pod_hash, found in cluster.replica_sets.items():
            if found.desired and pod_hash not in self.backends:
                self.backends[pod_hash] = self._stack.enter_context(EchoBackend(version_name(cluster, pod_hash)))
        labels = (cluster.rollout["spec"]["template"].get("metadata") or {}).get("labels") or {}
        self._endpoints.replace(
            Pod(self.namespace, {**labels, HASH_LABEL: pod_hash}, self.backends[pod_hash].address)
            for pod_hash, found in cluster.replica_sets.items()
            if found.desired
        )
        return cluster.all_available()

    def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until what is on the API is in effect.

        Raises:
            Unavailable: It is not after that many seconds.
        """
        deadline = time.monotonic() + seconds
        for kind in (*ROUTE_KINDS, "Service"):
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


def version_name(cluster: Cluster, pod_hash: str) -> str:
    """Return what a version is called: the tag of its image where it is the wanted one, else its hash."""
    containers = (cluster.rollout["spec"]["template"].get("spec") or {}).get("containers") or [{}]
    tag = str(containers[0].get("image", "")).rpartition(":")[2]
    return tag if tag and pod_hash == cluster.read.pod_hash else pod_hash
