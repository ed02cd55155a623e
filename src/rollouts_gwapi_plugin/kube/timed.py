"""HTTP connections that keep to one deadline as a whole.

A socket's own timeout counts anew with each piece that comes, so a server which sends a byte now and then could hold a
call for ever. Here each look at the socket gets the time that is left, for head and body of an answer alike, and each
piece that is sent, too. The deadline is that of the thread's `keeping_to`.
"""

import io
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http.client import HTTPResponse
from typing import Any, Final

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from rollouts_gwapi_plugin.kube.deadline import Deadline

_deadline: ContextVar[Deadline] = ContextVar("deadline")


@contextmanager
def keeping_to(deadline: Deadline) -> Iterator[None]:
    """Hold this thread's exchange to the deadline."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def _give_the_rest(sock: socket.socket, deadline: Deadline) -> None:
    remaining = deadline.remaining()
    if not remaining:
        raise TimeoutError("timed out")
    sock.settimeout(remaining)


class _TimedStream(io.RawIOBase):
    """What a socket receives."""

    def __init__(self, sock: socket.socket, stream: io.RawIOBase, deadline: Deadline) -> None:
        self._sock = sock
        self._stream = stream
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        _give_the_rest(self._sock, self._deadline)
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _TimedResponse(HTTPResponse):
    """An answer that is read under the deadline of the exchange in which it began."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_TimedStream(sock, self.fp.detach(), _deadline.get()))


class _TimedConnection(HTTPConnection):
    response_class = _TimedResponse

    def send(self, data: Any) -> None:
        # urllib3 gives each piece the time that a connection may take.
        if self.sock is not None:
            _give_the_rest(self.sock, _deadline.get())
        super().send(data)


class _TimedTlsConnection(_TimedConnection, HTTPSConnection):
    pass


class _TimedPool(HTTPConnectionPool):
    ConnectionCls = _TimedConnection


class _TimedTlsPool(HTTPSConnectionPool):
    ConnectionCls = _TimedTlsConnection


# What a pool manager makes its connections with.
POOLS: Final[dict[str, type[HTTPConnectionPool]]] = {"http": _TimedPool, "https": _TimedTlsPool}
