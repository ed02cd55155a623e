"""Routes and Rollouts that look like those of users, for hypothesis: of every kind, with fields that nobody knows yet.

A route has rules with the pair (Services `s` and `c`), with one of the two, with neither, and without backends; pairs
with other backends beside them, several ports, weights or none; filters, timeouts and invented fields on every level.
"""

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

Json = dict[str, Any]
KINDS: Final = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute")
L7_KINDS: Final = ("HTTPRoute", "GRPCRoute")
HEADERS: Final = ("X-A", "x-b", "X-C")
VALUES: Final = ("1", "2")
PATHS: Final = ("/", "/a", "/a/b", "/b")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
# Names of fields of the future, some of them as Python would spell ours.
unknown_fields = st.dictionaries(
    st.sampled_from(["futureField", "retry", "sessionPersistence", "model_config", "x-y"]),
    json_values,
    max_size=2,
)


def with_unknown(base: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """Add invented fields to objects."""
    return st.builds(lambda value, extra: {**extra, **value}, base, unknown_fields)


@st.composite
def backends(draw: st.DrawFn, names: Sequence[str]) -> list[Json]:
    """Draw the backends of a rule: each of the names once or twice, on different ports, weights absent or not."""
    refs: list[Json] = []
    for name in names:
        for port in draw(st.sampled_from([(80,), (80,), (8080,), (80, 8443)])):
            ref: Json = {"name": name, "port": port}
            weight = draw(st.none() | st.integers(0, 100))
            if weight is not None:
                ref["weight"] = weight
            if draw(st.booleans()):
                ref |= {"group": "", "kind": "Service"}
            refs.append({**draw(unknown_fields), **ref})
    return draw(st.permutations(refs))


@st.composite
def header_matches(draw: st.DrawFn) -> list[Json]:
    """Draw the header part of a match: names that differ also without case."""
    names = draw(st.lists(st.sampled_from(HEADERS), unique=True, max_size=2))
    return [
        {"type": draw(st.sampled_from(["Exact", "RegularExpression"])), "name": name, "value": draw(values)}
        for name in names
        for values in [st.sampled_from(VALUES)]
    ]


@st.composite
def http_matches(draw: st.DrawFn) -> Json:
    """Draw one match of an HTTPRoute."""
    match: Json = {}
    if draw(st.booleans()):
        type_ = draw(st.sampled_from(["PathPrefix", "Exact", "RegularExpression"]))
        match["path"] = {"type": type_, "value": draw(st.sampled_from(PATHS))}
    if draw(st.booleans()):
        match["method"] = draw(st.sampled_from(["GET", "POST"]))
    if headers := draw(header_matches()):
        match["headers"] = headers
    if draw(st.integers(0, 3)) == 0:
        match["queryParams"] = [{"type": "Exact", "name": "q", "value": draw(st.sampled_from(VALUES))}]
    return match


@st.composite
def grpc_matches(draw: st.DrawFn) -> Json:
    """Draw one match of a GRPCRoute."""
    match: Json = {}
    if draw(st.booleans()):
        method = {"service": "shop.Cart"} if draw(st.booleans()) else {}
        match["method"] = {"type": "Exact", **method, "method": draw(st.sampled_from(["Get", "Put"]))}
    if headers := draw(header_matches()):
        match["headers"] = headers
    return match


http_filters = st.sampled_from(
    [
        {"type": "RequestHeaderModifier", "requestHeaderModifier": {"add": [{"name": "a", "value": "b"}]}},
        {"type": "URLRewrite", "urlRewrite": {"hostname": "elsewhere.example"}},
        {"type": "CORS", "cors": {"allowOrigins": ["*"]}},
        {"type": "ExtensionRef", "extensionRef": {"group": "example.com", "kind": "Limit", "name": "l"}},
        {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "audit", "port": 80}}},
        {"type": "OfTheFuture", "ofTheFuture": {"level": 3}},
    ]
)
grpc_filters = st.sampled_from(
    [
        {"type": "RequestHeaderModifier", "requestHeaderModifier": {"add": [{"name": "a", "value": "b"}]}},
        {"type": "ExtensionRef", "extensionRef": {"group": "example.com", "kind": "Limit", "name": "l"}},
    ]
)
_MATCHES = {"HTTPRoute": http_matches(), "GRPCRoute": grpc_matches()}
_FILTERS = {"HTTPRoute": http_filters, "GRPCRoute": grpc_filters}
BACKEND_NAMES: Final = (("s", "c"), ("s", "c", "x"), ("x", "s", "y", "c"), ("s",), ("c",), ("x",), ("x", "y"), ())


@st.composite
def rules(draw: st.DrawFn, kind: str, names: Sequence[str]) -> Json:
    """Draw a rule of a kind with these backends."""
    rule: Json = {}
    without: bool = draw(st.booleans())
    if names or not without:
        rule["backendRefs"] = draw(backends(names))
    if kind in _MATCHES:
        matches = draw(st.lists(_MATCHES[kind], max_size=2))
        if matches or not without:
            rule["matches"] = matches
        filters = draw(st.lists(_FILTERS[kind], max_size=2, unique_by=lambda item: str(item["type"])))
        if filters:
            rule["filters"] = filters
        if draw(st.booleans()):
            rule["timeouts"] = {"request": "10s"}
    return {**draw(unknown_fields), **rule}


@st.composite
def routes(draw: st.DrawFn, *kinds: str) -> Json:
    """Draw a route of one of the kinds (without any: of every kind) that has at least one rule with the pair."""
    kind = draw(st.sampled_from(kinds or KINDS))
    drawn = [draw(rules(kind, names)) for names in draw(st.lists(st.sampled_from(BACKEND_NAMES), max_size=4))]
    drawn.insert(draw(st.integers(0, len(drawn))), draw(rules(kind, draw(st.sampled_from(BACKEND_NAMES[:3])))))
    for index, rule in enumerate(drawn):
        if draw(st.booleans()):
            rule["name"] = f"rule-{index}"
    metadata: Json = {"name": "web", "namespace": "shop", "generation": 1}
    for field in ("labels", "annotations"):
        if draw(st.booleans()):
            metadata[field] = draw(st.dictionaries(st.sampled_from(["app", "team"]), st.text(max_size=3), max_size=2))
    spec = {**draw(unknown_fields), "parentRefs": [{"name": "gw"}], "rules": drawn}
    return {
        **draw(unknown_fields),
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": kind,
        "metadata": {**draw(unknown_fields), **metadata},
        "spec": spec,
    }


@st.composite
def header_steps(draw: st.DrawFn, name: str) -> Json:
    """Draw the body of a setHeaderRoute step."""
    entries = draw(st.lists(st.tuples(st.sampled_from(HEADERS), st.sampled_from(VALUES)), min_size=1, max_size=2))
    kinds = st.sampled_from(["exact", "exact", "prefix", "regex"])
    return {"name": name, "match": [{"headerName": key, "headerValue": {draw(kinds): value}} for key, value in entries]}


@st.composite
def mirror_steps(draw: st.DrawFn, name: str, kind: str) -> Json:
    """Draw the body of a setMirrorRoute step that the kind can take."""
    names = draw(st.lists(st.sampled_from(HEADERS), unique=True, max_size=2))
    entry: Json = {"headers": {header: {"exact": draw(st.sampled_from(VALUES))} for header in names}}
    if kind == "HTTPRoute" and draw(st.booleans()):
        entry["method"] = {"exact": draw(st.sampled_from(["GET", "POST"]))}
    if kind == "HTTPRoute" and draw(st.booleans()):
        entry["path"] = {draw(st.sampled_from(["prefix", "exact"])): draw(st.sampled_from(PATHS))}
    return {"name": name, "match": [entry], "percentage": draw(st.sampled_from([None, 1, 30, 100]))}


weights = st.integers(0, 100)
steps = st.one_of(
    st.builds(lambda weight: {"setWeight": weight}, weights),
    st.just({"pause": {}}),
    st.just({"setCanaryScale": {"matchTrafficWeight": False}}),
    st.just({"experiment": {"templates": [{"name": "base", "specRef": "stable", "weight": 5}]}}),
    st.builds(lambda body: {"setHeaderRoute": body}, header_steps("h")),
    st.just({"setHeaderRoute": {"name": "h"}}),
    st.builds(lambda body: {"setMirrorRoute": body}, mirror_steps("m", "HTTPRoute")),
)


@st.composite
def rollouts(draw: st.DrawFn) -> Json:
    """Draw a Rollout as the controller holds it."""
    canary: Json = {"steps": draw(st.lists(steps, max_size=4))}
    if draw(st.booleans()):
        canary |= {"stableService": "s", "canaryService": "c"}
    if draw(st.booleans()):
        canary["pingPong"] = {"pingService": "ping", "pongService": "pong"}
    routing = {
        "managedRoutes": [{"name": name} for name in draw(st.lists(st.sampled_from(["h", "m"]), unique=True))],
        "maxTrafficWeight": draw(st.sampled_from([None, 1000])),
        "plugins": {"argoproj-labs/gatewayAPI": {"httpRoute": "web"}},
    }
    canary_status: Json = {"stablePingPong": draw(st.sampled_from(["", "ping", "pong"]))}
    if draw(st.booleans()):
        additional = [{"serviceName": "b", "podTemplateHash": "x", "weight": draw(weights)}]
        canary_status |= {"currentExperiment": "web-1", "weights": {"additional": additional}}
    return {
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "u",
            "generation": draw(st.integers(0, 3)),
            "resourceVersion": "7",
            "annotations": draw(st.sampled_from([{}, {"rollout.argoproj.io/revision": "2"}])),
        },
        "spec": {"strategy": {"canary": {**canary, "trafficRouting": routing}}},
        "status": {
            "abort": draw(st.booleans()),
            "promoteFull": draw(st.booleans()),
            "stableRS": draw(st.sampled_from(["", "a"])),
            "currentPodHash": draw(st.sampled_from(["", "a", "b"])),
            "currentStepIndex": draw(st.integers(0, 5)),
            "canary": canary_status,
        },
    }
