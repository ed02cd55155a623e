"""Clients of every protocol: who answered, over which connection, and what a failure looks like."""

import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver.certificate import make_certificate
from rollouts_gwapi_plugin.embedded.backends import EchoBackend
from rollouts_gwapi_plugin.embedded.clients import Client, Cohort, Reply, make_client
from rollouts_gwapi_plugin.embedded.grpc_backend import GrpcBackend

MakeClient = Callable[..., Client]


@pytest.fixture
def client() -> Iterator[MakeClient]:
    """Return a function that makes clients, which are closed at the end."""
    made: list[Client] = []

    def make(scheme: str, address: tuple[str, int], cohort: Cohort | None = None, trust: str = "") -> Client:
        made.append(make_client(f"{scheme}://{address[0]}:{address[1]}", cohort or Cohort("all", 1), trust))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(("scheme", "connections"), [("http", 1), ("tcp", 3)])
def test_connections(client: MakeClient, monkeypatch: pytest.MonkeyPatch, scheme: str, connections: int) -> None:
    """Over HTTP a client keeps its connection, over TCP each request has one of its own."""
    opened: list[str] = []
    with EchoBackend("v1") as backend:
        accept = backend._server.process_request

        def count(request: Any, client_address: Any) -> None:
            opened.append(str(client_address))
            accept(request, client_address)

        monkeypatch.setattr(backend._server, "process_request", count)
        sender = client(scheme, backend.address)
        answered = [sender.send(str(number)) for number in range(3)]

    assert answered == [Reply(200, "v1")] * 3
    assert len(opened) == connections


def test_tls(client: MakeClient) -> None:
    """A client asks for the cohort's host and checks the certificate that it is shown."""
    certificate = make_certificate(["shop.example"])
    with EchoBackend("v1", tls=certificate.context) as backend:
        right = client("tls", backend.address, Cohort("all", 1, host="shop.example"), certificate.pem)
        other_host = client("tls", backend.address, Cohort("all", 1, host="other.example"), certificate.pem)
        answered, refused = right.send("1"), other_host.send("2")

        assert backend.received[0].headers["host"] == "shop.example"
    assert answered == Reply(200, "v1")
    assert refused.status == 0
    assert ssl.SSLCertVerificationError.__name__ in refused.error


def test_a_plain_client_at_a_tls_backend(client: MakeClient) -> None:
    """A client that does not shake hands gets no answer, and the backend goes on."""
    certificate = make_certificate()
    with EchoBackend("v1", tls=certificate.context) as backend:
        assert client("tcp", backend.address).send("1").status == 0
        assert (
            client("tls", backend.address, Cohort("all", 1, host="localhost"), certificate.pem).send("2").status == 200
        )


def test_grpc(client: MakeClient) -> None:
    """A call brings its metadata and its id, and learns who answered."""
    with GrpcBackend("v1") as backend:
        cohort = Cohort("all", 1, headers={"X-Tester": "yes"}, path="/shop.Orders/Get")
        answered = client("grpc", backend.address, cohort).send("all-1")
        (received,) = backend.arrivals.last

        assert (received.target, received.headers["x-tester"]) == ("/shop.Orders/Get", "yes")
        assert backend.arrivals.times("all-1") == 1
    assert answered == Reply(200, "v1")


def test_grpc_without_a_server(client: MakeClient) -> None:
    """A call that nobody answers is a reply without a status, with gRPC's own code in words."""
    with GrpcBackend("v1") as backend:
        address = backend.address
    answered = client("grpc", address, Cohort("all", 1, path="/a/b")).send("1")

    assert answered.status == 0
    assert answered.error.startswith("UNAVAILABLE")
