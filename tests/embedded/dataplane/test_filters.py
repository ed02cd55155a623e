"""Filters: header modifiers, rewrites, redirects."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.dataplane import filters
from rollouts_gwapi_plugin.embedded.dataplane.request import GrpcCall, HttpRequest

PREFIX = {"path": {"type": "PathPrefix", "value": "/foo"}}


def test_header_modifier() -> None:
    """`set` replaces all values of a name, `add` adds one, `remove` takes all; case does not count."""
    headers = (("A", "1"), ("a", "2"), ("B", "3"), ("C", "4"))
    modifier = {"set": [{"name": "a", "value": "9"}], "add": [{"name": "b", "value": "5"}], "remove": ["c"]}

    assert filters.modify_headers(headers, modifier) == (("B", "3"), ("a", "9"), ("b", "5"))


@pytest.mark.parametrize(
    ("path", "prefix", "replacement", "expected"),
    [
        # The table of HTTPPathModifier.replacePrefixMatch.
        ("/foo/bar", "/foo", "/xyz", "/xyz/bar"),
        ("/foo/bar", "/foo", "/xyz/", "/xyz/bar"),
        ("/foo/bar", "/foo/", "/xyz", "/xyz/bar"),
        ("/foo/bar", "/foo/", "/xyz/", "/xyz/bar"),
        ("/foo", "/foo", "/xyz", "/xyz"),
        ("/foo/", "/foo", "/xyz", "/xyz/"),
        ("/foo/bar", "/foo", "", "/bar"),
        ("/foo/", "/foo", "", "/"),
        ("/foo", "/foo", "", "/"),
        ("/foo/", "/foo", "/", "/"),
        ("/foo", "/foo", "/", "/"),
    ],
)
def test_replace_prefix(path: str, prefix: str, replacement: str, expected: str) -> None:
    """A prefix is replaced as in the Gateway API's own table."""
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": replacement}, "hostname": "inner"}

    changed = filters.modify_request(
        HttpRequest(host="outer", path=path),
        [{"type": "URLRewrite", "urlRewrite": rewrite}],
        {"path": {"type": "PathPrefix", "value": prefix}},
    )

    assert changed == HttpRequest(host="inner", path=expected)


def test_replace_full_path() -> None:
    """A full path is replaced whatever matched, and a gRPC call is never rewritten."""
    rewrite = [{"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/new"}}}]

    assert filters.modify_request(HttpRequest(path="/foo/x"), rewrite, PREFIX) == HttpRequest(path="/new")
    assert filters.modify_request(GrpcCall("s", "m"), rewrite, {}) == GrpcCall("s", "m")


@pytest.mark.parametrize(
    ("wanted", "status", "location"),
    [
        ({}, 302, "http://shop.example:8080/foo/x"),
        ({"scheme": "https", "statusCode": 301}, 301, "https://shop.example/foo/x"),
        ({"scheme": "https", "port": 8443}, 302, "https://shop.example:8443/foo/x"),
        ({"hostname": "other.org", "port": 80}, 302, "http://other.org/foo/x"),
        (
            {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/bar"}},
            302,
            "http://shop.example:8080/bar/x",
        ),
    ],
)
def test_redirect(wanted: dict[str, Any], status: int, location: str) -> None:
    """A redirect takes what the filter does not say from the request, and the port from the scheme or the listener."""
    request = HttpRequest(host="shop.example:1234", path="/foo/x")

    found = filters.redirect(request, [{"type": "RequestRedirect", "requestRedirect": wanted}], PREFIX, 8080)

    assert found == filters.Redirect(status, location)


def test_unknown_filters_are_named() -> None:
    """A filter that is not implemented is reported, so that it is not skipped."""
    assert filters.unsupported([{"type": "URLRewrite"}, {"type": "ExtensionRef"}]) == "ExtensionRef"
    assert filters.unsupported([{"type": "URLRewrite"}]) == ""
