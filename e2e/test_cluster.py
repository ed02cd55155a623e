"""The cluster itself: what it promises to the cases is so."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.conformance.release import RELEASE

from e2e.cluster import controller, network, process
from e2e.cluster.cluster import Cluster, open_cluster
from e2e.cluster.settings import REPOSITORY, Settings
from e2e.runner.case import read
from e2e.runner.story import tell
from e2e.runner.target import LocalTarget, Target, make_gateway
from e2e.waiting import NotYet, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900, func_only=True)]

HERE = Path(__file__).parent
WAIT_SECONDS = 120.0


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


@pytest.mark.e2e_short
def test_controller_is_confined_as_its_container_is(cluster: Cluster) -> None:
    """The controller is pid 1, uid 999, group 0, without capabilities, in a read-only root of its own."""
    pid = controller.pid(cluster.settings)
    status = _status(pid)
    root = Path(f"/proc/{pid}/root")
    # As seen from inside: what lies outside of its root is not in its list.
    mounts = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    writable = {fields[4] for fields in mounts if "rw" in fields[5].split(",")}

    assert status["NSpid"].split()[-1] == "1"
    assert status["Uid"].split() == ["999"] * 4
    assert status["Gid"].split() == ["0"] * 4
    assert status["Groups"] == ""
    assert [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0] * 5
    assert status["NoNewPrivs"] == "1"
    assert "/" in {fields[4] for fields in mounts}
    assert writable - {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "shm")} == {
        "/proc",
        "/tmp",  # noqa: S108 - the container's
        f"{controller.HOME}/plugin-bin",
    }
    if cluster.settings.plugin == "binary":
        assert {path.name for path in root.iterdir()} == {"bin", "dev", "etc", "home", "plugins", "proc", "tmp", "var"}


@pytest.fixture
def pod(target: Target) -> Iterator[str]:
    """Make a pod that echo answers for; give its address."""
    if not isinstance(target, LocalTarget):
        pytest.skip("needs the local cluster: its pods are played")
    name = f"lone-{os.getpid()}"
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "echo", "image": "echo:v7", "ports": [{"containerPort": 8080}]}]},
    }
    target.run(["kubectl", "apply", "--filename=-"], text=yaml.safe_dump(document))
    api = target.api()

    def address() -> str:
        status = (api.read("Pod", "default", name) or {}).get("status", {})
        ready = any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions", []))
        return status["podIP"] if ready else ""

    yield until(address, "the pod is Ready", seconds=WAIT_SECONDS)
    target.run(["kubectl", "--namespace=default", "delete", "pod", name, "--wait=false"])


def _talk(address: str) -> tuple[socket.socket, bytes]:
    try:
        connection = socket.create_connection((address, 8080), timeout=WAIT_SECONDS)
    except OSError as error:
        raise NotYet(str(error)) from error
    connection.sendall(b"who\n")
    return connection, connection.recv(65_536)


@pytest.mark.e2e_short
def test_only_ready_pods_answer(target: Target, pod: str) -> None:
    """A Ready pod answers with its name; once it is not Ready its connections are reset and no new one is accepted."""
    connection, answer = until(lambda: _talk(pod), "the pod answers", seconds=WAIT_SECONDS)
    with connection:
        assert f'"pod":"lone-{os.getpid()}"'.encode() in answer
        assert b'"version":"v7"' in answer

        place = ["--namespace=default", "annotate", "pod", f"lone-{os.getpid()}"]
        target.run(["kubectl", *place, "e2e/ready=false"])

        with pytest.raises(ConnectionResetError):
            connection.recv(1)

    def refused() -> bool:
        try:
            socket.create_connection((pod, 8080), timeout=WAIT_SECONDS).close()
        except ConnectionRefusedError:
            return True
        return False

    until(refused, "no connection to a pod that is not Ready", seconds=WAIT_SECONDS)


@pytest.mark.e2e_short
def test_failed_requests_fail_a_case(target: Target, tmp_path: Path) -> None:
    """A case whose pods vanish under its traffic fails, and says how many requests did."""
    case = read(HERE / "failing" / "pods-vanish" / "case.yaml")

    telling = tell(case, target, tmp_path)

    assert len(telling.findings) == 1
    assert "requests failed" in telling.findings[0]
    assert telling.traffic
    assert telling.traffic.losses()


@pytest.mark.e2e_short
def test_wrong_shares_fail_a_case(target: Target, tmp_path: Path) -> None:
    """A case that expects other shares than the route has fails with the shares that were measured."""
    case = read(HERE / "failing" / "wrong-share" / "case.yaml")

    telling = tell(case, target, tmp_path)

    assert len(telling.findings) == 1
    assert "v1: 100.0 % instead of 70 %" in telling.findings[0]


def _settings(cluster: Cluster, name: str) -> Settings:
    settings = cluster.settings
    return Settings(name=f"{settings.name}-{name}", root=settings.root, channel="experimental", plugin=settings.plugin)


@pytest.fixture(scope="module")
def second(cluster: Cluster) -> Iterator[Cluster]:
    """Start a second cluster beside the first, with the experimental channel of the Gateway API."""
    other = open_cluster(_settings(cluster, "second"), print, build=False)
    with other.held():
        other.up(print)
        yield other
        other.down(print)


def test_two_clusters_side_by_side(cluster: Cluster, second: Cluster) -> None:
    """Two clusters are up at once, on the same addresses, and know nothing of each other."""
    for one in (cluster, second):
        with network.inside(one.settings.node_namespace):
            make_gateway(LocalTarget(one))
            one.kubectl("create", "configmap", "whose", f"--from-literal=name={one.settings.name}")
    for one in (cluster, second):
        with network.inside(one.settings.node_namespace):
            told = one.kubectl("get", "configmap", "whose", "--output=jsonpath={.data.name}")
            assert told == one.settings.name
            assert all(process.read(one.settings, name) for name in process.names(one.settings))


@pytest.fixture
def bare(cluster: Cluster, tmp_path: Path) -> Iterator[tuple[Cluster, Path]]:
    """Start an API server that nobody but the test writes to; give it with the kubeconfig of an administrator."""
    other = open_cluster(_settings(cluster, "bare"), print, build=False)
    with other.held():
        other.up_bare(print)
        with network.inside(other.settings.node_namespace):
            other.kubectl("--namespace=kube-system", "create", "serviceaccount", "tester")
            role = ["--clusterrole=cluster-admin", "--serviceaccount=kube-system:tester"]
            other.kubectl("create", "clusterrolebinding", "tester", *role)
            token = other.kubectl("--namespace=kube-system", "create", "token", "tester").strip()
        config = json.loads(other.settings.kubeconfig.read_text())
        config["users"] = [{"name": "admin", "user": {"token": token}}]
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        yield other, tmp_path / "kubeconfig"
        other.down(print)


@pytest.mark.e2e_short
def test_conformance_of_the_embedded_api_server(bare: tuple[Cluster, Path]) -> None:
    """The stories that the embedded API server is tested with have the same answers on the real one."""
    cluster, kubeconfig = bare
    # Inside there is no way out to fetch them.
    subprocess.run(["go", "mod", "download", f"sigs.k8s.io/gateway-api@v{RELEASE}"], check=True, timeout=WAIT_SECONDS)
    with network.inside(cluster.settings.node_namespace):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance"]
        environment = {**os.environ, "CONFORMANCE_KUBECONFIG": str(kubeconfig)}
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-8000:]


def test_nothing_is_left_after_sigkill(cluster: Cluster) -> None:
    """A cluster whose `up` was killed in the middle is swept by the next one; `down` leaves nothing."""
    settings = _settings(cluster, "killed")
    command = [sys.executable, "-m", "e2e.cluster", f"--name={settings.name}", f"--plugin={settings.plugin}"]
    with subprocess.Popen([*command, "up"], cwd=REPOSITORY, start_new_session=True) as starting:
        until(lambda: process.read(settings, "apiserver"), "the API server is started", seconds=WAIT_SECONDS)
        starting.send_signal(signal.SIGKILL)
    before = set(network.processes(settings))
    assert before

    other = open_cluster(settings, print, build=False)
    with other.held():
        other.up(print)
        assert not before & set(network.processes(settings))
        for name in ("controller", "gateway", "echo"):
            os.kill(process.read(settings, name).pid, signal.SIGKILL)  # type: ignore[union-attr]
        other.down(print)

    assert network.processes(settings) == []
    assert not network.exists(settings)
    assert not settings.state.exists()
    assert [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(settings.state) in line] == []
