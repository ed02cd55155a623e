"""Kubeconfigs through the official loader: where we go, and whom we trust there, over real sockets.

Matrix: tls-server-name, insecure, nothing said; proxy-url for https and http, with password, dead, of another scheme;
the environment's proxies.
"""

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import structlog
import urllib3

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.kubeconfig import load_kubeconfig
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS

Connect = Callable[..., KubeClient]


def write(path: Path, cluster: dict[str, Any]) -> str:
    """Write a kubeconfig of one cluster and a user with a token, and return its path."""
    content = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(content))
    return str(path)


def ask(client: KubeClient) -> dict[str, Any]:
    """Ask for one object."""
    return client.get(CONFIG_MAPS, "a", "b", deadline=Deadline.after(10))


@pytest.fixture
def some_api(api: Any) -> Any:
    """Start an API server without TLS that has one object."""
    api.add("/api/v1/namespaces/a/configmaps/b", {"metadata": {"name": "b"}})
    return api


def test_server_name_is_checked_instead_of_the_address(
    tmp_path: Path, start_api: Any, authority: Any, connect: Connect
) -> None:
    """With tls-server-name the certificate must be for that name; without it, for the address."""
    server = start_api(authority.server_context("api.internal"))
    server.add("/api/v1/namespaces/a/configmaps/b", {"metadata": {"name": "b"}})
    cluster = {"server": server.url, "certificate-authority": str(authority.ca_file)}
    named = write(tmp_path / "named", {**cluster, "tls-server-name": "api.internal"})
    other = write(tmp_path / "other", {**cluster, "tls-server-name": "api.external"})
    ask(connect(load_kubeconfig(named, None)))
    for path in (other, write(tmp_path / "none", cluster)):
        with pytest.raises(errors.Unavailable, match="not trusted"):
            ask(connect(load_kubeconfig(path, None)))

    assert len(server.requests) == 1


def test_unchecked_only_as_the_file_says(tmp_path: Path, start_api: Any, authority: Any, connect: Connect) -> None:
    """insecure-skip-tls-verify is obeyed, and said in the log; false is not."""
    server = start_api(authority.server_context("10.9.9.9"))
    server.add("/api/v1/namespaces/a/configmaps/b", {"metadata": {"name": "b"}})
    cluster = {"server": server.url, "insecure-skip-tls-verify": True}
    with structlog.testing.capture_logs() as logs:
        ask(connect(load_kubeconfig(write(tmp_path / "one", cluster), None)))
    checked = load_kubeconfig(write(tmp_path / "two", {**cluster, "insecure-skip-tls-verify": False}), None)
    with pytest.raises(errors.Unavailable, match="not trusted"):
        ask(connect(checked))

    assert [entry["event"] for entry in logs] == ["the API server's certificate is not checked"]


@pytest.mark.parametrize("value", ["false", "true", "no", "", 0, 1, [], None])
def test_unchecked_is_a_word_and_no_text(tmp_path: Path, value: Any) -> None:
    """A value that is no true or false is refused: a quoted "false" must not mean that nothing is checked (D26)."""
    path = write(tmp_path / "config", {"server": "https://x", "insecure-skip-tls-verify": value})
    with pytest.raises(errors.ConfigError, match=r"insecure-skip-tls-verify is .*, which is no true or false"):
        load_kubeconfig(path, None)


class _Proxy(BaseHTTPRequestHandler):
    """A proxy that passes on plain requests, tunnels CONNECT, and remembers both."""

    server: Any

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Write nothing to stderr."""

    def do_GET(self) -> None:
        self.server.seen.append((self.command, self.path, self.headers.get("Proxy-Authorization", "")))
        answer = urllib3.request("GET", self.path, retries=False)
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.data)))
        self.end_headers()
        self.wfile.write(answer.data)

    def do_CONNECT(self) -> None:
        self.server.seen.append((self.command, self.path, self.headers.get("Proxy-Authorization", "")))
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as upstream:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_pump, args=(upstream, self.connection), daemon=True)
            back.start()
            _pump(self.connection, upstream)
            back.join(10)
        self.close_connection = True


def _pump(source: Any, target: Any) -> None:
    """Copy bytes until the source ends."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def proxy() -> Iterator[Any]:
    """Start an HTTP proxy."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    server.daemon_threads = True
    server.block_on_close = False
    server.seen = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_proxy_tunnels_tls(tmp_path: Path, proxy: Any, start_api: Any, authority: Any, connect: Connect) -> None:
    """proxy-url with a password: an https server is reached through a tunnel, and its certificate is checked inside."""
    server = start_api(authority.server_context("api.internal"))
    server.add("/api/v1/namespaces/a/configmaps/b", {"metadata": {"name": "b"}})
    cluster = {
        "server": server.url,
        "certificate-authority": str(authority.ca_file),
        "tls-server-name": "api.internal",
        "proxy-url": f"http://user:p%40ss@127.0.0.1:{proxy.server_port}",
    }
    ask(connect(load_kubeconfig(write(tmp_path / "config", cluster), None)))
    password = "Basic " + base64.b64encode(b"user:p@ss").decode()

    assert proxy.seen == [("CONNECT", f"127.0.0.1:{server.port}", password)]
    assert server.requests[0].headers["authorization"] == "Bearer t"
    assert "proxy-authorization" not in server.requests[0].headers


def test_proxy_passes_plain_http(tmp_path: Path, proxy: Any, some_api: Any, connect: Connect) -> None:
    """An http server is asked through the proxy with its whole address."""
    cluster = {"server": some_api.url, "proxy-url": f"http://127.0.0.1:{proxy.server_port}"}
    ask(connect(load_kubeconfig(write(tmp_path / "config", cluster), None)))

    assert proxy.seen == [("GET", f"{some_api.url}/api/v1/namespaces/a/configmaps/b", "")]


def test_dead_proxy_is_told_without_its_password(tmp_path: Path, connect: Connect, some_api: Any) -> None:
    """A proxy that is not there is the reason told; its password is not."""
    cluster = {"server": some_api.url, "proxy-url": "http://user:hidden@127.0.0.1:1"}
    config = load_kubeconfig(write(tmp_path / "config", cluster), None)
    with pytest.raises(errors.Unavailable, match="can't be reached: Connection refused") as caught:
        ask(connect(config))

    assert "hidden" not in str(caught.value) + repr(config)
    assert some_api.requests == []


def test_proxy_of_another_scheme_is_refused(tmp_path: Path, connect: Connect) -> None:
    """A socks proxy, which needs another library, is an error and not ignored."""
    path = write(tmp_path / "config", {"server": "http://x", "proxy-url": "socks5://127.0.0.1:1080"})
    with pytest.raises(errors.ConfigError, match="no http or https address"):
        connect(load_kubeconfig(path, None))


@pytest.mark.parametrize("url", ["http://user:hidden@x:abc", "http://user:hidden@[::bad", "http://user:hidden@x:99999"])
def test_proxy_that_is_no_address_is_told_without_its_password(tmp_path: Path, connect: Connect, url: str) -> None:
    """What is no address is an error of the kubeconfig, and its password is nowhere in it."""
    path = write(tmp_path / "config", {"server": "http://x", "proxy-url": url})
    with pytest.raises(errors.ConfigError, match="no address with a host and a port") as caught:
        connect(load_kubeconfig(path, None))

    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_names_and_passwords_are_sent_in_utf8(tmp_path: Path, proxy: Any, some_api: Any, connect: Connect) -> None:
    """As kubectl sends them, to the API server and to the proxy."""
    cluster = {"server": some_api.url, "proxy-url": f"http://%C3%A9:%E2%82%AC@127.0.0.1:{proxy.server_port}"}
    path = Path(write(tmp_path / "config", cluster))
    content = json.loads(path.read_text())
    content["users"] = [{"name": "u", "user": {"username": "é", "password": "€"}}]
    path.write_text(json.dumps(content))
    config = load_kubeconfig(str(path), None)
    ask(connect(config))
    expected = "Basic " + base64.b64encode("é:€".encode()).decode()

    assert config.credentials.authorization() == expected
    assert [authorization for _, _, authorization in proxy.seen] == [expected]


def test_proxy_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's proxy is used as kubectl does: not for loopback, not for NO_PROXY (a network, too)."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8,.internal")
    hosts = ["example.com", "10.1.2.3", "api.internal", "127.0.0.1", "localhost"]
    found = [
        load_kubeconfig(write(tmp_path / "config", {"server": f"https://{host}"}), None).proxy_url for host in hosts
    ]

    assert found == ["http://proxy:3128", "", "", "", ""]


def test_checking_is_on_by_default(tmp_path: Path) -> None:
    """Without any word about it a server is checked against the system's authorities (D26)."""
    context = load_kubeconfig(write(tmp_path / "config", {"server": "https://example.com"}), None).ssl_context

    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
