"""No thread is left for one more call: those that run go on, and that one waits for the first that is free (D4)."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from tests.transport.netrpc.test_connection import SECONDS, Service

from rollouts_gwapi_plugin.transport.calls import Answer, Calls
from rollouts_gwapi_plugin.transport.lifetime import Lifetime
from rollouts_gwapi_plugin.transport.netrpc.connection import Connection
from rollouts_gwapi_plugin.transport.netrpc.server import NetRpcServer

if TYPE_CHECKING:
    from tests.transport.hosts import Call, NetRpcHost


@pytest.fixture
def scarce(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPoolExecutor]:
    """Give a pool with one thread that gets no more."""
    with ThreadPoolExecutor(4, thread_name_prefix="scarce") as pool:
        pool.submit(int)
        start = threading.Thread.start

        def refuse(thread: threading.Thread) -> None:
            if thread.name.startswith("scarce"):
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse)
        yield pool


def test_a_call_waits_for_the_thread_that_there_is(
    scarce: ThreadPoolExecutor, hosts: ModuleType, call: "Callable[..., Call]"
) -> None:
    """Both calls are answered, in the order in which they came."""
    ours, theirs = socket.socketpair()
    service = Service()
    life = Lifetime(parent=1, parent_now=lambda: 1)
    thread = threading.Thread(target=Connection(ours, Calls(service), scarce, life).run)
    thread.start()
    with theirs:
        theirs.settimeout(SECONDS)
        host: NetRpcHost = hosts.NetRpcHost(theirs)
        service.gate.clear()
        first = host.start(call("SetWeight", weight=5))
        assert service.started.acquire(timeout=SECONDS)
        second = host.start(call("SetWeight", weight=6))
        # Answered by the connection itself, and so after the second call was taken.
        host.ping()
        service.gate.set()

        assert [host.result(first), host.result(second)] == [Answer(), Answer()]
    thread.join(SECONDS)
    assert [made.desired_weight for made in service.calls] == [5, 6]


def test_a_server_has_a_thread_from_its_start() -> None:
    """Where none can be made later, the first call finds it."""
    before = set(threading.enumerate())
    NetRpcServer(Calls(Service()), Lifetime(parent=1, parent_now=lambda: 1), None)

    assert [thread.name.partition("_")[0] for thread in set(threading.enumerate()) - before] == ["call"]
