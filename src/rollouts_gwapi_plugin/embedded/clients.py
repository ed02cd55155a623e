"""The clients of a load: each sends one request after another to a listener, and tells what came back.

`make_client(url, cohort, trust)` takes a listener's address, whose scheme says how it is spoken to: `http` over one
connection that is kept, `tcp` and `tls` with HTTP over a new connection for each request (there connections are what a
gateway shares out), `grpc` with unary calls. A client never repeats a request and never raises: what got no good answer
is a `Reply` with the reason.
"""

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from rollouts_gwapi_plugin.embedded.backends import ID_HEADER, NAME_HEADER
from rollouts_gwapi_plugin.embedded.dataplane.proxy import REASON_HEADER, SERVICE_HEADER

# A request that takes longer than this is lost for its user.
ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Cohort:
    """Clients that send alike; `rate` is in requests a second, `listener` empty for the Gateway's first."""

    name: str
    rate: float
    headers: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    path: str = "/"
    method: str = "GET"
    listener: str = ""


@dataclass(frozen=True)
class Reply:
    """What came back: an HTTP status (0 without an answer; gRPC's OK is 200, its failures 0), and who answered."""

    status: int
    backend: str = ""
    service: str = ""
    error: str = ""


class Client(Protocol):
    """A client of any protocol; for one thread."""

    def send(self, request_id: str) -> Reply:
        """Send a request and wait for its answer."""

    def close(self) -> None:
        """Close what is open."""


def make_client(url: str, cohort: Cohort, trust: str = "") -> Client:
    """Return a client of the cohort; `trust` is the PEM text of the certificate that a TLS backend must show."""
    scheme = urlsplit(url).scheme
    if scheme == "grpc":
        # The gRPC libraries take half a second to import.
        from rollouts_gwapi_plugin.embedded.grpc_client import GrpcClient  # noqa: PLC0415

        return GrpcClient(url, cohort)
    if scheme == "tls":
        return HttpClient(url, cohort, keeps=False, tls=ssl.create_default_context(cadata=trust))
    return HttpClient(url, cohort, keeps=scheme == "http")


class HttpClient:
    """HTTP over a connection that is kept, or over a new one for each request."""

    def __init__(self, url: str, cohort: Cohort, *, keeps: bool, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        self._cohort = cohort
        self._keeps = keeps
        self._headers = {**cohort.headers, **({"host": cohort.host} if cohort.host else {})}
        address = parts.hostname or "127.0.0.1", parts.port or 80
        if tls is None:
            self._connection = http.client.HTTPConnection(*address, timeout=ANSWER_SECONDS)
        else:
            self._connection = _NamedConnection(*address, timeout=ANSWER_SECONDS, context=tls)
            self._connection.server_name = cohort.host

    def send(self, request_id: str) -> Reply:
        """Send a request and wait for its answer."""
        try:
            headers = {**self._headers, ID_HEADER: request_id}
            self._connection.request(self._cohort.method, self._cohort.path, headers=headers)
            response = self._connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Reply(0, error=f"{type(error).__name__}: {error}")
        if not self._keeps:
            self.close()
        found = response.headers
        return Reply(
            response.status, found.get(NAME_HEADER, ""), found.get(SERVICE_HEADER, ""), found.get(REASON_HEADER, "")
        )

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()


class _NamedConnection(http.client.HTTPSConnection):
    """HTTPS to an address under the name of another host, as `curl --connect-to` does it."""

    server_name = ""

    def connect(self) -> None:
        """Connect, and ask for the server by its name."""
        http.client.HTTPConnection.connect(self)
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]  # typeshed has it as a private name
        self.sock = context.wrap_socket(self.sock, server_hostname=self.server_name or self.host)
