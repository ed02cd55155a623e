"""Real connections through a TCP and a TLS listener."""

import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import yaml

from rollouts_gwapi_plugin.embedded.apiserver.certificate import make_certificate
from rollouts_gwapi_plugin.embedded.backends import EchoBackend
from rollouts_gwapi_plugin.embedded.clients import Cohort, make_client
from rollouts_gwapi_plugin.embedded.dataplane.connection_proxy import ConnectionListener
from rollouts_gwapi_plugin.embedded.dataplane.dealing import Dealer
from rollouts_gwapi_plugin.embedded.dataplane.decision import Configuration, decide
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Address
from rollouts_gwapi_plugin.embedded.dataplane.matching import RouteTable
from rollouts_gwapi_plugin.embedded.dataplane.references import References

ROUTES = yaml.safe_load("""
tcp:
- kind: TCPRoute
  metadata: {namespace: shop, name: web, creationTimestamp: "2026-01-01T00:00:00Z"}
  spec: {rules: [{backendRefs: [{name: stable, port: 80, weight: 4}, {name: canary, port: 80, weight: 1}]}]}
- kind: TCPRoute
  metadata: {namespace: shop, name: younger, creationTimestamp: "2026-01-02T00:00:00Z"}
  spec: {rules: [{backendRefs: [{name: gone, port: 80}]}]}
tls:
- kind: TLSRoute
  metadata: {namespace: shop, name: web}
  spec:
    hostnames: [shop.example]
    rules: [{backendRefs: [{name: stable, port: 80, weight: 1}, {name: canary, port: 80, weight: 1}]}]
- kind: TLSRoute
  metadata: {namespace: shop, name: other}
  spec: {hostnames: ["*.shop.example"], rules: [{backendRefs: [{name: empty, port: 80}]}]}
""")
SERVICES = [
    {"metadata": {"namespace": "shop", "name": name}, "spec": {"ports": [{"port": 80}]}}
    for name in ("stable", "canary", "empty")
]
Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Return a stack that ends what a test has started."""
    with ExitStack() as opened:
        yield opened


def listen(stack: ExitStack, kind: str, addresses: dict[str, Address]) -> str:
    """Start a listener over the routes of a kind; return its URL."""
    configuration, dealer = Configuration(RouteTable(ROUTES[kind]), References(SERVICES)), Dealer()
    listener = ConnectionListener(
        kind,
        lambda connection: decide(connection, configuration, dealer),
        lambda target: addresses.get(target.name),
        reads_server_name=kind == "tls",
    )
    listener.start()
    stack.callback(listener.stop)
    return listener.url


def address(url: str) -> Address:
    """Return a URL's host and port."""
    host, _, port = url.partition("://")[2].rpartition(":")
    return host, int(port)


def test_connections_by_weight(stack: ExitStack) -> None:
    """Of 50 connections a fifth reaches the canary; a younger route of the listener gets none."""
    backends = {name: stack.enter_context(EchoBackend(name)) for name in ("stable", "canary")}
    url = listen(stack, "tcp", {name: backend.address for name, backend in backends.items()})
    client = make_client(url, Cohort("all", 1))
    answers = Counter(client.send(str(number)).backend for number in range(50))

    assert url.startswith("tcp://")
    assert answers == {"stable": 40, "canary": 10}


def test_tls_is_passed_through(stack: ExitStack) -> None:
    """The backend's own certificate is shown under the name that the client asked for, by the weights of its route."""
    certificate = make_certificate(["shop.example"])
    backends = {name: stack.enter_context(EchoBackend(name, tls=certificate.context)) for name in ("stable", "canary")}
    url = listen(stack, "tls", {name: backend.address for name, backend in backends.items()})
    client = make_client(url, Cohort("all", 1, host="shop.example"), certificate.pem)
    answers = Counter(client.send(str(number)).backend for number in range(10))

    assert url.startswith("tls://")
    assert answers == {"stable": 5, "canary": 5}


@pytest.mark.parametrize("host", ["elsewhere.example", "api.shop.example"])
def test_a_connection_that_nobody_takes(stack: ExitStack, host: str) -> None:
    """A name without a route, and a route without an endpoint, end the connection without an answer."""
    certificate = make_certificate([host])
    client = make_client(listen(stack, "tls", {}), Cohort("all", 1, host=host), certificate.pem)
    answered = client.send("1")

    assert answered.status == 0
    assert answered.error


def test_bytes_pass_both_ways_until_both_have_ended(stack: ExitStack) -> None:
    """What a client sent before it ended its side arrives, and so does what the backend sends after that."""
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    url = listen(stack, "tcp", {"stable": server.getsockname(), "canary": server.getsockname()})
    client = stack.enter_context(socket.create_connection(address(url), 10))
    client.sendall(b"x" * 200_000)
    client.shutdown(socket.SHUT_WR)
    backend = stack.enter_context(server.accept()[0])
    backend.settimeout(10)
    received = b"".join(iter(lambda: backend.recv(65_536), b""))
    backend.sendall(b"y" * 200_000)
    backend.close()
    answered = b"".join(iter(lambda: client.recv(65_536), b""))

    assert (received, answered) == (b"x" * 200_000, b"y" * 200_000)


def test_a_dead_backend(stack: ExitStack) -> None:
    """A backend that takes no connection ends the client's."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = closed.getsockname()
    url = listen(stack, "tcp", {"stable": dead, "canary": dead})
    client = stack.enter_context(socket.create_connection(address(url), 10))

    assert client.recv(1) == b""


def test_no_name_and_half_a_hello(stack: ExitStack) -> None:
    """A client that speaks no TLS, and one that ends within its hello, are let go."""
    url = listen(stack, "tls", {})
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01"):
        client = stack.enter_context(socket.create_connection(address(url), 10))
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


def test_tls_versions(stack: ExitStack) -> None:
    """The client and the backend agree on TLS by themselves: the listener takes no part."""
    certificate = make_certificate(["shop.example"])
    backend = stack.enter_context(EchoBackend("v1", tls=certificate.context))
    url = listen(stack, "tls", {"stable": backend.address, "canary": backend.address})
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cadata=certificate.pem)
        context.minimum_version = context.maximum_version = version
        raw = stack.enter_context(socket.create_connection(address(url), 10))
        with context.wrap_socket(raw, server_hostname="shop.example") as encrypted:
            assert encrypted.version() == version.name.replace("_", ".")
