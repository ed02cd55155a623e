"""What there is to choose about a cluster: name, folder, Gateway API channel, plugin, controller; its fixed addresses.

Ports and addresses are the same in every cluster: each has its own network namespaces. Nothing in here does IO.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
MANIFESTS = HERE / "manifests"
# The rights that the project tells its users to give the plugin.
PLUGIN_RIGHTS = REPOSITORY / "examples" / "install" / "rbac.yaml"

# The API server's address as pods know it; it is the first of the Service range, as kubeadm has it.
API_ADDRESS = "10.96.0.1"
API_PORT = 443
API_URL = f"https://{API_ADDRESS}:{API_PORT}"
SERVICE_RANGE = "10.96.0.0/16"
# From 198.18.0.0/15, which is set apart for tests of network devices and so is nobody's.
NODE_ADDRESS = "198.18.0.1"
PODS_GATEWAY = "198.18.0.2"
LINK_PREFIX = 24
POD_RANGE = "198.18.64.0/18"
# Where the echo program tells its counts; 198.18.0.2 stands in the pods' namespace.
ECHO_CONTROL_PORT = 9100
ETCD_URL = "http://127.0.0.1:2379"
# 8080 is taken by Envoy Gateway's metrics.
CONTROLLER_HEALTH_PORT = 28080
CONTROLLER_METRICS_PORT = 28090
# Where the plugin can be downloaded from, at the node's address.
FILES_PORT = 28100
CONTROLLER_NAMESPACE = "argo-rollouts"
GATEWAY_NAMESPACE = "envoy-gateway-system"
GATEWAY_CLASS = "eg"
PLUGIN_NAME = "argoproj-labs/gatewayAPI"
# The controller's container: uid of its image, and group 0, which a numeric USER without a group gets.
CONTROLLER_UID = 999
CONTROLLER_GID = 0

Channel = Literal["standard", "experimental"]
Plugin = Literal["binary", "venv"]
# Argo Rollouts: 1.10 is the first that takes setMirrorRoute and pingPong with a plugin.
Rollouts = Literal["1.9", "1.10"]


def cache_root() -> Path:
    """Where tools and clusters live unless told otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rollouts-gwapi-e2e"


@dataclass(frozen=True)
class Settings:
    """One cluster's choices, and the paths and names that follow from them."""

    name: str = "default"
    root: Path = field(default_factory=cache_root)
    channel: Channel = "standard"
    plugin: Plugin = "binary"
    rollouts: Rollouts = "1.9"

    @property
    def state(self) -> Path:
        """Everything that this cluster writes, but for the tools' cache."""
        return self.root / "clusters" / self.name

    @property
    def node_namespace(self) -> str:
        """Name of the network namespace of control plane, controller and gateway."""
        return f"gwapi-{self.name}"

    @property
    def pods_namespace(self) -> str:
        """Name of the network namespace in which the pods' addresses are local."""
        return f"gwapi-{self.name}-pods"

    @property
    def logs(self) -> Path:
        """One log file a program."""
        return self.state / "logs"

    @property
    def pids(self) -> Path:
        """One file a running program."""
        return self.state / "pids"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.state / "kubeconfig"

    @property
    def controller(self) -> Path:
        """The controller container's volumes and its supervisor's notes."""
        return self.state / "controller"

    @property
    def binary(self) -> Path:
        """The single-file plugin that `make binary` makes."""
        return REPOSITORY / "dist" / f"rollouts-gwapi-plugin-linux-{machine()}"


def machine() -> str:
    """Name of this machine's architecture in Go's words."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
