"""The Go host as a fixture: the controller's own client code, driven by JSON lines (go/main.go).

`go_host` starts one and hands out a `Host`; a test tells it to start the plugin in the way of the test's `mode` and to
make calls. When the test is over the host is killed, and the plugin must be gone: that is checked after every test.
"""

import fcntl
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

HERE = Path(__file__).parent
PLUGIN = Path(sys.executable).parent / "rollouts-gwapi-plugin"
# Compiling the API types of Argo Rollouts and Kubernetes from nothing takes minutes on a small machine.
BUILD_SECONDS = 1500
# A host that is asked has this long; nothing here takes more than a few seconds.
ANSWER_SECONDS = 60.0
# What a plugin may take to end after its host (decision D4), on a machine that has a core for it.
END_SECONDS = 2.0
_PAUSE = threading.Event()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here: it needs Go, and the first test waits for the compiler."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("go")
            item.add_marker(pytest.mark.timeout(BUILD_SECONDS))


@dataclass(frozen=True)
class Mode:
    """One way to reach the plugin."""

    protocol: str
    auto_mtls: bool

    def __str__(self) -> str:
        return self.protocol + ("-mtls" if self.auto_mtls else "")


MODES = [Mode(protocol, mtls) for protocol in ("netrpc", "grpc") for mtls in (False, True)]


def is_running(pid: int) -> bool:
    """Tell whether a process lives; one that only waits to be reaped does not."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.parent.parent.joinpath("self").exists():
        with suppress(OSError):
            return stat.read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait with a deadline until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        _PAUSE.wait(0.01)


class Host:
    """A running Go host; each method is one of its commands, and returns its answer."""

    def __init__(self, binary: Path, environment: dict[str, str], log: Path, enter: Sequence[str] = ()) -> None:
        """Start it; `enter` is a command line that runs the host where it is to run."""
        self.binary = binary
        self._log = log
        self.plugin_pid = 0
        self.address = ""
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*enter, binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=environment
            )
        self._answers = queue.Queue[dict[str, Any]]()
        self._reader = threading.Thread(target=self._read, name="host-answers", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put({"host_error": "the host ended"})

    def do(self, name: str, /, *, seconds: float = ANSWER_SECONDS, **fields: Any) -> dict[str, Any]:
        """Give a command and return its answer."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"do": name, **fields}).encode() + b"\n")
        self.process.stdin.flush()
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            pytest.fail(f"the host has not answered {name!r} within {seconds} s; it said: {self.complaints}")
        assert "host_error" not in answer, f"{name}: {answer['host_error']}; {self.complaints}"
        return answer

    def start(self, mode: Mode | None = None, **config: Any) -> dict[str, Any]:
        """Start the plugin, connect and initialise it, as the controller does."""
        if mode:
            config = {"protocol": mode.protocol, "auto_mtls": mode.auto_mtls, "allow_grpc": True, **config}
            config.setdefault("args", ["serve", "--transport", mode.protocol])
        answer = self.do("start", start={"path": str(PLUGIN), "args": ["serve"], **config})
        self.plugin_pid = answer.get("pid", 0)
        self.address = answer.get("address", "")
        return answer

    def started(self, mode: Mode | None = None, **config: Any) -> "Host":
        """Start the plugin and expect that it works."""
        answer = self.start(mode, **config)
        assert answer["error"] == "", f"{answer['error']}; the plugin said: {self.plugin_stderr()}"
        return self

    def call(self, method: str, /, **arguments: Any) -> dict[str, Any]:
        """Make one call of the controller."""
        return self.do("call", call={"method": method, **arguments})

    def background(self, name: str, method: str, /, *, count: int = 0, **arguments: Any) -> None:
        """Make a call (or many at once) whose answer `do("await", id=name)` waits for."""
        self.do("background", id=name, count=count, call={"method": method, **arguments})

    def plugin_stderr(self) -> list[str]:
        """Return the lines that the plugin wrote to its standard error."""
        return list(self.do("logs")["stderr"])

    def logs(self) -> list[dict[str, Any]]:
        """Return what go-plugin logged, the plugin's own lines among it."""
        return [json.loads(line) for line in self.do("logs")["logs"] if line]

    def last_words(self) -> list[str]:
        """Return all that is known of a plugin at the end of its test."""
        if self.process.poll() is not None or not self.plugin_pid:
            return [self.complaints]
        return [f"plugin {self.plugin_pid}, ended: {self.plugin_ended()}", *self.plugin_stderr(), self.complaints]

    @property
    def complaints(self) -> str:
        """What the host's process wrote to standard error: yamux's errors, panics."""
        return self._log.read_text()

    def plugin_ended(self) -> bool:
        """Tell whether the plugin's process is gone."""
        return not is_running(self.plugin_pid)

    def wait_for_end(self) -> None:
        """Wait for the plugin's end, no longer than it may take: n times as long where n processes share a core."""
        crowd = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        wait_until(self.plugin_ended, END_SECONDS * crowd, "the plugin ended with its host")

    def end(self) -> None:
        """Kill the host, if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with suppress(BrokenPipeError):
                    pipe.close()


def build_host(binary: Path) -> None:
    """Compile the Go host."""
    build = ["go", "build", "-o", str(binary), "."]
    # Static, since it also runs in an empty root.
    static = {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run(build, cwd=HERE / "go", env=static, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(build)}: {done.stderr}"


@pytest.fixture(scope="session")
def host_binary(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Build the Go host once, also for several workers."""
    if shutil.which("go") is None:
        pytest.skip("the judge of the wire is the controller's own code in Go, and there is no `go` on PATH")
    folder = tmp_path_factory.getbasetemp()
    folder = folder if worker_id == "master" else folder.parent
    binary = folder / "interop-host"
    with (folder / "interop-host.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            build_host(binary)
    return binary


@pytest.fixture(params=MODES, ids=str)
def mode(request: pytest.FixtureRequest) -> Mode:
    """Give each transport, with and without AutoMTLS."""
    assert isinstance(request.param, Mode)
    return request.param


def create_web(server: ApiServer) -> None:
    """Create an HTTPRoute, `web`, with a stable and a canary backend."""
    rule = {"backendRefs": [{"name": "stable", "port": 80}, {"name": "canary", "port": 80}]}
    server.create(
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"parentRefs": [{"name": "gateway"}], "rules": [rule]},
        }
    )
    for name in ("stable", "canary"):
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}}
        server.create({**service, "spec": {"ports": [{"port": 80}]}})


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """Serve an API with the route `web`."""
    with ApiServer() as server:
        create_web(server)
        yield server


@pytest.fixture
def environment(api: ApiServer, tmp_path: Path) -> dict[str, str]:
    """Give the environment of the host, and so of the plugin: its API server is `api`."""
    kubeconfig = api.write_kubeconfig(tmp_path / "kubeconfig")
    return {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}


@pytest.fixture
def hosts(host_binary: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[[], Host]]:
    """Run Go hosts; each one's plugin must end soon after it was killed, and yamux must have nothing to complain of."""
    running: list[Host] = []

    def make() -> Host:
        running.append(Host(host_binary, environment, tmp_path / f"host-{len(running)}.log"))
        return running[-1]

    yield make
    for host in running:
        # Shown by pytest where the test failed.
        sys.stderr.write("\n".join(host.last_words()))
        host.end()
    for host in running:
        if host.plugin_pid:
            host.wait_for_end()
        assert "[ERR]" not in host.complaints


@pytest.fixture
def go_host(hosts: Callable[[], Host]) -> Host:
    """Run a Go host."""
    return hosts()


@pytest.fixture
def another_host(hosts: Callable[[], Host]) -> Host:
    """Run a second Go host."""
    return hosts()


def web_rollout() -> dict[str, Any]:
    """Return a Rollout whose plugin configuration names the route `web`."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "6f1c7f9a-0c55-4a57-9d4e-6c2f0c0c8f11",
            "resourceVersion": "1",
            "annotations": {"rollout.argoproj.io/revision": "2"},
        },
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {
                "canary": {
                    "stableService": "stable",
                    "canaryService": "canary",
                    "steps": [{"setWeight": 20}, {"pause": {}}, {"setWeight": 50}],
                    "trafficRouting": {"plugins": {"argoproj-labs/gatewayAPI": {"httpRoute": "web"}}},
                }
            },
        },
        "status": {"currentStepIndex": 0, "stableRS": "5d7c5c8b9d", "currentPodHash": "7b9c4d6f5f"},
    }


@pytest.fixture
def rollout() -> dict[str, Any]:
    """Give a Rollout whose plugin configuration names the route `web`."""
    return web_rollout()
