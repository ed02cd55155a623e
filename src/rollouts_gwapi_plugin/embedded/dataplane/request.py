"""A request as routing sees it: frozen, no sockets.

Takes what stood on the request line and in the headers; gives single values the way the Gateway API reads them: a
header that is repeated is one comma-separated value (RFC 9110 section 5.3), of a repeated query parameter the first
counts, and the port in `Host` is not part of the name.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import parse_qsl, urlsplit

Pairs = tuple[tuple[str, str], ...]


def _joined(headers: Pairs) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value)
    return {name: ",".join(parts) for name, parts in values.items()}


def hostname(host: str) -> str:
    """Return the name in a `Host` value: lower case, without the port, brackets of IPv6 kept."""
    host = host.strip().lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


@dataclass(frozen=True)
class HttpRequest:
    """An HTTP request; `path` is as sent, without the query."""

    method: str = "GET"
    host: str = ""
    path: str = "/"
    query: Pairs = ()
    headers: Pairs = ()

    @classmethod
    def from_target(cls, method: str, host: str, target: str, headers: Pairs) -> "HttpRequest":
        """Read a request line's target, in origin form (`/a?b=c`) or absolute form."""
        parts = urlsplit(target if "://" in target else f"http://{host or 'localhost'}{target}")
        query = tuple(parse_qsl(parts.query, keep_blank_values=True))
        return cls(
            method=method,
            host=parts.netloc if "://" in target else host,
            path=parts.path or "/",
            query=query,
            headers=headers,
        )

    @cached_property
    def header_values(self) -> dict[str, str]:
        """Values by lower-case header name."""
        return _joined(self.headers)

    @cached_property
    def query_values(self) -> dict[str, str]:
        """The first value of each query parameter; names are case-sensitive."""
        return dict(reversed(self.query))

    def with_headers(self, headers: Pairs) -> "HttpRequest":
        """Return the request with other headers."""
        return replace(self, headers=headers)

    def redirected(self, host: str, path: str) -> "HttpRequest":
        """Return the request to another host and path; method, query and headers stay."""
        return replace(self, host=host, path=path)


@dataclass(frozen=True)
class GrpcCall:
    """A gRPC call: service and method of its path, and its metadata."""

    service: str
    method: str
    host: str = ""
    headers: Pairs = ()

    @cached_property
    def header_values(self) -> dict[str, str]:
        """Values by lower-case metadata key."""
        return _joined(self.headers)

    def with_headers(self, headers: Pairs) -> "GrpcCall":
        """Return the call with other metadata."""
        return replace(self, headers=headers)

    def as_http(self) -> HttpRequest:
        """Return the HTTP request that carries it, which an HTTPRoute can match too."""
        return HttpRequest("POST", self.host, f"/{self.service}/{self.method}", (), self.headers)


@dataclass(frozen=True)
class Connection:
    """A TCP connection; `host` is the server name of its TLS ClientHello, empty without one."""

    host: str = ""


Request = HttpRequest | GrpcCall | Connection
