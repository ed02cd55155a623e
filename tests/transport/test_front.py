"""Accepting connections: each has its thread, there is a limit, and no failure reaches another one."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from rollouts_gwapi_plugin.transport.front import MAX_CONNECTIONS, Front
from rollouts_gwapi_plugin.transport.listener import Listener, listen

SECONDS = 20.0


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    """Listen in a folder of the test's own."""
    listening = listen(str(tmp_path), "", lambda: range(1))
    yield listening
    listening.close()


def _connect(listener: Listener) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(SECONDS)
    sock.connect(listener.address)
    return sock


def _echo(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(100):
            if data == b"crash":
                raise ZeroDivisionError(data)
            connection.sendall(data)


def test_each_connection_has_its_own_thread(listener: Listener) -> None:
    """One that waits does not keep another from being served."""
    Front(listener.socket, _echo).start()
    with _connect(listener), _connect(listener) as second:
        second.sendall(b"hello")

        assert second.recv(100) == b"hello"


def test_a_connection_that_fails_is_closed_alone(listener: Listener) -> None:
    """A bug in one connection ends that one; the next is served."""
    Front(listener.socket, _echo).start()
    with _connect(listener) as first, _connect(listener) as second:
        first.sendall(b"crash")
        assert first.recv(100) == b""
        second.sendall(b"hello")

        assert second.recv(100) == b"hello"


def test_the_end_may_come_while_a_connection_begins(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for all connections waits for one that was just taken, too."""
    joins: list[Future[bool]] = []
    begun = threading.Event()

    class Watched(threading.Thread):
        def start(self) -> None:
            if self.name == "connection":
                joins.append(pool.submit(front.join, SECONDS))
                wait(joins, 0.1)
            super().start()
            begun.set()

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patch:
        front = Front(listener.socket, _echo)
        patch.setattr("threading.Thread", Watched)
        front.start()
        begun.clear()
        _connect(listener).close()
        assert begun.wait(SECONDS)

        assert [future.result() for future in joins] == [True]


def test_connections_over_the_limit_are_closed_until_there_is_room(listener: Listener) -> None:
    """The 65th connection is closed; when another has ended there is room again."""
    front = Front(listener.socket, _echo)
    front.start()
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(_connect(listener)) for _ in range(MAX_CONNECTIONS)]
        for sock in held:
            sock.sendall(b"hello")
            assert sock.recv(100) == b"hello"
        with _connect(listener) as refused:
            assert refused.recv(100) == b""
        for sock in held:
            sock.close()
        assert front.join(SECONDS)
    with _connect(listener) as again:
        again.sendall(b"hello")

        assert again.recv(100) == b"hello"


def test_joining_has_a_deadline(listener: Listener) -> None:
    """A connection that goes on is not waited for any longer than asked."""
    front = Front(listener.socket, _echo)
    front.start()
    with _connect(listener) as sock:
        sock.sendall(b"hello")
        assert sock.recv(100) == b"hello"

        assert front.join(0.05) is False
    assert front.join(SECONDS) is True


def test_a_closed_front_takes_nobody(listener: Listener) -> None:
    """After closing, the thread that accepts ends with the listening socket."""
    front = Front(listener.socket, _echo)
    front.start()
    front.close()
    listener.close()
    front._accepting.join(SECONDS)

    assert not front._accepting.is_alive()
    assert not Path(listener.address).exists()
