"""Rules that replace the matched prefix answer as before with a narrower match, judged by the reference Gateway."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.dataplane.filters import modify_request
from rollouts_gwapi_plugin.embedded.dataplane.request import HttpRequest
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.httproute import path_contains
from rollouts_gwapi_plugin.routes.rewrite import narrowed, replaces_prefix

REGEX = "RegularExpression"
PREFIXES = ("/", "/a", "/a/", "/a/b")
LONGER = ("/a/b/c", "/a/b", "/a/b/", "/a", "/x", "/a/")
ASKED = ("/a/b/c", "/a/b/c/d", "/a/b", "/a/b/", "/a", "/a/", "/x", "/x/y")


def rewriting(replacement: str) -> JsonObject:
    """Make the filter."""
    path = {"type": "ReplacePrefixMatch", "replacePrefixMatch": replacement}
    return {"type": "URLRewrite", "urlRewrite": {"hostname": "h", "path": path}}


def match(value: str, type_: str = "PathPrefix") -> JsonObject:
    """Make a match of a path."""
    return {"path": {"type": type_, "value": value}}


def _path(rule: Rule, matched: JsonObject, path: str) -> str:
    request = modify_request(HttpRequest(path=path), rule.filters or [], matched)
    assert isinstance(request, HttpRequest)
    return request.path


@settings(max_examples=200)
@given(
    own=st.sampled_from(PREFIXES),
    replacement=st.sampled_from(["/", "", "/x", "/x/", "/x/y"]),
    value=st.sampled_from(LONGER),
    exact=st.booleans(),
)
def test_a_narrower_match_rewrites_the_same(
    own: str,
    replacement: str,
    value: str,
    exact: bool,  # noqa: FBT001 - drawn by name
) -> None:
    """Whatever path the narrowed match takes leaves as it left before."""
    inner = match(value, "Exact" if exact else "PathPrefix")
    if not path_contains(match(own)["path"], inner["path"]):
        return
    rule = Rule.model_validate({"matches": [match(own)], "filters": [rewriting(replacement)]})
    result = narrowed(rule, match(own), inner)

    assert result is not None
    for path in ASKED:
        if path_contains(inner["path"], match(path, "Exact")["path"]) and (not exact or path == value):
            assert _path(rule, match(own), path) == _path(result, inner, path)


def test_what_replaces_no_prefix_is_left_alone() -> None:
    """The very same rule comes back, other rewrites included."""
    full = {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}}}
    for filters in (None, [], [full], [{"type": "URLRewrite", "urlRewrite": {"path": None}}], [{"urlRewrite": None}]):
        rule = Rule.model_validate({"filters": filters, "backendRefs": [{"name": "s"}]})

        assert not replaces_prefix(rule)
        assert narrowed(rule, match("/a"), match("/a/b")) is rule


@pytest.mark.parametrize("field", ["urlRewrite", "requestRedirect"])
def test_filters_of_rule_and_backend_are_adapted(field: str) -> None:
    """The rule's own and those of a backend; everything else of the filter and of the rule stays."""
    path = {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/x"}
    item: dict[str, Any] = {"type": "T", field: {"hostname": "h", "path": path, "future": 1}}
    other = {"type": "CORS", "cors": {}}
    rule = Rule.model_validate(
        {"filters": [other, item], "backendRefs": [{"name": "s", "port": 80}, {"name": "c", "filters": [item, other]}]}
    )
    moved = {"type": "T", field: {"hostname": "h", "path": {**path, "replacePrefixMatch": "/x/b"}, "future": 1}}
    result = narrowed(rule, match("/a"), match("/a/b"))

    assert replaces_prefix(rule)
    assert result is not None
    assert {
        "filters": [other, moved],
        "backendRefs": [{"name": "s", "port": 80}, {"name": "c", "filters": [moved, other]}],
    } == result.dump()


def test_a_filter_of_a_backend_alone_counts() -> None:
    """The API wants exactly one match for that, too, and filters that were absent stay absent."""
    rule = Rule.model_validate({"backendRefs": [{"name": "c", "filters": [rewriting("/x")]}]})
    result = narrowed(rule, match("/a"), match("/a/b", "Exact"))

    assert replaces_prefix(rule)
    assert result is not None
    assert result.filters is None
    filters = result.backends[0].filters
    assert filters is not None
    assert {"type": "ReplaceFullPath", "replaceFullPath": "/x/b"} == filters[0]["urlRewrite"]["path"]


@pytest.mark.parametrize(("own", "inner"), [(match("/"), match("/v.", REGEX)), (match("/a.*", REGEX), match("/a/b"))])
def test_an_expression_can_not_be_narrowed(own: JsonObject, inner: JsonObject) -> None:
    """Which part of the path the expression matches is not known."""
    rule = Rule.model_validate({"filters": [rewriting("/x")]})

    assert narrowed(rule, own, inner) is None


def test_a_rule_without_backends_has_none_afterwards() -> None:
    """Absent stays absent."""
    rule = Rule.model_validate({"filters": [rewriting("/x")]})
    result = narrowed(rule, match("/a"), match("/a/b"))

    assert result is not None
    assert {"filters"} == set(result.dump())
