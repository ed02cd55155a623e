"""The HTTP server: threads, keep-alive, TLS, limits, faults. What an answer says is decided in `api`."""

import socket
import ssl
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from rollouts_gwapi_plugin.embedded.apiserver.answers import Answer, error_answer, json_answer
from rollouts_gwapi_plugin.embedded.apiserver.api import Api
from rollouts_gwapi_plugin.embedded.apiserver.faults import Drop, Faults
from rollouts_gwapi_plugin.embedded.apiserver.requests import RequestLog
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError, bad_request, status, too_large

# The real API server's limit for one body.
MAX_BODY = 3 * 1024 * 1024
# A connection that says nothing for so long is closed; clients keep theirs for a minute or two.
IDLE_SECONDS = 300.0


class ApiHttpServer(ThreadingHTTPServer):
    """Accepts connections and keeps track of them, so that stopping ends them all."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, api: Api, log: RequestLog, faults: Faults, *, port: int, tls: ssl.SSLContext | None) -> None:
        self.api = api
        self.log = log
        self.faults = faults
        self._tls = tls
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection to its end."""
        if self._tls is not None:
            request.settimeout(IDLE_SECONDS)
            try:
                request = self._tls.wrap_socket(request, server_side=True)
            except (OSError, ValueError):
                return
        with self._lock:
            self._open.add(request)
        try:
            _Handler(request, client_address, self)
        finally:
            with self._lock:
                self._open.discard(request)
            if self._tls is not None:
                request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent where the client went away; everything else is a fault of ours and shown."""
        import sys  # noqa: PLC0415 - needed on this path only

        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def close_connections(self) -> None:
        """End all open connections."""
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_SECONDS
    server: ApiHttpServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Stay silent: requests are in the log."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = self.server.log.begin(self.command, parts.path, query, headers)
        path = self.server.api.identify(request)
        try:
            request.raw_body = self._read_body(headers)
            fault = self.server.faults.take(request)
            if fault is not None and fault.drop is Drop.BEFORE:
                self._drop()
                return
            refusal = fault.error(request) if fault else None
            answer = error_answer(refusal) if refusal else self.server.api.answer(request, path)
            if fault is not None and fault.drop is Drop.AFTER:
                self._drop()
                return
        except StatusError as error:
            self.close_connection = True
            answer = error_answer(error)
        except Exception as error:
            # A fault of this server, shown to the client as the real one shows its own.
            self.server.log.finish(request, 500)
            self._send(json_answer(500, status(500, "InternalError", f"Internal error occurred: {error!r}")))
            raise
        self.server.log.finish(request, answer.code)
        self._send(answer)

    # The base class looks methods up by these names.
    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _serve  # noqa: N815

    def _read_body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        try:
            length = int(headers.get("content-length") or 0)
        except ValueError:
            raise bad_request("the Content-Length is not a number") from None
        if length > MAX_BODY:
            raise too_large(MAX_BODY)
        return self.rfile.read(length) if length else b""

    def _chunks(self) -> Iterable[bytes]:
        total = 0
        while size := int(self.rfile.readline(64).split(b";")[0] or b"0", 16):
            total += size
            if total > MAX_BODY:
                raise too_large(MAX_BODY)
            yield self.rfile.read(size)
            self.rfile.readline(64)
        while self.rfile.readline(1024).strip():
            continue

    def _drop(self) -> None:
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def _send(self, answer: Answer) -> None:
        if self.close_connection:
            answer.headers["Connection"] = "close"
        body = b"" if self.command == "HEAD" else answer.body
        self.wfile.write(answer.head() + body)
        if answer.stream is not None:
            self._send_stream(answer)

    def _send_stream(self, answer: Answer) -> None:
        try:
            for piece in answer.stream or ():
                if piece:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
