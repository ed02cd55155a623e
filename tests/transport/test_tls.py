"""AutoMTLS: the owner of PLUGIN_CLIENT_CERT gets in, nobody else gets a byte, over both transports.

Matrix: client (P-256, P-384, P-521; another's certificate; none; no TLS at all) x transport; TLS 1.2.
"""

import contextlib
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from rollouts_gwapi_plugin.errors import HandshakeError
from rollouts_gwapi_plugin.transport.calls import Answer
from rollouts_gwapi_plugin.transport.tls import ServerIdentity, TlsFilter, server_identity
from rollouts_gwapi_plugin.wire.goplugin.handshake import HandshakeLine

if TYPE_CHECKING:
    from tests.transport.conftest import Connect, Guarded
    from tests.transport.hosts import ClientIdentity

Raw = Callable[[HandshakeLine], socket.socket]
StartGuarded = Callable[["ClientIdentity"], "Guarded"]


@pytest.fixture(scope="module")
def identity(client_identity: "ClientIdentity") -> ServerIdentity:
    """Give a server's identity that lets that client in."""
    return server_identity(client_identity.certificate)


class Client:
    """A TLS client without a socket, for `TlsFilter`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def shake(self, server: TlsFilter, cut: int = 1 << 20) -> bytes:
        """Shake hands with a filter, in pieces; return what plain bytes came out."""
        plain = b""
        for _ in range(10):
            with contextlib.suppress(ssl.SSLWantReadError):
                self.tls.do_handshake()
            data = self.outgoing.read()
            for start in range(0, len(data), cut):
                plain += server.receive(data[start : start + cut])
            self.incoming.write(server.data_to_send())
        return plain


@pytest.mark.parametrize("cut", [1, 7, 1 << 20])
def test_the_filter_carries_both_directions(
    client_identity: "ClientIdentity", identity: ServerIdentity, cut: int
) -> None:
    """Bytes come out as they went in, wherever the stream was cut."""
    server, client = identity.make_filter(), Client(client_identity.context(identity.certificate))
    assert client.shake(server, cut) == b""
    assert server.established

    client.tls.write(b"a" * 50_000)
    sent = client.outgoing.read()
    plain = b"".join(server.receive(sent[start : start + cut]) for start in range(0, len(sent), cut))
    server.send(b"answer")
    client.incoming.write(server.data_to_send())

    assert plain == b"a" * 50_000
    assert client.tls.read(100) == b"answer"
    assert not server.peer_closed


def test_the_filter_tells_both_ends(client_identity: "ClientIdentity", identity: ServerIdentity) -> None:
    """The peer's end of the stream is seen, and ours is told."""
    server, client = identity.make_filter(), Client(client_identity.context(identity.certificate))
    client.shake(server)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.tls.unwrap()
    assert server.receive(client.outgoing.read()) == b""
    assert server.peer_closed

    server.close()
    client.incoming.write(server.data_to_send())
    client.tls.unwrap()


def test_a_filter_that_shook_no_hands_closes_quietly(identity: ServerIdentity) -> None:
    """Where there is no TLS session yet there is none to close."""
    server = identity.make_filter()
    server.close()

    assert server.data_to_send() == b""


def test_a_stream_that_breaks_after_the_handshake_is_told(
    client_identity: "ClientIdentity", identity: ServerIdentity
) -> None:
    """Bytes that were tampered with are an error, not data."""
    server, client = identity.make_filter(), Client(client_identity.context(identity.certificate))
    client.shake(server)
    client.tls.write(b"data")
    sent = bytearray(client.outgoing.read())
    sent[-1] ^= 1

    with pytest.raises(HandshakeError, match="the TLS connection broke"):
        server.receive(bytes(sent))


def test_the_certificate_is_what_go_plugin_makes(identity: ServerIdentity) -> None:
    """Name, constraints and usages are those of go-plugin's certificates; the key is P-256."""
    certificate = x509.load_der_x509_certificate(identity.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    key = certificate.public_key()

    assert certificate.subject.rfc4514_string() == "O=HashiCorp,CN=localhost"
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"


def test_no_key_is_left_behind(
    client_identity: "ClientIdentity", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file through which the key is loaded is gone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server_identity(client_identity.certificate)

    assert list(tmp_path.iterdir()) == []


def test_without_a_place_for_the_key_the_way_out_is_told(
    client_identity: "ClientIdentity", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no file can be made the error names TMPDIR."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))

    with pytest.raises(HandshakeError, match="TMPDIR"):
        server_identity(client_identity.certificate)


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda curve: curve.name)
def test_a_host_gets_in_with_a_key_of_any_curve(
    curve: ec.EllipticCurve, hosts: ModuleType, start_guarded: StartGuarded, connect: "Connect", tmp_path: Path
) -> None:
    """Go's hosts have P-521; the others work, too."""
    client = hosts.make_identity(tmp_path, curve)
    host = connect(start_guarded(client).line, client)

    assert host.result(host.start(hosts.Call("SetWeight", weight=3))) == Answer()


@pytest.fixture
def strangers(hosts: ModuleType, tmp_path: Path) -> dict[str, Callable[[bytes], ssl.SSLContext]]:
    """Give the contexts of clients that must not get in, by what they show."""
    other = hosts.make_identity(tmp_path, ec.SECP521R1(), "other")

    def without_certificate(server_certificate: bytes) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=server_certificate)
        return context

    def too_old(server_certificate: bytes) -> ssl.SSLContext:
        context = without_certificate(server_certificate)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context

    return {"another's": other.context, "none": without_certificate, "none over TLS 1.2": too_old}


@pytest.mark.parametrize("shown", ["another's", "none", "none over TLS 1.2"])
def test_a_stranger_gets_nothing(
    shown: str,
    strangers: dict[str, Callable[[bytes], ssl.SSLContext]],
    start_guarded: StartGuarded,
    raw: Raw,
    client_identity: "ClientIdentity",
) -> None:
    """A client without the right certificate gets no byte, and the log says so."""
    guarded = start_guarded(client_identity)
    with raw(guarded.line) as sock, pytest.raises((ssl.SSLError, ConnectionError)):
        _talk(strangers[shown](guarded.line.server_cert), sock)

    assert "PLUGIN_CLIENT_CERT" in guarded.plugin.wait_log("refused a TLS client")["@message"]
    assert guarded.plugin.alive()


def test_the_host_is_served_after_a_stranger(
    start_guarded: StartGuarded, raw: Raw, connect: "Connect", hosts: ModuleType, client_identity: "ClientIdentity"
) -> None:
    """A refused client disturbs nobody: the host that comes next is served."""
    guarded = start_guarded(client_identity)
    with raw(guarded.line) as sock:
        sock.sendall(b"no TLS at all")
        guarded.plugin.wait_log("refused a TLS client")
    host = connect(guarded.line, client_identity)

    assert host.result(host.start(hosts.Call("SetWeight"))) == Answer()


def _talk(context: ssl.SSLContext, sock: socket.socket) -> None:
    """Shake hands and speak first, as hosts do, then read: TLS 1.3 tells a refusal only here."""
    with context.wrap_socket(sock, server_hostname="localhost") as tls:
        tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert tls.recv(1) == b"", "a stranger was served"
        raise ConnectionResetError("closed without an alert")


def test_plain_bytes_are_refused(start_guarded: StartGuarded, raw: Raw, client_identity: "ClientIdentity") -> None:
    """Who does not speak TLS gets at most an alert, and never reaches the service."""
    guarded = start_guarded(client_identity)
    with raw(guarded.line) as sock:
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        answer = b""
        with contextlib.suppress(ConnectionError):
            while data := sock.recv(4096):
                answer += data

    # An alert record: type 21, seven bytes.
    assert answer == b"" or (answer[0] == 21 and len(answer) == 7)
    assert guarded.plugin.wait_log("refused a TLS client")
    assert guarded.plugin.alive()
