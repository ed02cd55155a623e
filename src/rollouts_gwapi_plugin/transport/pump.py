"""Carry bytes between the host's connection and an inner one, with TLS taken off in between (decision D2).

One thread a connection, one `select` over both sockets, so nothing here is shared between threads. The inner connection
is opened when the first plain byte is there: a client that shows no certificate, and one that never sends anything,
never reaches the service. Each side is read only while the other takes what was read, so neither can make us buffer
more than about `MAX_BUFFERED`. It is over when the inner side has ended and all of it was passed on.
"""

import selectors
import socket
import time
from collections.abc import Callable

from rollouts_gwapi_plugin.errors import HandshakeError
from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.transport.tls import TlsFilter

# Bytes read from one side that the other has not taken yet: enough for a large Rollout in a few turns.
MAX_BUFFERED = 262_144
# What is read at once.
CHUNK = 65_536
# A host's TLS handshake takes milliseconds; who takes longer holds a thread for nothing.
HANDSHAKE_SECONDS = 10.0

InnerOpener = Callable[[bytes], socket.socket]


class _Side:
    """One of the two sockets, with the bytes that wait for it."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self.waiting = bytearray()
        self.ended = False

    def interest(self, other: "_Side | None") -> int:
        read = not self.ended and (other is None or len(other.waiting) < MAX_BUFFERED)
        return (selectors.EVENT_READ if read else 0) | (selectors.EVENT_WRITE if self.waiting else 0)

    def receive(self) -> bytes:
        try:
            data = self.socket.recv(CHUNK)
        except BlockingIOError:
            return b""
        self.ended = not data
        return data

    def flush(self) -> None:
        if self.waiting:
            try:
                sent = self.socket.send(self.waiting)
            except BlockingIOError:
                return
            del self.waiting[:sent]


class Pump:
    """Both directions of one connection; `run` returns when it is over."""

    def __init__(self, outer: socket.socket, open_inner: InnerOpener, tls: TlsFilter | None) -> None:
        self._outer = _Side(outer)
        self._inner: _Side | None = None
        self._open_inner = open_inner
        self._tls = tls
        self._deadline = time.monotonic() + HANDSHAKE_SECONDS

    def run(self) -> None:
        """Carry bytes until the connection is over or broke, and close both sockets."""
        try:
            with selectors.DefaultSelector() as selector:
                while not self._over():
                    self._turn(selector)
        except HandshakeError as error:
            get_logger().warning(str(error))
            self._send_alert()
        except OSError as error:
            get_logger().debug("a connection broke", error=str(error))
        finally:
            self._outer.socket.close()
            if self._inner is not None:
                self._inner.socket.close()

    def _over(self) -> bool:
        if self._inner is None:
            return self._outer.ended
        return self._inner.ended and not self._outer.waiting

    def _turn(self, selector: selectors.BaseSelector) -> None:
        sides = [self._outer] if self._inner is None else [self._outer, self._inner]
        others = [self._inner, self._outer]
        interests = {side.socket: side.interest(other) for side, other in zip(sides, others, strict=False)}
        waited = [selector.register(sock, interest) for sock, interest in interests.items() if interest]
        try:
            ready = {key.fd: events for key, events in selector.select(self._patience())}
        finally:
            for key in waited:
                selector.unregister(key.fileobj)
        if not ready:
            raise HandshakeError(f"refused a TLS client: no handshake within {HANDSHAKE_SECONDS:.0f} s")
        if ready.get(self._outer.socket.fileno(), 0) & selectors.EVENT_READ:
            self._from_outer()
        if self._inner is not None:
            if ready.get(self._inner.socket.fileno(), 0) & selectors.EVENT_READ:
                self._from_inner(self._inner)
            self._inner.flush()
            if self._outer.ended and not self._inner.waiting:
                self._inner.socket.shutdown(socket.SHUT_WR)
        self._outer.flush()

    def _patience(self) -> float | None:
        if self._tls is None or self._tls.established:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def _from_outer(self) -> None:
        plain = self._outer.receive()
        if self._tls is not None and plain:
            plain = self._tls.receive(plain)
            self._outer.ended = self._tls.peer_closed
            self._outer.waiting += self._tls.data_to_send()
        if not plain:
            return
        if self._inner is None:
            self._inner = _Side(self._open_inner(plain))
        self._inner.waiting += plain

    def _from_inner(self, inner: _Side) -> None:
        data = inner.receive()
        if self._tls is None:
            self._outer.waiting += data
            return
        if data:
            self._tls.send(data)
        elif inner.ended:
            self._tls.close()
        self._outer.waiting += self._tls.data_to_send()

    def _send_alert(self) -> None:
        """Tell the client that it was refused; it may be gone already."""
        if self._tls is None:
            return
        self._outer.waiting += self._tls.data_to_send()
        try:
            self._outer.flush()
        except OSError as error:
            get_logger().debug("a refused client did not wait for the alert", error=str(error))
