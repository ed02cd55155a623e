"""What becomes of a request: the backend, the mirrors, or the data plane's own answer."""

from collections import Counter
from typing import Any

import pytest
import yaml

from rollouts_gwapi_plugin.embedded.dataplane.dealing import Dealer
from rollouts_gwapi_plugin.embedded.dataplane.decision import Configuration, Forward, OwnAnswer, decide
from rollouts_gwapi_plugin.embedded.dataplane.matching import RouteTable
from rollouts_gwapi_plugin.embedded.dataplane.references import References, ServicePort
from rollouts_gwapi_plugin.embedded.dataplane.request import GrpcCall, HttpRequest

SERVICES = [
    {"metadata": {"namespace": "shop", "name": name}, "spec": {"ports": [{"port": 80}]}}
    for name in ("stable", "canary")
]


def configuration(rule: str, kind: str = "HTTPRoute", grants: tuple[dict[str, Any], ...] = ()) -> Configuration:
    """Return the configuration of one route with one rule, in YAML."""
    route = {
        "kind": kind,
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"rules": [yaml.safe_load(rule)]},
    }
    other = {"metadata": {"namespace": "other", "name": "far"}, "spec": {"ports": [{"port": 80}]}}
    return Configuration(RouteTable([route]), References([*SERVICES, other], grants), port=8080)


def forwards(rule: str, count: int, request: HttpRequest | GrpcCall | None = None, **kwargs: Any) -> list[Forward]:
    """Return the decisions on as many requests, all of them forwards."""
    config, dealer = configuration(rule, **kwargs), Dealer()
    decisions = [decide(request or HttpRequest(), config, dealer) for _ in range(count)]
    assert all(isinstance(decision, Forward) for decision in decisions)
    return [decision for decision in decisions if isinstance(decision, Forward)]


def answer(rule: str, **kwargs: Any) -> tuple[int, str]:
    """Return status and reason of the data plane's own answer."""
    decision = decide(HttpRequest(), configuration(rule, **kwargs), Dealer())
    assert isinstance(decision, OwnAnswer)
    return decision.status, decision.reason


@pytest.mark.parametrize(("kind", "request_"), [("HTTPRoute", HttpRequest()), ("GRPCRoute", GrpcCall("s", "m"))])
def test_weights_share_requests(kind: str, request_: HttpRequest | GrpcCall) -> None:
    """Backends get the share of their weight; an absent weight is 1 and a zero gets nothing."""
    rule = "backendRefs: [{name: stable, port: 80, weight: 4}, {name: canary, port: 80}]"
    shares = Counter(one.target.name for one in forwards(rule, 100, request_, kind=kind))
    zero = forwards("backendRefs: [{name: stable, port: 80, weight: 0}, {name: canary, port: 80}]", 10)

    assert shares == {"stable": 80, "canary": 20}
    assert {one.target for one in zero} == {ServicePort("shop", "canary", 80)}


@pytest.mark.parametrize(
    ("rule", "status", "reason"),
    [
        ("backendRefs: [{name: stable, port: 80, weight: 0}]", 500, "no backend has a weight above zero"),
        ("{}", 500, "no backend has a weight above zero"),
        ("backendRefs: [{name: gone, port: 80}]", 500, "BackendNotFound: Service shop/gone not found"),
        ("backendRefs: [{name: stable, port: 81}]", 500, "BackendNotFound: Service shop/stable has no port 81"),
        (
            "backendRefs: [{name: x, kind: Bucket, group: storage, port: 1}]",
            500,
            "InvalidKind: Bucket of group 'storage' is no backend here; only Services are",
        ),
        (
            "backendRefs: [{name: far, namespace: other, port: 80}]",
            500,
            "RefNotPermitted: no ReferenceGrant in other allows other/far:80",
        ),
        (
            """
            filters: [{type: RequestMirror, requestMirror: {percent: 0, backendRef: {name: gone, port: 80}}}]
            backendRefs: [{name: stable, port: 80}]
            """,
            500,
            "BackendNotFound: Service shop/gone not found",
        ),
        (
            "{filters: [{type: ExtensionRef}], backendRefs: [{name: stable, port: 80}]}",
            500,
            "filter ExtensionRef is not supported",
        ),
        (
            "backendRefs: [{name: stable, port: 80, filters: [{type: CORS}]}]",
            500,
            "filter CORS is not supported",
        ),
        ("matches: [{path: {type: Exact, value: /other}}]", 404, "no route matches"),
    ],
)
def test_own_answers(rule: str, status: int, reason: str) -> None:
    """What can't be routed is answered with the status that the Gateway API, or Envoy, gives it."""
    assert answer(rule) == (status, reason)


def test_an_invalid_reference_fails_its_share_only() -> None:
    """A missing Service with a fifth of the weight fails a fifth of the requests; with weight 0 none."""
    rule = "backendRefs: [{name: stable, port: 80, weight: 80}, {name: gone, port: 80, weight: %d}]"
    config, dealer = configuration(rule % 20), Dealer()
    answers = Counter(type(decide(HttpRequest(), config, dealer)) for _ in range(100))

    assert answers == {Forward: 80, OwnAnswer: 20}
    assert len(forwards(rule % 0, 10)) == 10


@pytest.mark.parametrize(
    ("entry", "permitted"),
    [
        ({"group": "", "kind": "Service"}, True),
        ({"kind": "Service", "name": "far"}, True),
        ({"kind": "Service", "name": "x"}, False),
    ],
)
def test_reference_grants(entry: dict[str, str], *, permitted: bool) -> None:
    """A grant in the Service's namespace for the route's kind and namespace permits the reference."""
    source = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "shop"}
    grant = {"metadata": {"namespace": "other"}, "spec": {"from": [source], "to": [entry]}}
    rule = "backendRefs: [{name: far, namespace: other, port: 80}]"
    decision = decide(HttpRequest(), configuration(rule, grants=(grant,)), Dealer())

    assert isinstance(decision, Forward) == permitted


@pytest.mark.parametrize(
    ("share", "expected"),
    [("", 400), ("percent: 25,", 100), ("percent: 0,", 0), ("fraction: {numerator: 1, denominator: 200},", 2)],
)
def test_mirror_share(share: str, expected: int) -> None:
    """A mirror gets its percent or fraction of the requests, all without either, and the main traffic is untouched."""
    found = forwards(
        f"""
        filters: [{{type: RequestMirror, requestMirror: {{{share} backendRef: {{name: canary, port: 80}}}}}}]
        backendRefs: [{{name: stable, port: 80}}]
        """,
        400,
    )

    assert {one.target.name for one in found} == {"stable"}
    assert sum(len(one.mirrors) for one in found) == expected


def test_filters_of_rule_and_backend_apply() -> None:
    """Header filters of the rule and of the chosen backend both change the request; response filters are handed on."""
    rule = """
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: x-rule, value: "1"}]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {remove: [server]}}
    backendRefs:
    - name: stable
      port: 80
      filters: [{type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: x-backend, value: "2"}]}}]
    """
    (found,) = forwards(rule, 1)

    assert isinstance(found.request, HttpRequest)
    assert found.request.headers == (("x-rule", "1"), ("x-backend", "2"))
    assert [entry["type"] for entry in found.response_filters] == ["ResponseHeaderModifier"]


def test_redirect_answers() -> None:
    """A redirect is answered with its status and Location, without a backend."""
    rule = "filters: [{type: RequestRedirect, requestRedirect: {hostname: new.example, statusCode: 301}}]"

    assert decide(HttpRequest(path="/a"), configuration(rule), Dealer()) == OwnAnswer(
        301, "redirect", (("location", "http://new.example:8080/a"),)
    )
