"""The HTTP side of the data plane: takes requests, asks for a decision, forwards and mirrors.

Takes a function that decides (see `decision`) and one that knows the address behind a Service. A request is sent once
and never repeated; what can't be sent is answered 503 (no endpoint, no connection) or 504 (no answer in time), with
the reason in `x-gateway-reason`; a forwarded answer names its Service in `x-gateway-service`. Mirrors go out on threads
of their own, and their answers are dropped.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3
from urllib3.util import SKIP_HEADER

from rollouts_gwapi_plugin.embedded.dataplane.decision import Decision, Forward
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Address
from rollouts_gwapi_plugin.embedded.dataplane.filters import modify_response
from rollouts_gwapi_plugin.embedded.dataplane.references import ServicePort
from rollouts_gwapi_plugin.embedded.dataplane.request import HttpRequest, Pairs

REASON_HEADER = "x-gateway-reason"
# No gateway does this; here one can so tell two Services apart that lead to the same pods.
SERVICE_HEADER = "x-gateway-service"
# How long stopping may take: the server looks this often whether it should.
STOP_SECONDS = 0.05
# A body is held in memory before it is sent on; demo and tests send small ones.
MAX_BODY = 10 * 1024 * 1024
# Envoy's default for a route without a timeout.
BACKEND_SECONDS = 15.0
CONNECT_SECONDS = 3.0
# Mirrored requests that wait; one more is dropped, so that a slow mirror never grows the process.
MAX_WAITING_MIRRORS = 1000
MIRROR_THREADS = 4
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})

Decide = Callable[[HttpRequest], Decision]
Resolve = Callable[[ServicePort], Address | None]
Response = tuple[int, Pairs, bytes]


class Upstream:
    """Connections to the backends, and the mirrors that are under way."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._pool = urllib3.PoolManager(num_pools=32, maxsize=64)
        self._mirrors = ThreadPoolExecutor(MIRROR_THREADS, thread_name_prefix="mirror")
        self._waiting = threading.BoundedSemaphore(MAX_WAITING_MIRRORS)

    def send(self, target: ServicePort, request: HttpRequest, query: str, body: bytes) -> Response:
        """Send a request to an endpoint of the Service; return its answer, or ours."""
        address = self._resolve(target)
        if address is None:
            return _own(HTTPStatus.SERVICE_UNAVAILABLE, f"Service {target} has no ready endpoint")
        headers = _request_headers(request)
        url = f"http://{address[0]}:{address[1]}{request.path}{query}"
        try:
            answer = self._pool.request(
                request.method,
                url,
                body=body or None,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=BACKEND_SECONDS),
                retries=False,
                redirect=False,
                decode_content=False,
            )
        except urllib3.exceptions.ReadTimeoutError as error:
            return _own(HTTPStatus.GATEWAY_TIMEOUT, str(error))
        except urllib3.exceptions.HTTPError as error:
            return _own(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return answer.status, _end_to_end(tuple(answer.headers.iteritems()), dropped={"content-length"}), answer.data

    def mirror(self, target: ServicePort, request: HttpRequest, query: str, body: bytes) -> None:
        """Send a copy and forget it."""
        if not self._waiting.acquire(blocking=False):
            return

        def run() -> None:
            try:
                self.send(target, request, query, body)
            finally:
                self._waiting.release()

        self._mirrors.submit(run)

    def close(self) -> None:
        """Wait for mirrors under way and close the connections."""
        self._mirrors.shutdown(cancel_futures=True)
        self._pool.clear()


class Listener:
    """One listener of a Gateway on a port of the loopback."""

    def __init__(self, name: str, decide: Decide, upstream: Upstream, port: int = 0) -> None:
        self.name = name
        self._server = _Server(decide, upstream, port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(STOP_SECONDS,), name=f"listener-{name}", daemon=True
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to serve."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    # A kept-alive connection waits for its next request; it must not hold the process at its end.
    daemon_threads = True
    # All workers of a load generator connect at once.
    request_queue_size = 128

    def __init__(self, decide: Decide, upstream: Upstream, port: int) -> None:
        self.decide = decide
        self.upstream = upstream
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave in two writes; with Nagle's algorithm the second would wait for the client's delayed ACK.
    disable_nagle_algorithm = True
    # One packet an answer.
    wbufsize = -1
    server: _Server

    def _serve(self) -> None:
        body = self._body()
        if body is None:
            return
        headers = tuple(self.headers.items())
        request = HttpRequest.from_target(self.command, self.headers.get("host") or "", self.path, headers)
        decision = self.server.decide(request)
        if not isinstance(decision, Forward):
            self._answer(decision.status, ((REASON_HEADER, decision.reason), *decision.headers), b"")
            return
        forwarded = decision.request
        if not isinstance(forwarded, HttpRequest):
            raise TypeError(f"{forwarded!r} is no HTTP request")
        query = "".join(self.path.partition("?")[1:])
        for mirror in decision.mirrors:
            self.server.upstream.mirror(mirror, forwarded, query, body)
        status, answered, content = self.server.upstream.send(decision.target, forwarded, query, body)
        answered = modify_response(answered, decision.response_filters)
        self._answer(status, (*answered, (SERVICE_HEADER, decision.target.name)), content)

    # The names are http.server's.
    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _serve  # noqa: N815

    def _body(self) -> bytes | None:
        if "transfer-encoding" in self.headers:
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "send a content-length")
            return None
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {MAX_BODY} bytes here")
            return None
        return self.rfile.read(length)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        # The body that was not read stands before the next request.
        self.close_connection = True
        self._answer(status, ((REASON_HEADER, reason), ("connection", "close")), b"")

    def _answer(self, status: int, headers: Pairs, content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if status not in _WITHOUT_BODY:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: a line a request is no log."""


def _request_headers(request: HttpRequest) -> urllib3.HTTPHeaderDict:
    headers = urllib3.HTTPHeaderDict({"host": request.host})
    for name, value in _end_to_end(request.headers, dropped={"host", "content-length"}):
        headers.add(name, value)
    for name in ("accept-encoding", "user-agent"):
        # What the client did not send is not to be added.
        headers.setdefault(name, SKIP_HEADER)
    return headers


def _end_to_end(headers: Pairs, *, dropped: set[str]) -> Pairs:
    named = next((value for name, value in headers if name.lower() == "connection"), "")
    gone = _HOP_BY_HOP | dropped | {token.strip().lower() for token in named.split(",")}
    return tuple((name, value) for name, value in headers if name.lower() not in gone)


def _own(status: int, reason: str) -> Response:
    return status, ((REASON_HEADER, reason.replace("\r", " ").replace("\n", " ")),), b""
