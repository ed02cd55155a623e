"""The net/rpc server: each connection a session, all calls in one pool of threads.

With TLS the front's thread takes it off and hands plain bytes to a thread of its own over a socket pair (decision D2),
so a session never knows about TLS.
"""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rollouts_gwapi_plugin.transport.calls import MAX_CALLS, Calls
from rollouts_gwapi_plugin.transport.lifetime import Lifetime
from rollouts_gwapi_plugin.transport.netrpc.connection import Connection
from rollouts_gwapi_plugin.transport.pump import Pump
from rollouts_gwapi_plugin.transport.tls import TlsFilter


class NetRpcServer:
    """Serves the calls to the connections that `serve` gets."""

    def __init__(self, calls: Calls, lifetime: Lifetime, make_tls: Callable[[], TlsFilter] | None) -> None:
        self._calls = calls
        self._lifetime = lifetime
        self._make_tls = make_tls
        # As many threads as calls are let in, so none waits for another.
        self._pool = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="call")
        # Makes the first thread, so that a call always finds one, also where no more can be made later.
        self._pool.submit(int)
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()

    def serve(self, connection: socket.socket) -> None:
        """Serve one connection of the host until it ends."""
        if self._make_tls is None:
            self._run(connection)
        else:
            Pump(connection, self._open_inner, self._make_tls()).run()

    def close(self, seconds: float) -> None:  # noqa: ARG002 - answers are written before a call counts as done
        """End all connections."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _open_inner(self, _first: bytes) -> socket.socket:
        outside, inside = socket.socketpair()
        threading.Thread(target=self._run, args=(inside,), name="session", daemon=True).start()
        return outside

    def _run(self, sock: socket.socket) -> None:
        connection = Connection(sock, self._calls, self._pool, self._lifetime)
        with self._lock:
            self._connections.add(connection)
        try:
            connection.run()
        finally:
            with self._lock:
                self._connections.discard(connection)
