"""The pump between two sockets, without TLS: bytes, ends and backpressure. With TLS it runs in `test_tls.py`."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from rollouts_gwapi_plugin.transport import pump
from rollouts_gwapi_plugin.transport.pump import MAX_BUFFERED, Pump
from rollouts_gwapi_plugin.transport.tls import ServerIdentity, server_identity

SECONDS = 20.0


@dataclass
class Pumping:
    """A running pump with the far ends of its two sockets."""

    outer: socket.socket
    inner: socket.socket
    opened: list[bytes]
    thread: threading.Thread

    def ended(self) -> bool:
        """Wait for the pump to end."""
        self.thread.join(SECONDS)
        return not self.thread.is_alive()


@pytest.fixture
def pumping() -> Iterator[Pumping]:
    """Run a pump in a thread."""
    outer, ours = socket.socketpair()
    inner, theirs = socket.socketpair()
    opened: list[bytes] = []

    def open_inner(first: bytes) -> socket.socket:
        opened.append(first)
        return theirs

    thread = threading.Thread(target=Pump(ours, open_inner, None).run)
    for sock in (outer, inner):
        sock.settimeout(SECONDS)
    thread.start()
    with outer, inner, theirs:
        yield Pumping(outer, inner, opened, thread)
        outer.close()
        inner.close()
        thread.join(SECONDS)


def test_bytes_go_both_ways(pumping: Pumping) -> None:
    """What one side sends the other gets, and the first bytes are shown to who opens the inner side."""
    pumping.outer.sendall(b"question")
    assert pumping.inner.recv(100) == b"question"
    pumping.inner.sendall(b"answer")

    assert pumping.outer.recv(100) == b"answer"
    assert pumping.opened == [b"question"]


def test_without_a_byte_the_inner_side_is_not_opened(pumping: Pumping) -> None:
    """A connection that closes without a byte never reaches the service."""
    pumping.outer.close()

    assert pumping.ended()
    assert pumping.opened == []


def test_the_end_of_the_host_is_passed_on(pumping: Pumping) -> None:
    """The inner side gets all bytes, then the end; what it still sends arrives."""
    pumping.outer.sendall(b"last words")
    pumping.outer.shutdown(socket.SHUT_WR)
    assert _read_all(pumping.inner) == b"last words"
    pumping.inner.sendall(b"answer")
    pumping.inner.close()

    assert _read_all(pumping.outer) == b"answer"
    assert pumping.ended()


def test_the_end_of_the_inner_side_ends_it(pumping: Pumping) -> None:
    """When the service closes, the host gets all that was sent, then the end."""
    pumping.outer.sendall(b"hello")
    pumping.inner.recv(100)
    pumping.inner.sendall(b"x" * 100_000)
    pumping.inner.close()

    assert _read_all(pumping.outer) == b"x" * 100_000
    assert pumping.ended()


def test_a_host_that_vanishes_ends_it(pumping: Pumping) -> None:
    """Bytes for a host that is gone are dropped, and the inner side is told."""
    pumping.outer.sendall(b"hello")
    pumping.inner.recv(100)
    pumping.outer.close()
    pumping.inner.sendall(b"nobody reads this")

    assert _read_all(pumping.inner) == b""
    pumping.inner.close()
    assert pumping.ended()


def test_a_side_that_does_not_read_stops_the_other(pumping: Pumping) -> None:
    """What one side does not take is not read from the other: the pump holds a bounded number of bytes."""
    # Full for half a second is full, not only waiting for the pump's next turn.
    pumping.outer.settimeout(0.5)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 64 * MAX_BUFFERED:
            sent += pumping.outer.send(b"z" * 65_536)
    assert sent < 16 * MAX_BUFFERED

    received = 0
    while received < sent:
        received += len(pumping.inner.recv(1 << 20))
    assert received == sent


def test_a_client_that_never_shakes_hands_is_given_up(
    monkeypatch: pytest.MonkeyPatch, identity: ServerIdentity
) -> None:
    """A TLS connection that is silent from its start does not hold a thread for ever."""
    monkeypatch.setattr(pump, "HANDSHAKE_SECONDS", 0.05)
    ours, theirs = socket.socketpair()

    def never(first: bytes) -> socket.socket:
        raise AssertionError(f"the service was reached with {first!r}")

    with theirs:
        Pump(ours, never, identity.make_filter()).run()
        assert theirs.recv(1) == b""


@pytest.fixture
def identity() -> ServerIdentity:
    """Give a server's identity; which client it lets in does not matter here, so it is a server's own."""
    import ssl

    from rollouts_gwapi_plugin.transport.tls import _self_signed

    der, _ = _self_signed()
    return server_identity(ssl.DER_cert_to_PEM_cert(der))


def _read_all(sock: socket.socket) -> bytes:
    received = b""
    while data := sock.recv(65_536):
        received += data
    return received
