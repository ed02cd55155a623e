"""The clusters that a case can be told on: our own, kind's, or any that a kubeconfig names.

A target knows where the gateway listens, what image its pods have, and what it can do to the controller. What it can't
do is not in `can`; a case that needs it is left out there, visibly.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from e2e.cluster import controller, network, pods, process
from e2e.cluster.cluster import Cluster, log_tail
from e2e.cluster.process import CommandFailed
from e2e.cluster.settings import CONTROLLER_NAMESPACE, FILES_PORT, GATEWAY_CLASS, NODE_ADDRESS, Rollouts
from e2e.runner.api import Api, ApiTrouble
from e2e.runner.case import Configure
from e2e.waiting import NotYet, until

# The cases' Gateway, the same on all targets; 80 and 443 are left to the examples.
GATEWAY_NAMESPACE = "e2e-gateway"
GATEWAY_NAME = "e2e"
PORTS: Mapping[str, int] = {"http": 10080, "grpc": 10080, "tcp": 10001, "tls": 10443, "udp": 10053}
# Until a node has started again what was killed: it waits longer from time to time, 40 s for the third.
BACK_SECONDS = 180.0
# Until a new gateway's image is pulled.
GATEWAY_SECONDS = 600.0
# The plugin becomes the loader of its own tree, by whose file the kernel names it.
_PLUGIN_PROCESS = "rollouts-gwapi"


class Target(Protocol):
    """What a case needs of a cluster."""

    name: str
    image: str
    gateway_class: str
    exact: bool  # whether the gateway deals out weights in turn

    @property
    def can(self) -> frozenset[str]:
        """Return what of a case's `needs` it fulfils."""

    def reached(self) -> Any:
        """Return a context manager inside which the cluster can be reached."""

    def api(self) -> Api:
        """Connect to the API server."""

    def run(self, command: Sequence[str], *, text: str | None = None) -> str:
        """Run a command with the cluster's kubeconfig; return its output or raise CommandFailed."""

    def address(self) -> str:
        """Return the gateway's address."""

    def wait_for_gateway(self) -> None:
        """Wait until the cases' Gateway has a program behind it, where that takes longer than a case would wait."""

    def values(self) -> dict[str, str]:
        """Return what cases that can `configure` may fill in."""

    def controller_healthy(self) -> bool:
        """Whether the controller says that it is healthy."""

    def kill(self, what: str) -> None:
        """SIGKILL for the plugin or the controller."""

    def restart(self, what: str) -> None:
        """Restart the controller or the API server and wait until it is back."""

    def configure(self, wanted: Configure | None) -> None:
        """Change argo-rollouts-config (None: as it was) and restart the controller, which may refuse to start."""

    def describe(self) -> str:
        """Return what the report of a failed case should say about the cluster."""

    def controller_log(self) -> str:
        """Return all that the controller, and through it the plugin, logged so far."""

    def controller_exits(self) -> list[int]:
        """Return the exit codes of the controller's container so far."""

    def counts(self) -> list[dict[str, Any]]:
        """Return what each pod received, where the target can tell."""


def make_gateway(target: Target) -> None:
    """Make the cases' Gateway; its program opens its ports within a second."""
    listeners = [
        {
            "name": name,
            "port": PORTS[name],
            "protocol": protocol,
            **extra,
            "allowedRoutes": {"namespaces": {"from": "All"}},
        }
        for name, protocol, extra in (
            ("http", "HTTP", {}),
            ("tcp", "TCP", {}),
            ("tls", "TLS", {"tls": {"mode": "Passthrough"}}),
        )
    ]
    gateway = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": GATEWAY_NAME, "namespace": GATEWAY_NAMESPACE},
        "spec": {"gatewayClassName": target.gateway_class, "listeners": listeners},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GATEWAY_NAMESPACE}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [namespace, gateway]})
    target.run(["kubectl", "apply", "--server-side", "--force-conflicts", "--filename=-"], text=text)
    target.wait_for_gateway()


@dataclass
class LocalTarget:
    """The cluster of e2e/cluster."""

    cluster: Cluster
    name: str = "local"
    image: str = "echo:e2e"  # nobody pulls it
    gateway_class: str = GATEWAY_CLASS
    exact: bool = True

    @property
    def can(self) -> frozenset[str]:
        """As `Target.can`."""
        settings = self.cluster.settings
        chosen = {f"rollouts-{settings.rollouts}", settings.channel}
        return frozenset({"kill", "restart", "configure", "count", "udp", *chosen})

    @contextmanager
    def reached(self) -> Iterator[None]:
        """As `Target.reached`."""
        with network.inside(self.cluster.settings.node_namespace):
            yield

    def api(self) -> Api:
        """As `Target.api`."""
        return Api(self.cluster.settings.kubeconfig)

    def run(self, command: Sequence[str], *, text: str | None = None) -> str:
        """As `Target.run`."""
        program = self.cluster.tools.program(command[0])
        return process.run([program, *command[1:]], text=text, environment=self.cluster.environment())

    def address(self) -> str:
        """As `Target.address`."""
        return "127.0.0.1"

    def wait_for_gateway(self) -> None:
        """Nothing: the gateway's program is there."""

    def values(self) -> dict[str, str]:
        """As `Target.values`."""
        file = controller.plugin_file(self.cluster.settings)
        return {
            "PLUGIN_FILE": f"file://{controller.PLUGIN_PATH}",
            "PLUGIN_URL": f"http://{NODE_ADDRESS}:{FILES_PORT}/{file.name}",
            "PLUGIN_SHA256": hashlib.sha256(file.read_bytes()).hexdigest(),
        }

    def controller_healthy(self) -> bool:
        """As `Target.controller_healthy`."""
        return controller.healthy()

    def kill(self, what: str) -> None:
        """As `Target.kill`."""
        settings = self.cluster.settings
        if what == "controller":
            controller.kill(settings)
        else:
            controller.kill_plugin(settings)

    def restart(self, what: str) -> None:
        """As `Target.restart`."""
        if what == "apiserver":
            self.cluster.restart_apiserver()
        else:
            controller.restart(self.cluster.settings)
            controller.wait(self.cluster.settings)

    def configure(self, wanted: Configure | None) -> None:
        """As `Target.configure`."""
        settings, tools = self.cluster.settings, self.cluster.tools
        if wanted is None:
            controller.configure(settings, tools)
        else:
            controller.configure(settings, tools, location=wanted.location, sha256=wanted.sha256, args=wanted.args)
        controller.restart(settings)
        if wanted is None:
            controller.wait(settings)

    def controller_log(self) -> str:
        """As `Target.controller_log`."""
        return (self.cluster.settings.logs / "controller.log").read_text(errors="replace")

    def controller_exits(self) -> list[int]:
        """As `Target.controller_exits`."""
        return [end.code for end in controller.ends_of(self.cluster.settings)]

    def counts(self) -> list[dict[str, Any]]:
        """As `Target.counts`."""
        return pods.counts()

    def describe(self) -> str:
        """Say which programs run, and the ends of their logs, for the report of a failed case."""
        settings = self.cluster.settings
        parts = []
        for name in process.names(settings):
            note = process.read(settings, name)
            parts.append(f"## {name}: {f'pid {note.pid}' if note else 'ENDED'}\n{log_tail(settings, name, 15)}")
        return "\n".join(parts)


@dataclass
class KubeconfigTarget:
    """Any cluster with a gateway, Argo Rollouts and the plugin in place; kind's is one with a node to reach into."""

    kubeconfig: Path
    image: str
    gateway_class: str
    gateway_address: str = ""
    kind_node: str = ""  # the node's container, where there is one
    name: str = "kubeconfig"
    exact: bool = False
    rollouts: Rollouts = "1.9"

    @property
    def can(self) -> frozenset[str]:
        """As `Target.can`."""
        return frozenset({"kill", "restart"} if self.kind_node else ()) | {f"rollouts-{self.rollouts}"}

    @contextmanager
    def reached(self) -> Iterator[None]:
        """As `Target.reached`."""
        yield

    def api(self) -> Api:
        """As `Target.api`."""
        return Api(self.kubeconfig)

    def run(self, command: Sequence[str], *, text: str | None = None) -> str:
        """As `Target.run`."""
        return process.run(command, text=text, environment={**os.environ, "KUBECONFIG": str(self.kubeconfig)})

    def address(self) -> str:
        """As `Target.address`."""
        if self.gateway_address:
            return self.gateway_address
        gateway = self.api().read("Gateway", GATEWAY_NAMESPACE, GATEWAY_NAME) or {}
        addresses = gateway.get("status", {}).get("addresses") or []
        if not addresses:
            raise CommandFailed("the Gateway has no address yet; give one with --e2e-gateway-address")
        return str(addresses[0]["value"])

    def wait_for_gateway(self) -> None:
        """As `Target.wait_for_gateway`, in a new kind cluster; others may have one that waits for a load balancer."""
        if self.kind_node:
            until(self._programmed, "the Gateway is programmed", seconds=GATEWAY_SECONDS)

    def _programmed(self) -> bool:
        gateway = self.api().read("Gateway", GATEWAY_NAMESPACE, GATEWAY_NAME) or {}
        conditions = gateway.get("status", {}).get("conditions", [])
        return any(item["type"] == "Programmed" and item["status"] == "True" for item in conditions)

    def values(self) -> dict[str, str]:
        """Nothing: the cluster's owner installed the plugin."""
        return {}

    def controller_healthy(self) -> bool:
        """As `Target.controller_healthy`."""
        found = self.api().read("Deployment", CONTROLLER_NAMESPACE, "argo-rollouts") or {}
        return bool(found.get("status", {}).get("availableReplicas"))

    def kill(self, what: str) -> None:
        """As `Target.kill`: in the node, since the controller's image has no shell."""
        of = ["-f", "^/bin/rollouts-controller"] if what == "controller" else ["-x", _PLUGIN_PROCESS]
        until(lambda: self._in_node("pkill", "-KILL", *of), f"there is a {what} to kill", seconds=BACK_SECONDS)

    def _in_node(self, *command: str) -> str:
        """Run a command in the node; `NotYet` where it fails, as `pkill` and `pgrep` do when they find nothing."""
        try:
            return self.run(["docker", "exec", self.kind_node, *command]) or "done"
        except CommandFailed as failed:
            raise NotYet(str(failed)) from failed

    def _other_apiserver(self, before: str) -> bool:
        if self._in_node("pgrep", "-x", "kube-apiserver") == before:
            raise NotYet("the old one still runs")
        try:
            return self.api().read("Namespace", "", "default") is not None
        except ApiTrouble as trouble:
            raise NotYet(str(trouble)) from trouble

    def restart(self, what: str) -> None:
        """As `Target.restart`."""
        if what == "apiserver":
            before = self._in_node("pgrep", "-x", "kube-apiserver")
            self._in_node("pkill", "-TERM", "-x", "kube-apiserver")
            until(lambda: self._other_apiserver(before), "the API server is back", seconds=BACK_SECONDS)
            return
        place = ["--namespace", CONTROLLER_NAMESPACE]
        self.run(["kubectl", *place, "rollout", "restart", "deployment/argo-rollouts"])
        self.run(["kubectl", *place, "rollout", "status", "deployment/argo-rollouts", "--timeout=120s"])

    def configure(self, wanted: Configure | None) -> None:
        """Never asked for: `can` does not have it."""
        raise NotImplementedError(wanted)

    def controller_log(self) -> str:
        """As `Target.controller_log`."""
        place = ["--namespace", CONTROLLER_NAMESPACE]
        try:
            return self.run(["kubectl", *place, "logs", "deployment/argo-rollouts", "--tail=20000"])
        except CommandFailed as reason:  # one may tell cases without the right to read it
            return f"(no log: {reason})\n"

    def controller_exits(self) -> list[int]:
        """As `Target.controller_exits`."""
        codes = []
        for pod in self.api().all_of("Pod", CONTROLLER_NAMESPACE):
            for status in pod["status"].get("containerStatuses", []):
                ended = status.get("lastState", {}).get("terminated")
                codes += [int(ended["exitCode"])] if ended else []
        return codes

    def counts(self) -> list[dict[str, Any]]:
        """Nothing: each real pod has its own counts, out of reach."""
        return []

    def describe(self) -> str:
        """Say when, and where."""
        return f"{self.kubeconfig} at {time.ctime()}"
