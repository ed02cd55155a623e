"""Echo backends: small HTTP servers that answer with their name and what they received.

`EchoBackend("v1")` listens on a free port of the loopback while its context is open. Every answer carries the name
(header `x-backend`, and in the JSON body with the request's method, path and headers), so a client can tell which
version served it and what the filters did on the way. The backend counts all that it received, mirrored requests too:
answers at the client do not show those.
"""

import json
import threading
from collections import deque
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

NAME_HEADER = "x-backend"
# Requests are kept for tests to look at; a load run of hours must not grow the process.
KEPT_REQUESTS = 1000
# How long stopping may take: the server looks this often whether it should.
STOP_SECONDS = 0.05
# A body is read away and dropped; a load generator sends none, a curious user a small one.
MAX_BODY = 10 * 1024 * 1024


@dataclass(frozen=True)
class Received:
    """A request as the backend saw it; header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]


class EchoBackend:
    """A backend of a name; `status` is what it answers, for a version that is broken."""

    def __init__(self, name: str, *, status: int = HTTPStatus.OK) -> None:
        self.name = name
        self.status = status
        self.received: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self._count = 0
        self._lock = threading.Lock()
        self._server = _Server(self)
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
        with self._lock:
            return self._count

    def take(self, received: Received) -> None:
        """Count a request and keep it."""
        with self._lock:
            self._count += 1
            self.received.append(received)

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

    def __init__(self, backend: EchoBackend) -> None:
        self.backend = backend
        super().__init__(("127.0.0.1", 0), _Handler)


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
        backend.take(received)
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
