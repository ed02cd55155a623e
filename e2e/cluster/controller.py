"""The stock Argo Rollouts controller in a container like its own, with the plugin in it.

The container: uid 999 without capabilities, a read-only root that holds the controller, the plugin file, the service
account's files and nothing else; writable are only /tmp and plugin-bin, as in the stock manifest. The controller finds
the API server as any pod does, with a token of its service account and that account's rights.

With `plugin="venv"` (development: no single-file plugin built yet) the root also has the machine's programs, Python and
this repository, read-only, and the plugin is a shell script that runs the virtual environment's.
"""

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster import container, process
from e2e.cluster.container import Bind, Exit, Spec
from e2e.cluster.controlplane import answers, kubectl
from e2e.cluster.gateway import MACHINE_FOLDERS
from e2e.cluster.process import Command
from e2e.cluster.settings import (
    API_ADDRESS,
    API_PORT,
    CONTROLLER_GID,
    CONTROLLER_HEALTH_PORT,
    CONTROLLER_METRICS_PORT,
    CONTROLLER_NAMESPACE,
    CONTROLLER_UID,
    FILES_PORT,
    NODE_ADDRESS,
    PLUGIN_NAME,
    REPOSITORY,
    Settings,
    machine,
)
from e2e.cluster.tools import Tools
from e2e.waiting import NotYet, until

READY_SECONDS = 120.0
# Where the install manifests have it, and where a folder with a release's files has it.
PLUGIN_PATH = "/plugins/rollouts-gwapi-plugin"
PLUGIN_PATHS = (PLUGIN_PATH, f"{PLUGIN_PATH}-linux-{machine()}")
HOME = "/home/argo-rollouts"
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_HEALTH = f"http://127.0.0.1:{CONTROLLER_HEALTH_PORT}/healthz"
# What the image has besides the controller (distroless static).
_FILES = {
    "/etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
    "/etc/group": "root:x:0:\nnonroot:x:65532:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/resolv.conf": "nameserver 10.96.0.10\nsearch argo-rollouts.svc.cluster.local svc.cluster.local\n",
}


def prepare(settings: Settings, tools: Tools) -> None:
    """Write the container's volumes and its description."""
    home = settings.controller
    for folder in ("root", "serviceaccount", "plugins"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "plugin-bin").mkdir(exist_ok=True)
    (home / "plugin-bin").chmod(0o777)  # as an emptyDir is
    _write_service_account(settings, tools)
    spec = Spec(
        command=[
            "/bin/rollouts-controller",
            "--leader-elect=false",
            f"--healthzPort={CONTROLLER_HEALTH_PORT}",
            f"--metricsPort={CONTROLLER_METRICS_PORT}",
        ],
        root=str(home / "root"),
        notes=str(home),
        environment={
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/",
            "HOSTNAME": "argo-rollouts",
            "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
            "KUBERNETES_SERVICE_HOST": API_ADDRESS,
            "KUBERNETES_SERVICE_PORT": str(API_PORT),
        },
        folder=HOME,
        binds=[
            Bind(str(tools.path("rollouts-controller")), "/bin/rollouts-controller"),
            Bind(str(home / "serviceaccount"), _SERVICE_ACCOUNT),
            Bind(str(home / "plugin-bin"), f"{HOME}/plugin-bin", read_only=False),
            *_plugin_binds(settings),
        ],
        files=_FILES,
        hostname="argo-rollouts",
        uid=CONTROLLER_UID,
        gid=CONTROLLER_GID,
    )
    spec.save(home / "spec.json")


def start(settings: Settings) -> None:
    """Start the container's supervisor, and a server from which the plugin can be downloaded."""
    serve = ["http.server", f"--bind={NODE_ADDRESS}", f"--directory={plugin_file(settings).parent}", str(FILES_PORT)]
    process.start(settings, "files", [sys.executable, "-m", *serve])
    command: Command = [sys.executable, "-m", container.__name__, "supervise", settings.controller / "spec.json"]
    process.start(settings, "controller", command, folder=REPOSITORY)


def wait(settings: Settings) -> None:
    """Wait until the controller is healthy; say how it ended if it does not stay up."""

    def healthy() -> bool:
        try:
            return answers(_HEALTH)
        except NotYet as reason:
            ends = ends_of(settings)
            raise NotYet(
                f"{reason}; it ended {len(ends)} times, last with {ends[-1].code}" if ends else str(reason)
            ) from reason

    until(healthy, "the controller is healthy", seconds=READY_SECONDS)


def healthy() -> bool:
    """Whether it says now that it is healthy."""
    try:
        return answers(_HEALTH)
    except NotYet:
        return False


def ends_of(settings: Settings) -> list[Exit]:
    """How the container ended, each time that it did."""
    return container.exits(settings.controller)


def pid(settings: Settings) -> int:
    """Process id of the running controller."""

    def find() -> int:
        path = settings.controller / "pid"
        found = int(path.read_text()) if path.exists() else 0
        return found if found and process.started_at(found) is not None else 0

    return until(find, "the controller runs", seconds=READY_SECONDS)


def plugin_pids(settings: Settings) -> list[int]:
    """Process ids of the plugin: the controller's children."""
    tasks = Path(f"/proc/{pid(settings)}/task")
    return [int(child) for path in tasks.glob("*/children") for child in _read(path)]


def _read(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def kill(settings: Settings) -> None:
    """Kill the controller without warning; its container ends with it and is started again."""
    os.kill(pid(settings), signal.SIGKILL)


def restart(settings: Settings) -> None:
    """End the container in an orderly way; it is started again. What it reads at start is read anew."""
    ends = len(ends_of(settings))
    os.kill(pid(settings), signal.SIGTERM)
    until(lambda: len(ends_of(settings)) > ends, "the controller ended", seconds=READY_SECONDS)


def configure(
    settings: Settings,
    tools: Tools,
    *,
    location: str = f"file://{PLUGIN_PATH}",
    sha256: str = "",
    args: Sequence[str] = (),
) -> None:
    """Write argo-rollouts-config, which the controller reads at its start."""
    plugin = {"name": PLUGIN_NAME, "location": location}
    entry = {**plugin, **({"sha256": sha256} if sha256 else {}), **({"args": list(args)} if args else {})}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argo-rollouts-config", "namespace": CONTROLLER_NAMESPACE},
        # JSON is YAML.
        "data": {"trafficRouterPlugins": json.dumps([entry])},
    }
    apply = ["apply", "--server-side", "--force-conflicts", "--filename=-"]
    kubectl(settings, tools, *apply, text=json.dumps(config))


def _write_service_account(settings: Settings, tools: Tools) -> None:
    folder = settings.controller / "serviceaccount"
    create = ["--namespace", CONTROLLER_NAMESPACE, "create", "token", "argo-rollouts", "--duration=24h"]
    token = kubectl(settings, tools, *create).strip()
    (folder / "token").write_text(token)
    (folder / "namespace").write_text(CONTROLLER_NAMESPACE)
    (folder / "ca.crt").write_bytes((settings.state / "pki" / "ca.crt").read_bytes())


def _plugin_binds(settings: Settings) -> list[Bind]:
    file = plugin_file(settings)
    if settings.plugin == "binary":
        if not file.exists():
            raise FileNotFoundError(f"no plugin at {file}: run `make binary`, or choose --plugin venv")
        return [Bind(str(file), path) for path in PLUGIN_PATHS]
    program = Path(sys.executable).parent / "rollouts-gwapi-plugin"
    file.write_text(f'#!/usr/bin/sh\nexec "{program}" "$@"\n')
    file.chmod(0o755)
    folders = [folder for folder in MACHINE_FOLDERS if Path(folder).exists() and folder not in {"/etc", "/bin"}]
    binds = [Bind(path, path) for path in (*folders, sys.base_prefix, str(REPOSITORY))]
    return [*binds, *(Bind(str(file), path) for path in PLUGIN_PATHS)]


def plugin_file(settings: Settings) -> Path:
    """Return the machine's file that the controller is given as the plugin."""
    return settings.binary if settings.plugin == "binary" else settings.controller / "plugins" / "plugin.sh"


def kill_plugin(settings: Settings) -> None:
    """Kill the plugin without warning, as soon as there is one."""
    for found in until(lambda: plugin_pids(settings), "the plugin runs", seconds=READY_SECONDS):
        os.kill(found, signal.SIGKILL)
