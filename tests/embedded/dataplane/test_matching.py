"""The precedence rules of the Gateway API, one case a rule.

| what competes | who wins | test |
| --- | --- | --- |
| hostnames | more characters, exact before wildcard | test_hostname_precedence |
| paths | Exact, longest prefix, expression | test_path_precedence |
| method, headers, query | in this order, more before fewer | test_condition_precedence |
| equal matches | older route, then name, then first rule | test_ties |
| anything | never beaten by a match that ranks higher and holds | test_the_winner_ranks_highest |
"""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.dataplane.matching import Expressions, RouteTable, match
from rollouts_gwapi_plugin.embedded.dataplane.request import GrpcCall, HttpRequest

HEADER_A = [{"name": "a", "value": "1"}]


def route(
    *rules: dict[str, Any],
    name: str = "web",
    kind: str = "HTTPRoute",
    hostnames: list[str] | None = None,
    created: str = "2026-01-01T00:00:00Z",
) -> dict[str, Any]:
    """Return a route with these rules."""
    metadata = {"name": name, "namespace": "shop", "creationTimestamp": created}
    return {"kind": kind, "metadata": metadata, "spec": {"hostnames": hostnames or [], "rules": list(rules)}}


def rule(**conditions: Any) -> dict[str, Any]:
    """Return a rule with one match."""
    return {"matches": [conditions]}


def path(kind: str, value: str) -> dict[str, Any]:
    """Return a path match."""
    return {"path": {"type": kind, "value": value}}


def winner(request: HttpRequest | GrpcCall, *routes: dict[str, Any]) -> tuple[str, int] | None:
    """Return name of the route and index of the rule that serves the request."""
    found = match(request, routes)
    return (found.route["metadata"]["name"], found.rule_index) if found else None


@pytest.mark.parametrize(
    ("kind", "value", "request_path", "matches"),
    [
        ("Exact", "/a", "/a", True),
        ("Exact", "/a", "/a/", False),
        ("Exact", "/a", "/A", False),
        ("PathPrefix", "/", "/anything", True),
        ("PathPrefix", "/a", "/a", True),
        ("PathPrefix", "/a", "/a/", True),
        ("PathPrefix", "/a", "/a/b", True),
        ("PathPrefix", "/a", "/ab", False),
        ("PathPrefix", "/a/", "/a", True),
        ("PathPrefix", "/a/", "/ab", False),
        ("RegularExpression", "/v[0-9]+", "/v12", True),
        ("RegularExpression", "/v[0-9]+", "/v12/x", False),
        ("RegularExpression", "/v(?=1)1", "/v1", False),
        ("RegularExpression", "/(a)\\1", "/aa", False),
        ("RegularExpression", "/a++", "/aa", False),
        ("RegularExpression", "/[", "/[", False),
    ],
)
def test_path(kind: str, value: str, request_path: str, *, matches: bool) -> None:
    """A path matches exactly, by path element or as a whole by an RE2 expression."""
    found = winner(HttpRequest(path=request_path), route(rule(**path(kind, value))))

    assert found == (("web", 0) if matches else None)


def test_absent_matches_take_everything() -> None:
    """A rule without matches, and a match without a path, take every path."""
    bare, header_only = route({"backendRefs": []}), route(rule(headers=HEADER_A))

    assert winner(HttpRequest(path="/x"), bare) == ("web", 0)
    assert match(HttpRequest(path="/x"), [bare]).match == {}  # type: ignore[union-attr] # just matched
    assert winner(HttpRequest(path="/x", headers=(("A", "1"),)), header_only) == ("web", 0)
    assert winner(HttpRequest(path="/x"), header_only) is None


def test_header_names_are_compared_without_case() -> None:
    """Header names have no case, values do, and of two entries with one name the later is ignored."""
    wanted = rule(headers=[{"name": "X-Canary", "value": "yes"}, {"name": "x-canary", "value": "no"}])

    assert winner(HttpRequest(headers=(("x-CANARY", "yes"),)), route(wanted)) == ("web", 0)
    assert winner(HttpRequest(headers=(("x-canary", "Yes"),)), route(wanted)) is None
    assert winner(HttpRequest(headers=(("x-canary", "no"),)), route(wanted)) is None


def test_repeated_values() -> None:
    """A repeated header is one comma-separated value; of a repeated query parameter the first counts."""
    header = rule(headers=[{"name": "a", "type": "RegularExpression", "value": "1,2"}])
    query = rule(queryParams=[{"name": "q", "value": "1"}])

    assert winner(HttpRequest(headers=(("a", "1"), ("A", "2"))), route(header)) == ("web", 0)
    assert winner(HttpRequest(query=(("q", "1"), ("q", "2"))), route(query)) == ("web", 0)
    assert winner(HttpRequest(query=(("q", "2"), ("q", "1"))), route(query)) is None
    assert winner(HttpRequest(query=(("Q", "1"),)), route(query)) is None


def test_hostname_precedence() -> None:
    """The hostname with the most characters wins, an exact one before any wildcard, and the port does not count."""
    routes = [
        route({}, name="any"),
        route({}, name="wide", hostnames=["*.example.com"]),
        route({}, name="wider", hostnames=["*.very.long.example.com"]),
        route({}, name="exact", hostnames=["a.example.com", "other.org"]),
    ]

    assert winner(HttpRequest(host="a.example.com:8080"), *routes) == ("exact", 0)
    assert winner(HttpRequest(host="B.Example.com"), *routes) == ("wide", 0)
    assert winner(HttpRequest(host="x.y.example.com"), *routes) == ("wide", 0)
    assert winner(HttpRequest(host="x.very.long.example.com"), *routes) == ("wider", 0)
    assert winner(HttpRequest(host="example.com"), *routes) == ("any", 0)
    assert winner(HttpRequest(host="[::1]:80"), *routes) == ("any", 0)


def test_hostname_beats_path() -> None:
    """A more specific hostname wins over a more specific path on a wildcard."""
    broad = route(rule(**path("Exact", "/a")), name="broad", hostnames=["*.example.com"])
    narrow = route({}, name="narrow", hostnames=["www.example.com"])

    assert winner(HttpRequest(host="www.example.com", path="/a"), broad, narrow) == ("narrow", 0)


def test_path_precedence() -> None:
    """An Exact path beats a longer prefix, a longer prefix beats a shorter, and an expression's place is chosen."""
    paths = [("PathPrefix", "/"), ("RegularExpression", "/a/.*"), ("PathPrefix", "/a/b"), ("Exact", "/a/b")]
    routes = [route(*(rule(**path(*entry)) for entry in paths))]

    assert winner(HttpRequest(path="/a/b"), *routes) == ("web", 3)
    assert winner(HttpRequest(path="/a/b/c"), *routes) == ("web", 2)
    assert winner(HttpRequest(path="/a/x"), *routes) == ("web", 0)
    above = RouteTable(routes, expressions=Expressions.ABOVE_PREFIX).match(HttpRequest(path="/a/b/c"))
    assert above is not None
    assert above.rule_index == 1


def test_condition_precedence() -> None:
    """On equal paths a method beats headers, more headers beat fewer, headers beat query parameters."""
    two_headers = [*HEADER_A, {"name": "b", "value": "1"}]
    rules = [
        rule(),
        rule(queryParams=[{"name": "q", "value": "1"}]),
        rule(headers=HEADER_A),
        rule(headers=two_headers),
        rule(method="GET"),
    ]
    everything = HttpRequest("GET", headers=(("a", "1"), ("b", "1")), query=(("q", "1"),))

    assert winner(everything, route(*rules)) == ("web", 4)
    assert winner(everything, route(*rules[:4])) == ("web", 3)
    assert winner(everything, route(*rules[:3])) == ("web", 2)
    assert winner(everything, route(*rules[:2])) == ("web", 1)
    assert winner(HttpRequest("POST"), route(*rules)) == ("web", 0)


def test_a_longer_path_beats_a_header() -> None:
    """A user's rule with a longer path wins over a header rule: the reason why managed rules follow their source."""
    header, longer = rule(headers=HEADER_A), rule(**path("PathPrefix", "/api"))

    assert winner(HttpRequest(path="/api", headers=(("a", "1"),)), route(header, longer)) == ("web", 1)


def test_ties() -> None:
    """Equal matches go to the older route, then to the smaller name, then to the first rule."""
    old = route({}, {}, name="z", created="2025-01-01T00:00:00Z")
    young = route({}, name="a", created="2026-01-01T00:00:00Z")
    twin = route({}, name="b", created="2026-01-01T00:00:00Z")

    assert winner(HttpRequest(), young, old) == ("z", 0)
    assert winner(HttpRequest(), twin, young) == ("a", 0)


def test_grpc() -> None:
    """A gRPC call goes by service, then method, then metadata; other kinds' routes do not take it."""
    rules = yaml.safe_load("""
    - {}
    - matches: [{method: {service: shop.Cart}}]
    - matches: [{method: {service: shop.Cart, method: Add}}]
    - matches: [{method: {service: shop.Cart, method: Add}, headers: [{name: a, value: "1"}]}]
    - matches: [{method: {type: RegularExpression, service: "shop[.](Cart|Till)"}}]
    """)
    routes = [route(*rules, kind="GRPCRoute"), route({}, name="http")]

    assert winner(GrpcCall("other.Service", "Get"), *routes) == ("web", 0)
    assert winner(GrpcCall("shop.Till", "Get"), *routes) == ("web", 4)
    assert winner(GrpcCall("shop.Cart", "Add"), *routes[:1]) == ("web", 4)  # the expression has more characters
    without_expression = [route(*rules[:4], kind="GRPCRoute")]
    assert winner(GrpcCall("shop.Cart", "Get"), *without_expression) == ("web", 1)
    assert winner(GrpcCall("shop.Cart", "Add"), *without_expression) == ("web", 2)
    assert winner(GrpcCall("shop.Cart", "Add", headers=(("A", "1"),)), *without_expression) == ("web", 3)
    assert winner(GrpcCall("shop.Cart", "Add").as_http(), *routes) == ("http", 0)


def test_kinds_without_matching_are_left_out() -> None:
    """A TCPRoute among the routes takes no HTTP request."""
    assert winner(HttpRequest(), route({}, kind="TCPRoute")) is None


CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "path": st.sampled_from(
            [
                {"type": "Exact", "value": "/a"},
                {"type": "PathPrefix", "value": "/a"},
                {"type": "PathPrefix", "value": "/"},
                {"type": "RegularExpression", "value": "/.*"},
            ]
        ),
        "method": st.sampled_from(["GET", "POST"]),
        "headers": st.sampled_from([[], HEADER_A, [*HEADER_A, {"name": "b", "value": "2"}]]),
        "queryParams": st.sampled_from([[], [{"name": "q", "value": "1"}]]),
    },
)
REQUESTS = st.builds(
    HttpRequest,
    method=st.sampled_from(["GET", "POST"]),
    path=st.sampled_from(["/", "/a", "/a/b"]),
    headers=st.sampled_from([(), (("A", "1"),), (("a", "1"), ("B", "2"))]),
    query=st.sampled_from([(), (("q", "1"),)]),
)


@settings(deadline=None)  # a busy machine is no fault
@given(st.lists(st.lists(CONDITIONS, max_size=3), min_size=1, max_size=5), REQUESTS)
def test_the_winner_ranks_highest(rules: list[list[dict[str, Any]]], request: HttpRequest) -> None:
    """A rule wins if and only if it wins against each other rule alone; the order of rules decides only equal ones."""
    objects = [{"matches": matches} if matches else {} for matches in rules]
    found = match(request, [route(*objects)])

    alone = [index for index, one in enumerate(objects) if match(request, [route(one)])]
    assert (found is None) == (not alone)
    if found:
        for other in alone:
            pair = sorted({found.rule_index, other})
            duel = match(request, [route(*(objects[index] for index in pair))])
            assert duel is not None
            assert pair[duel.rule_index] == found.rule_index
