"""Headers and methods of steps put into a rule's own matches."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.dataplane.patterns import value_matches
from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import HeaderRoutingMatch, RouteMatch, SetHeaderRoute, StringMatch
from rollouts_gwapi_plugin.routes.grpcroute import GrpcMatch
from rollouts_gwapi_plugin.routes.httproute import HttpMatch, path_contains
from rollouts_gwapi_plugin.routes.l7 import escape, header, header_alternatives, mirror_headers, with_headers

WHERE = "setHeaderRoute r1"


def entries(*pairs: tuple[str, str]) -> tuple[HeaderRoutingMatch, ...]:
    """Make the match of a step from names with exact values."""
    match = [{"headerName": name, "headerValue": {"exact": value}} for name, value in pairs]
    return SetHeaderRoute.model_validate({"match": match}).match


def exact(name: str, value: str) -> JsonObject:
    """Make the API's header match."""
    return {"type": "Exact", "name": name, "value": value}


@given(
    text=st.text(st.characters(exclude_characters="\x00"), max_size=20),
    rest=st.text(max_size=5).filter(lambda text: "\n" not in text),
)
def test_an_escaped_prefix_matches_just_what_begins_with_it(text: str, rest: str) -> None:
    """The prefix is literal, whatever signs it has (C49)."""
    pattern = header("X", StringMatch(prefix=text or "v"), WHERE)["value"]
    wanted = text or "v"

    assert value_matches("RegularExpression", pattern, wanted + rest)
    assert not value_matches("RegularExpression", pattern, f"\x00{wanted}")


def test_escaping_is_for_every_dialect() -> None:
    """Signs of RE2, PCRE and POSIX alike; letters are never escaped, since that gives them a meaning."""
    assert r"v1\.2\+b\(" == escape("v1.2+b(")
    assert "aZ0-_/ é" == escape("aZ0-_/ é")
    assert re.fullmatch(escape("[a]{2}|^$\\*?"), "[a]{2}|^$\\*?")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("", {"exact": "1"}, "headerName: '' is not a header name"),
        ("X A", {"exact": "1"}, "headerName: 'X A' is not a header name"),
        ("X\n", {"exact": "1"}, r"headerName: 'X\\n' is not a header name"),
        ("X" * 257, {"exact": "1"}, "headerName: 'X+' is not a header name"),
        ("X", None, "headerValue: one of exact, prefix, regex must be given"),
        ("X", {"exact": ""}, "headerValue: one of exact, prefix, regex must be given"),
        ("X", {"exact": "v" * 4097}, "headerValue: 4097 characters; the Gateway API takes 4096"),
        ("X", {"prefix": "." * 2048}, "headerValue: 4098 characters; the Gateway API takes 4096"),
    ],
)
def test_what_the_api_does_not_take_is_refused_by_field(name: str, value: Any, message: str) -> None:
    """The text names the step and the entry."""
    match = SetHeaderRoute.model_validate({"match": [{"headerName": name, "headerValue": value}]}).match

    with pytest.raises(RouteError, match=rf"setHeaderRoute r1\.match\[0\]\.{message}"):
        header_alternatives(match, match_any=False, where=WHERE)


def test_different_names_must_all_match_and_equal_names_are_alternatives() -> None:
    """Case tells no names apart, and the same entry twice is one (D13)."""
    match = entries(("A", "1"), ("a", "2"), ("B", "3"), ("b", "3"))
    expected = [(exact("A", "1"), exact("B", "3")), (exact("a", "2"), exact("B", "3"))]

    assert expected == header_alternatives(match, match_any=False, where=WHERE)
    each = [(exact("A", "1"),), (exact("a", "2"),), (exact("B", "3"),)]
    assert each == header_alternatives(match, match_any=True, where=WHERE)


@pytest.mark.parametrize("match_any", [True, False])
def test_alternatives_are_counted_before_they_are_multiplied(match_any: bool) -> None:  # noqa: FBT001 - a table
    """A hundred thousand entries are an error at once, not a full memory."""
    pairs = [(f"X-{number % 50}", str(number)) for number in range(5_000)]

    with pytest.raises(RouteError, match=r"setHeaderRoute r1\.match: its entries make \d+ alternatives"):
        header_alternatives(entries(*pairs), match_any=match_any, where=WHERE)


@pytest.mark.parametrize(
    ("own", "added", "expected"),
    [
        (None, [exact("A", "1")], [exact("A", "1")]),
        ([exact("A", "1")], [exact("B", "2")], [exact("A", "1"), exact("B", "2")]),
        ([exact("x-a", "1")], [exact("X-A", "1")], [exact("x-a", "1")]),
        ([exact("x-a", "1")], [exact("X-A", "2")], None),
        ([{"name": "x-a", "value": "1"}], [exact("X-A", "1")], [{"name": "x-a", "value": "1"}]),
        ([{"type": "RegularExpression", "name": "A", "value": "1"}], [exact("A", "1")], None),
        # Of two names that differ in case only the first counts in a proxy.
        ([exact("A", "1"), exact("a", "2")], [exact("A", "1")], [exact("A", "1"), exact("a", "2")]),
        ([exact("A", "1"), exact("a", "2")], [exact("A", "2")], None),
        (None, [exact("A", "1"), exact("a", "1")], [exact("A", "1")]),
        (None, [exact("A", "1"), exact("a", "2")], None),
    ],
)
def test_headers_are_merged_without_case(own: Any, added: list[JsonObject], expected: Any) -> None:
    """The source's own stand first; what contradicts, within the step, too, makes the match impossible (C45)."""
    match: JsonObject = {"method": "GET", **({"headers": own} if own is not None else {})}
    result = with_headers(match, tuple(added))

    assert (None if expected is None else {"method": "GET", "headers": expected}) == result


def test_nothing_added_is_the_same_match() -> None:
    """No empty list appears where there was none."""
    match: JsonObject = {"method": "GET"}

    assert with_headers(match, ()) is match


def test_mirror_headers_name_their_field() -> None:
    """They come in the order of their names, since Go's maps have none."""
    headers = {"B": StringMatch(exact="2"), "A": StringMatch(prefix="1.")}
    regex = {"type": "RegularExpression", "name": "A", "value": r"1\..*"}

    assert (regex, exact("B", "2")) == mirror_headers(headers, "m")
    with pytest.raises(RouteError, match=r"m\.headers\[B\]\.headerValue: one of"):
        mirror_headers({"B": StringMatch()}, "m")


def _asked(**fields: Any) -> RouteMatch:
    return RouteMatch.model_validate(fields)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"method": {"prefix": "G"}}, "m.method.prefix: 'G': the Gateway API matches methods by exact name only"),
        ({"method": {"regex": "G.*"}}, "m.method.regex: 'G.*'"),
        ({"method": {"exact": "BREW"}}, "m.method.exact: 'BREW'"),
        ({"method": {}}, "m.method: one of exact, prefix, regex must be given"),
        ({"path": {"exact": "x"}}, "m.path: 'x' is not a path that the Gateway API takes: it must start with '/'"),
        ({"path": {"prefix": "/a//b"}}, "m.path: '/a//b' is not a path"),
        ({"path": {"prefix": "/" + "a" * 1024}}, "is not a path that the Gateway API takes"),
        ({"path": {}}, "m.path: one of exact, prefix, regex must be given"),
    ],
)
def test_an_http_match_that_the_api_lacks_is_refused_by_field(asked: Any, message: str) -> None:
    """Method by exact name only, and paths as the API wants them (C66)."""
    with pytest.raises(RouteError) as raised:
        HttpMatch().intersect({}, _asked(**asked), "m")

    assert message in str(raised.value)


PREFIX, EXACT, REGEX = "PathPrefix", "Exact", "RegularExpression"


@pytest.mark.parametrize(
    ("own", "asked", "expected"),
    [
        (None, {"prefix": "/a"}, (PREFIX, "/a")),
        ((PREFIX, "/a"), {"prefix": "/"}, (PREFIX, "/a")),
        ((PREFIX, "/a"), {"prefix": "/a/b"}, (PREFIX, "/a/b")),
        ((PREFIX, "/a"), {"prefix": "/ab"}, None),
        ((PREFIX, "/a"), {"exact": "/a/b"}, (EXACT, "/a/b")),
        ((EXACT, "/a/b"), {"prefix": "/a"}, (EXACT, "/a/b")),
        ((EXACT, "/a"), {"exact": "/b"}, None),
        ((EXACT, "/a"), {"exact": "/a"}, (EXACT, "/a")),
        ((REGEX, "/v."), {"prefix": "/"}, (REGEX, "/v.")),
        ((REGEX, "/v."), {"regex": "/v."}, (REGEX, "/v.")),
        ((REGEX, "/v."), {"prefix": "/v1"}, None),
        ((PREFIX, "/"), {"regex": "/v."}, (REGEX, "/v.")),
        ((PREFIX, "/a"), {"regex": "/v."}, None),
    ],
)
def test_paths_are_intersected(own: Any, asked: Any, expected: Any) -> None:
    """The narrower of the two where one lies in the other, by path element; else no request has both."""
    match = {"path": {"type": own[0], "value": own[1]}} if own else {}
    result = HttpMatch().intersect(match, _asked(path=asked), "m")

    assert (expected and {"type": expected[0], "value": expected[1]}) == (result and result["path"])


@pytest.mark.parametrize(("own", "expected"), [(None, "GET"), ("GET", "GET"), ("POST", None)])
def test_methods_are_intersected(own: str | None, expected: str | None) -> None:
    """A method in small letters is meant as the API writes it (C66)."""
    match = {"method": own} if own else {}
    result = HttpMatch().intersect(match, _asked(method={"exact": "get"}), "m")

    assert expected == (result and result["method"])


@pytest.mark.parametrize("asked", [{"method": {"exact": "GET"}}, {"path": {"prefix": "/"}}])
def test_a_grpc_match_knows_no_http_method_or_path(asked: Any) -> None:
    """It is refused by its field, with a way out; headers alone are fine."""
    match: JsonObject = {"method": {"service": "x"}}

    with pytest.raises(RouteError, match=rf"m\.{next(iter(asked))}: a GRPCRoute can't match it; use headers"):
        GrpcMatch().intersect(match, _asked(**asked), "m")
    assert GrpcMatch().intersect(match, _asked(headers={"a": {"exact": "1"}}), "m") is match


def test_a_trailing_slash_of_a_prefix_does_not_count() -> None:
    """`/a/` and `/a` match the same paths."""
    assert path_contains({"type": PREFIX, "value": "/a/"}, {"type": PREFIX, "value": "/a"})
    assert path_contains({"type": PREFIX, "value": "/a"}, {"type": PREFIX, "value": "/a/"})


@pytest.mark.parametrize("text", ["(", "a)", "[a", "*a", "a\\", "(?:a|b"])
def test_what_is_an_expression_in_no_dialect_is_refused(text: str) -> None:
    """The API takes it, and a gateway then refuses the whole route, main traffic with it (C66)."""
    with pytest.raises(RouteError, match=r"match\[0\].headerValue.regex: .* is no regular expression"):
        header("X", StringMatch(regex=text), "match[0]")


@pytest.mark.parametrize(
    "text", [r"\Q(\E", r"\pL+", "(?<year>[0-9])", r"a\z", "[[:alpha:]]", "a{1001}", "(?i)a", "^a$"]
)
def test_what_some_dialect_takes_is_left_to_the_gateway(text: str) -> None:
    """Python's own expressions are no measure (C66)."""
    assert header("X", StringMatch(regex=text), "match[0]")["value"] == text
