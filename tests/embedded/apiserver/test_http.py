"""The HTTP side: limits, keep-alive, TLS, and what a client may not break."""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.apiserver.http import MAX_BODY


@pytest.fixture
def connection(server: ApiServer) -> Iterator[http.client.HTTPConnection]:
    """Open one connection that stays open."""
    client = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    yield client
    client.close()


def test_connections_are_kept(connection: http.client.HTTPConnection) -> None:
    """Requests one after another use one connection, also after an error answer."""
    sockets = set()
    for path in ("/version", "/nothing", "/version"):
        connection.request("GET", path)
        connection.getresponse().read()
        sockets.add(connection.sock)

    assert len(sockets) == 1
    assert None not in sockets


def test_too_large_a_body_is_413(connection: http.client.HTTPConnection, routes: str) -> None:
    """A body over the API server's limit is refused by its announced length, unread."""
    connection.putrequest("POST", routes)
    connection.putheader("Content-Length", str(MAX_BODY + 1))
    connection.endheaders()
    answer = connection.getresponse()

    assert answer.status == 413
    assert json.loads(answer.read())["reason"] == "RequestEntityTooLarge"


def test_chunked_bodies_are_read(connection: http.client.HTTPConnection, routes: str, web: dict[str, Any]) -> None:
    """A body in chunks is a body."""
    pieces = [json.dumps(web).encode()[at : at + 50] for at in range(0, len(json.dumps(web)), 50)]
    connection.request(
        "POST", routes, body=iter(pieces), headers={"Content-Type": "application/json"}, encode_chunked=True
    )

    assert connection.getresponse().status == 201


def test_head_has_no_body(connection: http.client.HTTPConnection) -> None:
    """HEAD answers with the headers alone, and the connection goes on."""
    connection.request("HEAD", "/version")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (404, b"")

    connection.request("GET", "/version")
    assert connection.getresponse().status == 200


def test_garbage_does_not_hurt_others(server: ApiServer, ask: Any) -> None:
    """A client that talks nonsense, or goes away in the middle, leaves the server alive."""
    host, port = server.url.removeprefix("http://").split(":")
    for data in (b"\x00\x01\x02\r\n\r\n", b"POST /api HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"):
        with socket.create_connection((host, int(port)), timeout=5) as client:
            client.sendall(data)

    assert ask("GET", "/healthz").data == b"ok"


def test_tls_needs_the_certificate_of_the_run() -> None:
    """HTTPS works with the server's certificate and fails without it."""
    with ApiServer(tls=True) as server:
        place = server.url.removeprefix("https://")
        trusting = http.client.HTTPSConnection(place, context=ssl.create_default_context(cadata=server.certificate_pem))
        trusting.request("GET", "/version")
        assert trusting.getresponse().status == 200
        trusting.close()

        distrusting = http.client.HTTPSConnection(place, context=ssl.create_default_context(), timeout=10)
        with pytest.raises(ssl.SSLCertVerificationError):
            distrusting.request("GET", "/version")
        distrusting.close()
