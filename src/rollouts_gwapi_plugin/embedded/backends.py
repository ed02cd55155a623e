"""Echo backends: small HTTP and HTTPS servers that answer with their name and what they received.

`EchoBackend("v1")` listens on a free port of the loopback while its context is open. Every answer carries the name
(header `x-backend`, and in the JSON body with the request's method, path and headers), so a client can tell which
version served it and what the filters did on the way. The backend counts all that it received, in all and by the
request's id (header `x-request-id`), mirrored requests too: answers at the client do not show those.
"""

import contextlib
import json
import ssl
import threading
from collections import Counter, deque
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

NAME_HEADER = "x-backend"
# Who sends a request gives it a number of its own, by which it is found again where it arrived.
ID_HEADER = "x-request-id"
# Requests are kept for tests to look at; a load run of hours must not grow the process.
KEPT_REQUESTS = 1000
# Ids are counted for a measured run of minutes; later ones are not.
MAX_IDS = 100_000
# How long stopping may take: the server looks this often whether it should.
STOP_SECONDS = 0.05
# A client that does not shake hands is let go.
HANDSHAKE_SECONDS = 10.0
# A body is read away and dropped; a load generator sends none, a curious user a small one.
MAX_BODY = 10 * 1024 * 1024


@dataclass(frozen=True)
class Received:
    """A request as the backend saw it; header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]


class Arrivals:
    """What a backend received: the number of requests, how often each id came, the last requests; thread-safe."""

    def __init__(self) -> None:
        self.last: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self._count = 0
        self._ids: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many there were."""
        with self._lock:
            return self._count

    def times(self, request_id: str) -> int:
        """Return how often a request arrived."""
        with self._lock:
            return self._ids[request_id]

    def take(self, received: Received) -> None:
        """Count a request and keep it."""
        request_id = received.headers.get(ID_HEADER, "")
        with self._lock:
            self._count += 1
            self.last.append(received)
            if request_id and (len(self._ids) < MAX_IDS or request_id in self._ids):
                self._ids[request_id] += 1


class EchoBackend:
    """A backend of a name, with TLS if a context is given; `status` is what it answers, for a broken version."""

    def __init__(self, name: str, *, status: int = HTTPStatus.OK, tls: ssl.SSLContext | None = None) -> None:
        self.name = name
        self.status = status
        self.arrivals = Arrivals()
        self._server = _Server(self, tls)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(STOP_SECONDS,), name=f"echo-{name}", daemon=True
        )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return "127.0.0.1", self._server.server_port

    @property
    def count(self) -> int:
        """How many requests it received."""
        return self.arrivals.count

    @property
    def received(self) -> deque[Received]:
        """The last requests."""
        return self.arrivals.last

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    # A handler of a kept-alive connection waits for the next request; it must not hold the process at its end.
    daemon_threads = True
    # All workers of a load generator connect at once.
    request_queue_size = 128

    def __init__(self, backend: EchoBackend, tls: ssl.SSLContext | None) -> None:
        self.backend = backend
        self._tls = tls
        super().__init__(("127.0.0.1", 0), _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Shake hands here, in the connection's own thread: a client that stalls must not hold up the others."""
        if self._tls is not None:
            request.settimeout(HANDSHAKE_SECONDS)
            with contextlib.suppress(OSError), self._tls.wrap_socket(request, server_side=True) as encrypted:
                super().finish_request(encrypted, client_address)
            return
        super().finish_request(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave in two writes; with Nagle's algorithm the second would wait for the client's delayed ACK.
    disable_nagle_algorithm = True
    server: _Server

    def _answer(self) -> None:
        backend = self.server.backend
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_BODY:
            self.close_connection = True
        else:
            self.rfile.read(length)
        received = Received(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
        backend.arrivals.take(received)
        body = json.dumps(
            {"backend": backend.name, "method": received.method, "path": received.target, "headers": received.headers}
        ).encode()
        self.send_response(backend.status)
        self.send_header(NAME_HEADER, backend.name)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    # The names are http.server's.
    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: a line a request is no log."""
