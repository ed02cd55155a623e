"""Where the way to the API server is looked for, in which order, and what is said when there is none.

Matrix: named file, KUBECONFIG, pod, ~/.kube/config, nothing; broken pods; IPv6.
"""

import base64
import json
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube.auth import ClusterConfig, load_cluster_config, trusting
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS

Connect = Callable[..., KubeClient]


def kubeconfig_at(path: Path, server: str) -> Path:
    """Write a small kubeconfig, as JSON, which is YAML."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def pod(tmp_path: Path, authority: Any) -> Path:
    """Make the folder that the kubelet mounts."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("pod-token")
    (folder / "namespace").write_text("argo-rollouts\n")
    (folder / "ca.crt").write_bytes(authority.ca_file.read_bytes())
    return folder


def find(tmp_path: Path, environ: dict[str, str], folder: Path | None = None, **asked: Any) -> ClusterConfig:
    """Look for the API server with this environment and home folder."""
    there = {"HOME": str(tmp_path / "home"), **environ}
    return load_cluster_config(environ=there, service_account=folder or tmp_path / "none", **asked)


def test_named_file_wins_over_all(tmp_path: Path, pod: Path) -> None:
    """A file that is named is used, whatever else is there."""
    named = kubeconfig_at(tmp_path / "named", "http://named")
    other = kubeconfig_at(tmp_path / "other", "http://other")
    environ = {"KUBECONFIG": str(other), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    found = [find(tmp_path, environ, pod, kubeconfig=named), find(tmp_path, environ, pod)]

    assert [config.server for config in found] == ["http://named", "http://other"]
    assert (found[0].namespace, found[0].credentials.authorization()) == ("shop", "Bearer t")


def test_pod_wins_over_the_home_folder(tmp_path: Path, pod: Path) -> None:
    """In a pod the service account is used; its namespace is known."""
    kubeconfig_at(tmp_path / "home/.kube/config", "http://home")
    config = find(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}, pod)

    assert (config.server, config.namespace) == ("https://10.0.0.1:6443", "argo-rollouts")
    assert config.credentials.authorization() == "Bearer pod-token"
    assert config.ssl_context is not None
    assert config.ssl_context.verify_mode == ssl.CERT_REQUIRED
    assert config.ssl_context.check_hostname is True


def test_home_folder_is_the_last_resort(tmp_path: Path, pod: Path) -> None:
    """Outside a pod, or where a context is named, the home folder's file is used."""
    kubeconfig_at(tmp_path / "home/.kube/config", "http://home")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    found = [find(tmp_path, {}), find(tmp_path, environ, pod, context="main"), find(tmp_path, environ)]

    assert [config.server for config in found] == ["http://home"] * 3


def test_ipv6_address_is_bracketed(tmp_path: Path, pod: Path) -> None:
    """KUBERNETES_SERVICE_HOST may be an IPv6 address, which an URL takes in brackets."""
    config = find(tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1"}, pod)

    assert config.server == "https://[fd00::1]:443"


def test_no_way_at_all_says_what_was_looked_for(tmp_path: Path) -> None:
    """Without any way the error names all three places."""
    with pytest.raises(
        errors.ConfigError, match=r"KUBECONFIG is not set, .*KUBERNETES_SERVICE_HOST.*home/.kube/config"
    ):
        find(tmp_path, {})


def test_pod_without_a_token_says_so(tmp_path: Path) -> None:
    """A pod that gets no token is told the field that forbids it."""
    with pytest.raises(errors.ConfigError, match="automountServiceAccountToken"):
        find(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})


# A name longer than any file system takes: the question whether it is there fails, as in a folder that is not ours.
UNREACHABLE = "x" * 5000


def test_a_home_folder_that_can_not_be_reached_is_told(tmp_path: Path) -> None:
    """A home that can't be looked into is as good as none, and the reason is said."""
    with pytest.raises(errors.ConfigError, match=r"\.kube/config can't be reached \(File name too long\)"):
        find(tmp_path, {"HOME": f"/{UNREACHABLE}"})


def test_a_pods_folder_that_can_not_be_reached_is_told(tmp_path: Path) -> None:
    """The same for the folder of the service account."""
    with pytest.raises(errors.ConfigError, match=r"/token can't be reached \(File name too long\); allow the pod"):
        find(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path / UNREACHABLE)


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without HOME and without an entry in passwd there is no home folder, and no traceback."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    with pytest.raises(errors.ConfigError, match=r"~/\.kube/config does not exist"):
        load_cluster_config(environ={})


@pytest.mark.parametrize(
    ("path", "message"), [(f"/{UNREACHABLE}", "File name too long"), ("~no-such-user/config", "home")]
)
def test_a_named_file_that_can_not_be_reached_is_told(tmp_path: Path, path: str, message: str) -> None:
    """A kubeconfig that was named and can't be looked for is an error of ours."""
    with pytest.raises(errors.ConfigError, match=message):
        find(tmp_path, {"KUBECONFIG": path})


@pytest.mark.parametrize("content", [None, b"", b"not a certificate"])
def test_pod_without_a_usable_ca_file_says_so(tmp_path: Path, pod: Path, content: bytes | None) -> None:
    """A missing or broken CA file is an error: the server is never trusted without it."""
    if content is None:
        (pod / "ca.crt").unlink()
    else:
        (pod / "ca.crt").write_bytes(content)
    with pytest.raises(errors.ConfigError, match=r"ca\.crt of the pod's service account can't be used"):
        find(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, pod)


def test_pod_without_a_namespace_file_is_in_default(tmp_path: Path, pod: Path) -> None:
    """The namespace is not needed, so its absence is no error."""
    (pod / "namespace").unlink()

    assert find(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, pod).namespace == "default"


def test_pod_talks_to_the_api_server(
    tmp_path: Path, pod: Path, authority: Any, start_api: Any, connect: Connect
) -> None:
    """The whole way of a pod: TLS under the mounted CA, the token in the header, a rotated token after a 401."""
    server = start_api(authority.server_context("127.0.0.1"))
    server.add("/api/v1/namespaces/a/configmaps/b", {"metadata": {"name": "b"}})
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
    client = connect(find(tmp_path, environ, pod))
    client.get(CONFIG_MAPS, "a", "b", deadline=Deadline.after(10))

    assert server.requests[0].headers["authorization"] == "Bearer pod-token"


def test_pod_refuses_a_foreign_certificate(
    tmp_path: Path, pod: Path, authority: Any, start_api: Any, connect: Connect
) -> None:
    """A server with another name in its certificate gets no token, and is tried once."""
    server = start_api(authority.server_context("10.9.9.9"))
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
    client = connect(find(tmp_path, environ, pod))
    with pytest.raises(
        errors.Unavailable, match=r"the certificate of API server https://127\.0\.0\.1.* not trusted: IP"
    ):
        client.get(CONFIG_MAPS, "a", "b", deadline=Deadline.after(10))

    assert server.requests == []


@dataclass
class Rotation:
    """A pod, its API server, and clients of one way to it."""

    folder: Path
    server: Any
    clients: list[KubeClient]

    def ask(self, client: KubeClient) -> str:
        """Ask for one object and return its name."""
        return str(client.get(CONFIG_MAPS, "a", "b", deadline=Deadline.after(10))["metadata"]["name"])

    def rotate(self, authority: Any, ca_file: bytes) -> None:
        """Show a certificate of another authority, and mount this file."""
        self.server.use(authority.server_context("127.0.0.1"))
        (self.folder / "ca.crt").write_bytes(ca_file)


@pytest.fixture
def rotation(tmp_path: Path, pod: Path, authority: Any, start_api: Any, connect: Connect) -> Rotation:
    """Connect two clients of one pod, both of which have asked once and keep no connection."""
    server = start_api(authority.server_context("127.0.0.1"))
    server.add("/api/v1/namespaces/a/configmaps/b", {"metadata": {"name": "b"}})
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
    config = find(tmp_path, environ, pod)
    rotation = Rotation(pod, server, [connect(config), connect(config)])
    for client in rotation.clients:
        rotation.ask(client)
        client.close()
    return rotation


def test_rotated_authorities_are_read_again(rotation: Rotation, next_authority: Any) -> None:
    """Where the cluster's CA was replaced, the file is read anew and the call goes through, for each client."""
    rotation.rotate(next_authority, next_authority.ca_file.read_bytes())

    assert [rotation.ask(client) for client in rotation.clients] == ["b", "b"]


def test_rotated_authorities_are_read_again_by_many_threads(rotation: Rotation, next_authority: Any) -> None:
    """Each of several calls at once goes through, whoever of them reads the file."""
    rotation.rotate(next_authority, next_authority.ca_file.read_bytes())
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(rotation.ask, rotation.clients[:1] * 16))

    assert names == ["b"] * 16


def test_a_certificate_of_nobodys_is_refused_and_the_file_is_asked_each_time(
    rotation: Rotation, authority: Any, next_authority: Any
) -> None:
    """Under the old file, or a broken one, the certificate stays untrusted; once the new one is there it is trusted."""
    client = rotation.clients[0]
    for content in (authority.ca_file.read_bytes(), b"", b"half of a certif"):
        rotation.rotate(next_authority, content)
        with pytest.raises(errors.Unavailable, match="not trusted"):
            rotation.ask(client)
    (rotation.folder / "ca.crt").unlink()
    with pytest.raises(errors.Unavailable, match="not trusted"):
        rotation.ask(client)
    (rotation.folder / "ca.crt").write_bytes(next_authority.ca_file.read_bytes())

    assert rotation.ask(client) == "b"


def test_system_authorities_are_trusted_without_a_file() -> None:
    """Without a CA file the system's are used, and checking stays on."""
    context = trusting(None, named_by="test")

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_secrets_are_not_in_a_repr() -> None:
    """What a log may show of a config holds no password of a proxy."""
    secret = base64.b64encode(b"x").decode()

    assert secret not in repr(ClusterConfig("https://a", proxy_url=f"http://user:{secret}@proxy"))
