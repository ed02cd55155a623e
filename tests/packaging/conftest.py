"""What the packaging tests share: launchers around a small tree, the real executable, and rooms to run them in."""

import fcntl
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.interop.conftest import Host, host_binary, rollout
from tests.packaging.rooms import HERE, TMP, USER, Launchers, Space, install, needs_go, needs_root

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

__all__ = ["host_binary", "rollout"]

from builder import payload
from builder.executable import Options, make_executable, make_launcher
from builder.places import ARCHITECTURES

# Cold, the executable takes a minute of compression and the compiler another; both are kept between runs.
BUILD_SECONDS = 900
ROUTE = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "parentRefs": [{"name": "gateway"}],
        "rules": [{"backendRefs": [{"name": "stable", "port": 80}, {"name": "canary", "port": 80}]}],
    },
}
SERVICE = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests here time for the first build."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(BUILD_SECONDS))
            item.add_marker("go")


_FIGURES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the list of what was measured."""
    config.stash[_FIGURES] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was measured."""
    for line in config.stash[_FIGURES]:
        terminalreporter.write_line(f"executable: {line}")


@pytest.fixture
def figures(pytestconfig: pytest.Config) -> list[str]:
    """Give the list of what was measured, a line each; it is printed at the end."""
    return pytestconfig.stash[_FIGURES]


@pytest.fixture(scope="session")
def launchers(tmp_path_factory: pytest.TempPathFactory) -> Launchers:
    """Build them once."""
    needs_go()
    folder = tmp_path_factory.mktemp("launchers")
    probe = folder / "probe"
    subprocess.run(
        ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(probe), "."],
        cwd=HERE / "probe",
        env={**os.environ, "CGO_ENABLED": "0"},
        check=True,
    )
    made = []
    for version in ("first", "second"):
        tree = folder / f"tree-{version}"
        (tree / "bin").mkdir(parents=True)
        (tree / "lib").mkdir()
        shutil.copy(probe, tree / "bin" / "rollouts-gwapi")
        (tree / "version").write_text(version)
        noise = random.Random(version)  # noqa: S311 - bytes that zstd can't shrink
        for number in range(64):
            (tree / "lib" / f"ballast-{number}").write_bytes(noise.randbytes(512 * 1024))
        made.append(folder / f"launcher-{version}")
        make_launcher(made[-1], ARCHITECTURES["amd64"], [payload.pack(tree, level=1, last=True)])
    return Launchers(*made)


@pytest.fixture(scope="session")
def executable(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Build the real executable once, also for several workers, from layers that are kept between runs."""
    needs_go()
    folder = tmp_path_factory.getbasetemp()
    folder = folder if worker_id == "master" else folder.parent
    target = folder / "executable"
    with (folder / "executable.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            make_executable(target, ARCHITECTURES["amd64"], Options())
    return target


@pytest.fixture
def plugin_bin(tmp_path: Path) -> Path:
    """Give a directory of the controller's user, as plugin-bin is."""
    folder = tmp_path / "plugin-bin"
    folder.mkdir()
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, USER, USER)
    return folder


@pytest.fixture
def space(tmp_path: Path, plugin_bin: Path) -> Space:
    """Give a root with plugin-bin and nothing else that can be written to."""
    needs_root()
    return Space(tmp_path, {"binds": {"/plugin-bin": str(plugin_bin)}, "tmpfs": {}, "files": {}})


@pytest.fixture
def running() -> Iterator[list["subprocess.Popen[str]"]]:
    """Collect processes; those that still run at the end are killed."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def cluster(space: Space, executable: Path, host_binary: Path, plugin_bin: Path, tmp_path: Path) -> Iterator[ApiServer]:
    """Give an API server over TLS, whose service account is mounted in the root beside the host and the plugin."""
    with ApiServer(tls=True, require_token=True) as api:
        account = tmp_path / "account"
        account.mkdir()
        (account / "ca.crt").write_text(api.certificate_pem)
        (account / "token").write_text(api.access.default_token)
        (account / "namespace").write_text("default")
        resolver = tmp_path / "resolv.conf"
        resolver.write_text("nameserver 127.0.0.1\nsearch default.svc.cluster.local\noptions ndots:5\n")
        mounted = "/var/run/secrets/kubernetes.io/serviceaccount"
        space.description["files"] = {
            "/host": str(host_binary),
            "/etc/resolv.conf": str(resolver),
            **{f"{mounted}/{name}": str(account / name) for name in ("ca.crt", "token", "namespace")},
        }
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        space.description["binds"][TMP] = str(temporary)
        install(executable, plugin_bin, "gatewayAPI")
        api.create(ROUTE)
        for name in ("stable", "canary"):
            api.create({**SERVICE, "metadata": {"name": name, "namespace": "default"}})
        yield api


@pytest.fixture
def controller_in(cluster: ApiServer, tmp_path: Path) -> Iterator[Callable[[Space], Host]]:
    """Give a function that runs the controller's client in a root, as its user."""
    hosts: list[Host] = []
    environment = {
        "PATH": "/",
        "HOME": "/",
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": cluster.url.rpartition(":")[2],
    }

    def run(space: Space) -> Host:
        hosts.append(Host(Path("/host"), environment, tmp_path / f"host-{len(hosts)}.log", space.command([])))
        return hosts[-1]

    yield run
    for host in hosts:
        host.end()
        if host.plugin_pid:
            host.wait_for_end()


@pytest.fixture
def controller(controller_in: Callable[[Space], Host], space: Space) -> Host:
    """Run the controller's client where a plugin is well off."""
    return controller_in(space)
