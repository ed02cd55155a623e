"""One client a protocol: `ask` makes one request and returns the identity in the answer, or raises `Lost`.

HTTP and gRPC keep their connection, as browsers and services do; TCP and TLS open one each time, since a layer 4 route
chooses a backend a connection. Nothing is ever tried twice.
"""

import json
import socket
import ssl
from typing import Any, Protocol

import grpc
import urllib3

from e2e.load.cohort import Cohort

# An identity is some 300 bytes.
_LONGEST_LINE = 65_536


class Lost(Exception):  # noqa: N818 - what is counted
    """No answer, or not the right one."""


class Client(Protocol):
    """What the generator needs of each."""

    def ask(self) -> dict[str, Any]:
        """Make one request and return the answering pod's identity."""


class HttpClient:
    """HTTP/1.1 on a kept connection; any status but the cohort's is a loss. A redirect is told as where it leads."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort
        self.headers = {"Host": cohort.host or cohort.address, "X-Cohort": cohort.name, **cohort.headers}
        self.pool = urllib3.HTTPConnectionPool(cohort.address, cohort.port, maxsize=1, timeout=cohort.timeout)

    def ask(self) -> dict[str, Any]:
        """As `Client.ask`."""
        try:
            answer = self.pool.request(
                self.cohort.method, self.cohort.path, headers=self.headers, retries=False, redirect=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise Lost(f"{type(error).__name__}: {error}") from error
        if answer.status != self.cohort.status:
            raise Lost(f"status {answer.status}: {answer.data[:100].decode(errors='replace')}")
        if answer.get_redirect_location():
            return {"version": answer.headers["Location"]}
        return _identity(answer.data)


class GrpcClient:
    """A unary call on a kept HTTP/2 connection."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort
        options = [("grpc.default_authority", cohort.host or cohort.address), ("grpc.enable_retries", 0)]
        # A lost connection is opened again at once: the wait would hide what others see.
        options += [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 50)]
        self.channel = grpc.insecure_channel(f"{cohort.address}:{cohort.port}", options=options)
        path = cohort.path if cohort.path != "/" else "/echo.Echo/Who"
        self.call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(path)
        self.metadata = (("x-cohort", cohort.name), *((key.lower(), value) for key, value in cohort.headers.items()))

    def ask(self) -> dict[str, Any]:
        """As `Client.ask`."""
        try:
            answer = self.call(b"", timeout=self.cohort.timeout, metadata=self.metadata)
        except grpc.RpcError as error:
            raise Lost(f"{error.code().name}: {error.details()}") from error
        return _identity(answer)


class LineClient:
    """A new connection, one line each way; with TLS the route chooses by the server name."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort
        self.context: ssl.SSLContext | None = None
        if cohort.protocol == "tls":
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            # The pods' certificate is made at their start; who answered is told by the answer.
            self.context.check_hostname = False
            self.context.verify_mode = ssl.CERT_NONE

    def ask(self) -> dict[str, Any]:
        """As `Client.ask`."""
        try:
            address = (self.cohort.address, self.cohort.port)
            with socket.create_connection(address, timeout=self.cohort.timeout) as plain:
                if self.context is None:
                    return self._talk(plain)
                with self.context.wrap_socket(plain, server_hostname=self.cohort.host) as secure:
                    return self._talk(secure)
        except OSError as error:
            raise Lost(f"{type(error).__name__}: {error}") from error

    def _talk(self, connection: socket.socket) -> dict[str, Any]:
        connection.sendall(b"who\n")
        received = b""
        while not received.endswith(b"\n"):
            part = connection.recv(_LONGEST_LINE)
            if not part:
                raise Lost(f"closed after {len(received)} bytes")
            received += part
        return _identity(received)


class DatagramClient:
    """One datagram each way, from a port of its own: a gateway keeps a port's backend."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort

    def ask(self) -> dict[str, Any]:
        """As `Client.ask`."""
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
                own.settimeout(self.cohort.timeout)
                own.connect((self.cohort.address, self.cohort.port))
                own.send(b"who")
                return _identity(own.recv(_LONGEST_LINE))
        except OSError as error:
            raise Lost(f"{type(error).__name__}: {error}") from error


def connect(cohort: Cohort) -> Client:
    """Return the cohort's kind of client."""
    if cohort.protocol == "udp":
        return DatagramClient(cohort)
    if cohort.protocol == "http":
        return HttpClient(cohort)
    return GrpcClient(cohort) if cohort.protocol == "grpc" else LineClient(cohort)


def _identity(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise Lost(f"not an identity: {body[:100]!r}") from error
    if not isinstance(answer, dict) or "pod" not in answer:
        raise Lost(f"not an identity: {body[:100]!r}")
    return answer
