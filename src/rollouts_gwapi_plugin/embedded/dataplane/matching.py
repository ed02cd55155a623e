"""Which rule serves a request: the precedence rules of the Gateway API over all routes of a listener. Pure.

Takes routes as raw objects and a request, a gRPC call or a connection; returns the winning rule, or None for a 404. Of
all matches that hold, the winner has, in this order:

1. the hostname with the most characters, without a wildcard before with one;
2. HTTP: an Exact path, then the longest PathPrefix, then a regular expression, a method, the most headers, the most
   query parameters. gRPC: the most characters of the service, of the method, the most headers;
3. the older route, the smaller `namespace/name`, the first rule of its route.

TCPRoutes and TLSRoutes have no matches: hostname and age decide.

The place of regular expressions is the implementation's choice; `Expressions` has both that are in use. A route given
twice, or an unusable pattern, is no error: what can't match does not match.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rollouts_gwapi_plugin.embedded.dataplane import patterns
from rollouts_gwapi_plugin.embedded.dataplane.request import Connection, GrpcCall, HttpRequest, Request, hostname
from rollouts_gwapi_plugin.model.base import JsonObject

Rank = tuple[Any, ...]
_Compile = Callable[[JsonObject], tuple[Callable[[Any], bool], Rank]]
_DEFAULT_PATH = {"type": "PathPrefix", "value": "/"}


class Expressions(Enum):
    """Where a regular expression path stands among the others."""

    BELOW_PREFIX = "below"
    ABOVE_PREFIX = "above"  # Envoy Gateway, Contour


@dataclass(frozen=True)
class RuleMatch:
    """The rule that serves a request; `match_index` is -1 where the rule has no matches, and so takes everything."""

    route: JsonObject
    rule_index: int
    match_index: int

    @property
    def rule(self) -> JsonObject:
        """The rule itself."""
        rule: JsonObject = self.route["spec"]["rules"][self.rule_index]
        return rule

    @property
    def match(self) -> JsonObject:
        """The match that held; empty where the rule has none."""
        return {} if self.match_index < 0 else self.rule["matches"][self.match_index]

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Kind, namespace, name and the rule's index."""
        metadata = self.route["metadata"]
        return self.route["kind"], metadata.get("namespace", ""), metadata["name"], self.rule_index


@dataclass(frozen=True)
class _Entry:
    place: RuleMatch
    holds: Callable[[Any], bool]
    rank: Rank
    hostnames: tuple[str, ...]
    order: Rank


def match(request: Request, routes: Iterable[JsonObject]) -> RuleMatch | None:
    """Return the rule that serves the request, None where no route takes it."""
    return RouteTable(routes).match(request)


class RouteTable:
    """Routes prepared for many requests; immutable."""

    def __init__(self, routes: Iterable[JsonObject], *, expressions: Expressions = Expressions.BELOW_PREFIX) -> None:
        self.expressions = expressions
        self._entries: dict[type[Request], list[_Entry]] = {HttpRequest: [], GrpcCall: [], Connection: []}
        for route in routes:
            self._add(route)

    def match(self, request: Request) -> RuleMatch | None:
        """Return the rule that serves the request, None where no route takes it."""
        name = hostname(request.host)
        best: tuple[Rank, _Entry] | None = None
        for entry in self._entries[type(request)]:
            host_rank = _hostname_rank(entry.hostnames, name)
            if host_rank is None or not entry.holds(request):
                continue
            rank = (host_rank, *entry.rank)
            if best is None or rank > best[0] or (rank == best[0] and entry.order < best[1].order):
                best = (rank, entry)
        return best[1].place if best else None

    def _add(self, route: JsonObject) -> None:
        kinds: dict[str, tuple[type[Request], _Compile]] = {
            "HTTPRoute": (HttpRequest, self._http),
            "GRPCRoute": (GrpcCall, self._grpc),
            "TCPRoute": (Connection, _every_connection),
            "TLSRoute": (Connection, _every_connection),
        }
        if route["kind"] not in kinds:
            return
        request_type, compile_match = kinds[route["kind"]]
        metadata, spec = route["metadata"], route.get("spec") or {}
        names = tuple(spec.get("hostnames") or ())
        age = metadata.get("creationTimestamp") or ""
        for rule_index, match_index, raw in _matches(spec):
            holds, rank = compile_match(raw)
            order = (age, f"{metadata.get('namespace', '')}/{metadata['name']}", rule_index)
            place = RuleMatch(route, rule_index, match_index)
            self._entries[request_type].append(_Entry(place, holds, rank, names, order))

    def _http(self, raw: JsonObject) -> tuple[Callable[[HttpRequest], bool], Rank]:
        path = raw.get("path") or _DEFAULT_PATH
        kind, value = path.get("type", "PathPrefix"), path.get("value", "/")
        method = raw.get("method") or ""
        headers, queries = raw.get("headers") or [], raw.get("queryParams") or []

        def holds(request: HttpRequest) -> bool:
            return (
                _path_matches(kind, value, request.path)
                and method in {"", request.method}
                and _all_match(_first_by_name(headers), request.header_values)
                and _all_match([(query["name"], query) for query in queries], request.query_values)
            )

        path_rank = _path_rank(kind, value, self.expressions)
        return holds, (path_rank, bool(method), len(headers), len(queries))

    @staticmethod
    def _grpc(raw: JsonObject) -> tuple[Callable[[GrpcCall], bool], Rank]:
        method = raw.get("method") or {}
        kind, service, name = method.get("type", "Exact"), method.get("service") or "", method.get("method") or ""
        headers = raw.get("headers") or []

        def holds(request: GrpcCall) -> bool:
            return (
                (not service or patterns.value_matches(kind, service, request.service))
                and (not name or patterns.value_matches(kind, name, request.method))
                and _all_match(_first_by_name(headers), request.header_values)
            )

        return holds, (len(service), len(name), len(headers))


def _every_connection(raw: JsonObject) -> tuple[Callable[[Connection], bool], Rank]:
    del raw
    return lambda _: True, ()


def _matches(spec: JsonObject) -> Iterator[tuple[int, int, JsonObject]]:
    for rule_index, rule in enumerate(spec.get("rules") or []):
        matches = rule.get("matches") or []
        if not matches:
            yield rule_index, -1, {}
        for match_index, raw in enumerate(matches):
            yield rule_index, match_index, raw


def _hostname_rank(patterns_of_route: tuple[str, ...], name: str) -> tuple[int, int] | None:
    """Return the rank of the best hostname that matches, None for none; a route without hostnames takes all."""
    if not patterns_of_route:
        return (0, 0)
    ranks = [
        (0 if pattern.startswith("*") else len(pattern), len(pattern))
        for pattern in patterns_of_route
        if patterns.hostname_matches(pattern, name)
    ]
    return max(ranks, default=None)


def _path_matches(kind: str, value: str, path: str) -> bool:
    if kind == "PathPrefix":
        return patterns.prefix_matches(value, path)
    return patterns.value_matches(kind, value, path)


def _path_rank(kind: str, value: str, expressions: Expressions) -> tuple[int, int]:
    if kind == "Exact":
        return (3, len(value))
    if kind == "PathPrefix":
        return (1, len(value.rstrip("/")))
    return (2 if expressions is Expressions.ABOVE_PREFIX else 0, len(value))


def _first_by_name(headers: list[JsonObject]) -> list[tuple[str, JsonObject]]:
    """Of names that are equal without case only the first entry counts (HTTPHeaderMatch.name)."""
    first: dict[str, JsonObject] = {}
    for header in headers:
        first.setdefault(header["name"].lower(), header)
    return list(first.items())


def _all_match(wanted: list[tuple[str, JsonObject]], values: dict[str, str]) -> bool:
    return all(
        name in values and patterns.value_matches(entry.get("type", "Exact"), entry.get("value", ""), values[name])
        for name, entry in wanted
    )
