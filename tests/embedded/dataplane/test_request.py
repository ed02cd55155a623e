"""What is read from a request line and its headers."""

import pytest

from rollouts_gwapi_plugin.embedded.dataplane.request import GrpcCall, HttpRequest, hostname


@pytest.mark.parametrize(
    ("target", "host", "path", "query"),
    [
        ("/a/b", "h", "/a/b", ()),
        ("/a?x=1&y=&x=2", "h", "/a", (("x", "1"), ("y", ""), ("x", "2"))),
        ("/a?x=c%20d+e", "h", "/a", (("x", "c d e"),)),
        ("http://other.org:81/z?q=1", "other.org:81", "/z", (("q", "1"),)),
        ("http://other.org", "other.org", "/", ()),
        ("/a%2Fb", "h", "/a%2Fb", ()),
    ],
)
def test_targets(target: str, host: str, path: str, query: tuple[tuple[str, str], ...]) -> None:
    """Path and query come from the target, in origin or absolute form; the path stays as it was sent."""
    assert HttpRequest.from_target("GET", "h", target, ()) == HttpRequest("GET", host, path, query)


@pytest.mark.parametrize(("host", "name"), [("Shop.Example:80", "shop.example"), ("[::1]:80", "[::1]"), ("", "")])
def test_hostname(host: str, name: str) -> None:
    """The port is no part of the name."""
    assert hostname(host) == name


def test_grpc_as_http() -> None:
    """A gRPC call is a POST to its service and method."""
    call = GrpcCall("shop.Cart", "Add", "h", (("a", "1"),))

    assert call.as_http() == HttpRequest("POST", "h", "/shop.Cart/Add", (), (("a", "1"),))
    assert call.header_values == {"a": "1"}
