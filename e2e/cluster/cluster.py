"""The order of it all: what `up`, `down` and the restarts do.

One lock file a cluster: `up`, `down` and a run of tests hold it alone, so that nobody loses it in use;
`exec` needs no lock. `up` first sweeps what an earlier run, killed or not, left behind.
"""

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import controller, controlplane, gateway, network, pods, process, tools
from e2e.cluster.process import CommandFailed
from e2e.cluster.settings import CONTROLLER_NAMESPACE, PLUGIN_RIGHTS, Settings
from e2e.cluster.tools import Tools

_ARGO_MODULE = "github.com/argoproj/argo-rollouts"
_GATEWAY_API_MODULE = "sigs.k8s.io/gateway-api"
_ARGO_MANIFESTS = (
    "base/argo-rollouts-sa.yaml",
    "base/argo-rollouts-aggregate-roles.yaml",
    "base/argo-rollouts-notification-secret.yaml",
    "role/argo-rollouts-clusterrole.yaml",
    "cluster-install/argo-rollouts-clusterrolebinding.yaml",
)


# It waits for watches that nobody ends; on a node it would be killed after a while, too.
API_STOP_SECONDS = 3.0


class InUse(Exception):  # noqa: N818 - a state, not an error of the program
    """Somebody else uses the cluster."""


@dataclass(frozen=True)
class Cluster:
    """A cluster, up or not."""

    settings: Settings
    tools: Tools

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the cluster alone for the time of the block."""
        path = self.settings.root / "clusters" / f"{self.settings.name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InUse(f"cluster {self.settings.name!r} is in use; choose another name") from error
            yield

    def up(self, tell: Callable[[str], None]) -> None:
        """Start everything from nothing and wait until all of it is ready."""
        began = time.monotonic()
        self.up_bare(tell)
        settings = self.settings
        with network.inside(settings.node_namespace):
            controlplane.start_controllers(settings, self.tools)
            pods.start(settings, self.tools)
            self._define()
            gateway.start(settings, self.tools)
            controller.prepare(settings, self.tools)
            controller.configure(settings, self.tools)
            controller.start(settings)
            controlplane.wait_controllers(settings, self.tools)
            pods.wait(settings, self.tools)
            gateway.wait()
            controller.wait(settings)
        tell(f"cluster {settings.name!r} ready after {time.monotonic() - began:.1f} s")

    def up_bare(self, tell: Callable[[str], None]) -> None:
        """Start etcd and the API server, nothing else."""
        began = time.monotonic()
        self.sweep(tell)
        settings = self.settings
        for folder in (settings.state, settings.logs, settings.pids):
            folder.mkdir(parents=True, exist_ok=True)
        network.create(settings)
        with network.inside(settings.node_namespace):
            controlplane.prepare(settings)
            controlplane.start_etcd(settings, self.tools)
            controlplane.start_apiserver(settings, self.tools)
        tell(f"API server of {settings.name!r} ready after {time.monotonic() - began:.1f} s")

    def down(self, tell: Callable[[str], None]) -> None:
        """Stop everything in order, then sweep."""
        for name in ("controller", "files", "gateway", "echo", "kwok", "scheduler", "kcm", "apiserver", "etcd"):
            process.stop(self.settings, name)
        self.sweep(tell)

    def sweep(self, tell: Callable[[str], None]) -> None:
        """Remove what there is of this cluster: processes, namespaces, files."""
        killed = network.sweep(self.settings)
        for name in process.names(self.settings):
            process.stop(self.settings, name, signal_number=signal.SIGKILL)
        if killed:
            tell(f"killed {killed} processes that were left in {self.settings.node_namespace}")
        if self.settings.state.exists():
            shutil.rmtree(self.settings.state)

    def restart_apiserver(self) -> None:
        """Stop the API server in an orderly way and start it again; called inside the node's network namespace."""
        process.stop(self.settings, "apiserver", seconds=API_STOP_SECONDS)
        controlplane.start_apiserver(self.settings, self.tools)

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Run kubectl as the administrator; called inside the node's network namespace."""
        return controlplane.kubectl(self.settings, self.tools, *arguments, text=text)

    def environment(self) -> dict[str, str]:
        """Return the environment in which programs find the cluster and its tools."""
        path = os.pathsep.join((self.tools.search_path, os.environ.get("PATH", os.defpath)))
        return {**os.environ, "PATH": path, "KUBECONFIG": str(self.settings.kubeconfig)}

    def _define(self) -> None:
        """Install the definitions of Argo Rollouts and of the Gateway API, and the controller's rights."""
        argo = self.tools.module(self.tools.group_of("rollouts-controller"), _ARGO_MODULE) / "manifests"
        routes = self.tools.module("gateway", _GATEWAY_API_MODULE) / "config" / "crd" / self.settings.channel
        # The upgrade policy refuses a change of channel; nobody upgrades this cluster.
        files = [
            path for path in sorted(routes.glob("gateway.networking.k8s.io_*.yaml")) if "safeupgrades" not in path.name
        ]
        files += sorted((argo / "crds").glob("*-crd.yaml"))
        # Nothing is there yet, and `create` costs half of what a server-side apply of these large schemas does.
        self.kubectl("create", *(f"--filename={path}" for path in files))
        with suppress(CommandFailed):  # it exists
            self.kubectl("create", "namespace", CONTROLLER_NAMESPACE)
        rights = [argo / name for name in _ARGO_MANIFESTS] + [PLUGIN_RIGHTS]
        self.kubectl(
            "apply", "--server-side", f"--namespace={CONTROLLER_NAMESPACE}", *(f"--filename={path}" for path in rights)
        )


def open_cluster(settings: Settings, tell: Callable[[str], None], *, build: bool) -> Cluster:
    """Return the cluster with its tools; build them, or raise FileNotFoundError."""
    found = (
        tools.build(settings.root, settings.rollouts, tell) if build else tools.find(settings.root, settings.rollouts)
    )
    if found is None:
        raise FileNotFoundError("the tools are not built: run `python -m e2e.cluster build`")
    return Cluster(settings, found)


def log_tail(settings: Settings, name: str, lines: int) -> str:
    """Return the last lines of a program's log."""
    path: Path = settings.logs / f"{name}.log"
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else "(no log)"
