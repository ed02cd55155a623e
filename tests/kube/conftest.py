"""A scripted API server on the standard library, a clock that tests turn, and certificate authorities.

`api` is a `StubServer`: it keeps objects by path, refuses a write under an old resourceVersion, logs requests, and
answers what `script` says first.
"""

import json
import ssl
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.kube.authority import Authority

from rollouts_gwapi_plugin.kube.auth import ClusterConfig
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline, Timing
from rollouts_gwapi_plugin.model.kube import ResourceType

HANG_LIMIT = 30.0
HTTP_ROUTES = ResourceType("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")


@dataclass(frozen=True)
class Request:
    """What the server was asked."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any
    connection: int
    client_certificate: str = ""
    header_lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Reply:
    """What the server is to answer.

    `drop` closes the connection instead, `hang` waits until the test ends, `stall` does so in the middle of the body,
    `drip` waits so many seconds after each byte of it, `head_drip` after each byte of a long head, `apply_first` does
    what was asked before it answers this.
    """

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    hang: bool = False
    stall: bool = False
    drip: float = 0.0
    head_drip: float = 0.0
    apply_first: bool = False


Responder = Callable[[Request], Reply | None]


def status_body(code: int, reason: str, message: str, **details: Any) -> dict[str, Any]:
    """Return a Status object as the API server sends it with an error."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


class StubServer:
    """A scripted API server."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.objects: dict[str, dict[str, Any]] = {}
        self.script: deque[Reply | None] = deque()
        self.responder: Responder = lambda _request: None
        self.let_go = threading.Event()
        self.lock = threading.Lock()
        self.faults: list[BaseException | None] = []
        self._version = 100
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.stub = self
        self.scheme = "https" if tls else "http"
        if tls:
            self.use(tls)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address, with the loopback IP address."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def use(self, tls: ssl.SSLContext) -> None:
        """Show new connections the certificate of this context."""
        self._server.tls = tls

    def add(self, path: str, obj: dict[str, Any]) -> None:
        """Put an object at a path, under a new resourceVersion."""
        with self.lock:
            self.objects[path] = self._versioned(obj)

    def _versioned(self, obj: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        return {**obj, "metadata": {**obj.get("metadata", {}), "resourceVersion": str(self._version)}}

    def answer(self, request: Request) -> Reply:
        """Answer by script, then responder, then what is stored."""
        with self.lock:
            self.requests.append(request)
            scripted = self.script.popleft() if self.script else None
            if scripted is not None:
                if scripted.apply_first:
                    self._stored(request)
                return scripted
        given = self.responder(request)
        if given is not None:
            return given
        with self.lock:
            return self._stored(request)

    def _stored(self, request: Request) -> Reply:
        name = request.path.rpartition("/")[2]
        there = self.objects.get(request.path)
        if request.method == "POST":
            path = f"{request.path}/{request.body['metadata']['name']}"
            if path in self.objects:
                return Reply(409, status_body(409, "AlreadyExists", "already exists"))
            self.objects[path] = self._versioned(request.body)
            return Reply(201, self.objects[path])
        if there is None:
            return Reply(404, status_body(404, "NotFound", f'"{name}" not found', name=name, kind="things"))
        if request.method == "DELETE":
            del self.objects[request.path]
            return Reply(200, {"kind": "Status", "status": "Success"})
        if request.method == "PUT":
            if request.body["metadata"]["resourceVersion"] != there["metadata"]["resourceVersion"]:
                return Reply(409, status_body(409, "Conflict", "the object has been modified"))
            self.objects[request.path] = self._versioned(request.body)
        return Reply(200, self.objects[request.path])

    def close(self) -> None:
        """Let hanging requests go and close the port."""
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        assert self.faults == []


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    stub: StubServer
    tls: ssl.SSLContext | None = None

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection; its handshake is made by the thread that serves it."""
        connection, address = super().get_request()
        if self.tls is None:
            return connection, address
        return self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class calls it so
        """Say nothing of a client that went away, which some tests do; anything else is a fault of this server."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.stub.faults.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Write nothing to stderr."""

    def _serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        parts = urlsplit(self.path)
        request = Request(
            self.command,
            parts.path,
            parse_qs(parts.query),
            {key.lower(): value for key, value in self.headers.items()},
            json.loads(raw) if raw else None,
            self.client_address[1],
            self._client_name(),
            tuple(self.headers.items()),
        )
        reply = self.server.stub.answer(request)
        if reply.hang:
            self.server.stub.let_go.wait(HANG_LIMIT)
        if reply.drop or reply.hang:
            self.close_connection = True
            return
        self._send(reply)

    def _client_name(self) -> str:
        """Return the common name in the client's certificate, empty without one."""
        certificate = (
            self.connection.getpeercert(binary_form=True) if isinstance(self.connection, ssl.SSLSocket) else None
        )
        if not certificate:
            return ""
        names = x509.load_der_x509_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(names[0].value)

    do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - the base class's names

    def _send(self, reply: Reply) -> None:
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))} | reply.headers
        for key, value in headers.items():
            self.send_header(key, value)
        if reply.head_drip:
            self._drip(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 200, reply.head_drip)
        self.end_headers()
        if reply.drip:
            self._drip(body, reply.drip)
        elif reply.stall:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.server.stub.let_go.wait(HANG_LIMIT)
        else:
            self.wfile.write(body)

    def _drip(self, data: bytes, pause: float) -> None:
        for at in range(len(data)):
            self.wfile.write(data[at : at + 1])
            self.wfile.flush()
            self.server.stub.let_go.wait(pause)


class FakeTime:
    """A clock that moves only when somebody sleeps, and remembers each sleep."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.sleeps: list[float] = []
        self.timing = Timing(clock=lambda: self.now, sleep=self.sleep, jitter=lambda: 1.0)

    def sleep(self, seconds: float) -> None:
        """Move the clock."""
        self.sleeps.append(seconds)
        self.now += seconds

    def deadline(self, seconds: float) -> Deadline:
        """Return a deadline on this clock."""
        return Deadline.after(seconds, timing=self.timing)


@pytest.fixture
def api() -> Iterator[StubServer]:
    """Start a scripted API server over plain HTTP."""
    server = StubServer()
    yield server
    server.close()


@pytest.fixture
def start_api() -> Iterator[Callable[..., StubServer]]:
    """Start scripted API servers, with a TLS context where one is given."""
    servers: list[StubServer] = []

    def start(tls: ssl.SSLContext | None = None) -> StubServer:
        servers.append(StubServer(tls))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def reply() -> type[Reply]:
    """Give the class of scripted answers."""
    return Reply


@pytest.fixture
def status() -> Callable[..., dict[str, Any]]:
    """Make a Status object."""
    return status_body


@pytest.fixture
def fake_time() -> FakeTime:
    """Give a clock that moves only when somebody sleeps."""
    return FakeTime()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Make a certificate authority."""
    return Authority(tmp_path)


@pytest.fixture
def next_authority(tmp_path: Path) -> Authority:
    """Make the certificate authority that follows it, of the same name, as a rotation makes it."""
    folder = tmp_path / "next"
    folder.mkdir()
    return Authority(folder)


@pytest.fixture
def routes() -> ResourceType:
    """Give the kind that most tests use."""
    return HTTP_ROUTES


@pytest.fixture
def connect() -> Iterator[Callable[..., KubeClient]]:
    """Make clients, without a request limit unless one is given, that are closed at the end."""
    clients: list[KubeClient] = []

    def make(server: StubServer | ClusterConfig, **settings: Any) -> KubeClient:
        config = ClusterConfig(server.url) if isinstance(server, StubServer) else server
        clients.append(KubeClient(config, **{"qps": -1, **settings}))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
