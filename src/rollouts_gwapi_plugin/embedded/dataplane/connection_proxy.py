"""The TCP side of the data plane: takes connections, asks for a decision, and passes bytes both ways.

Takes a function that decides on a `Connection` and one that knows the address behind a Service. A TCP listener decides
at once, a TLS listener when it has read the server name from the ClientHello, which it passes on as it came: nothing is
decrypted. A connection that can't be forwarded is closed without a byte, as the Gateway API asks.
"""

import contextlib
import selectors
import socket
import socketserver
import threading
from collections.abc import Callable

from rollouts_gwapi_plugin.embedded.dataplane.client_hello import MAX_HELLO, server_name
from rollouts_gwapi_plugin.embedded.dataplane.decision import Decision, Forward
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Address
from rollouts_gwapi_plugin.embedded.dataplane.proxy import CONNECT_SECONDS, STOP_SECONDS, Resolve
from rollouts_gwapi_plugin.embedded.dataplane.request import Connection

# A client that says nothing, or a connection on which nothing moves, ends after so long.
IDLE_SECONDS = 60.0
_CHUNK = 64 * 1024

DecideConnection = Callable[[Connection], Decision]


class ConnectionListener:
    """One TCP or TLS listener of a Gateway on a port of the loopback."""

    def __init__(
        self, name: str, decide: DecideConnection, resolve: Resolve, port: int = 0, *, reads_server_name: bool = False
    ) -> None:
        self.name = name
        self._scheme = "tls" if reads_server_name else "tcp"
        self._server = _Server(decide, resolve, port, reads_server_name=reads_server_name)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(STOP_SECONDS,), name=f"listener-{name}", daemon=True
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to serve; connections that are open are left to their ends."""
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    # An open connection must not hold the process at its end.
    daemon_threads = True
    # All workers of a load generator connect at once.
    request_queue_size = 128

    def __init__(self, decide: DecideConnection, resolve: Resolve, port: int, *, reads_server_name: bool) -> None:
        self.decide = decide
        self.resolve = resolve
        self.reads_server_name = reads_server_name
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        self.request.settimeout(IDLE_SECONDS)
        # Either side may be gone at any moment; then the other one is closed, too.
        with contextlib.suppress(OSError):
            self._forward()

    def _forward(self) -> None:
        name, first = read_server_name(self.request) if self.server.reads_server_name else ("", b"")
        decision = self.server.decide(Connection(name))
        address = self.server.resolve(decision.target) if isinstance(decision, Forward) else None
        if address is None:
            return
        with _connect(address) as backend:
            backend.sendall(first)
            _pass_on(self.request, backend)


def read_server_name(client: socket.socket) -> tuple[str, bytes]:
    """Return the server name that a client asks for, and the bytes read to learn it."""
    read = b""
    name = server_name(read)
    while name is None:
        part = client.recv(MAX_HELLO)
        if not part:
            return "", read
        read += part
        name = server_name(read)
    return name, read


def _connect(address: Address) -> socket.socket:
    backend = socket.create_connection(address, CONNECT_SECONDS)
    backend.settimeout(IDLE_SECONDS)
    # What arrives in small pieces is to go on at once.
    backend.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return backend


def _pass_on(client: socket.socket, backend: socket.socket) -> None:
    """Pass bytes both ways until both sides have ended, or one is broken."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, backend)
        selector.register(backend, selectors.EVENT_READ, client)
        while selector.get_map():
            ready = selector.select(IDLE_SECONDS)
            if not ready:
                return
            for key, _ in ready:
                source, target = key.fileobj, key.data
                if not isinstance(source, socket.socket):
                    raise TypeError(f"{source!r} is no socket")
                part = source.recv(_CHUNK)
                if part:
                    target.sendall(part)
                else:
                    # Half closed: the other direction may go on.
                    selector.unregister(source)
                    target.shutdown(socket.SHUT_WR)
