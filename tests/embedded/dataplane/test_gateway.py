"""The reference Gateway on the embedded API: what is written there happens to real requests, and status comes back."""

import http.client
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import yaml

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.backends import EchoBackend
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import ENDPOINTS_ANNOTATION, Endpoints, Pod
from rollouts_gwapi_plugin.embedded.dataplane.gateway import ReferenceGateway
from rollouts_gwapi_plugin.embedded.dataplane.watching import ApiConnection
from rollouts_gwapi_plugin.errors import Unavailable

GATEWAY, ROUTE, *SERVICES = yaml.safe_load_all("""
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {gatewayClassName: reference, listeners: [{name: http, protocol: HTTP, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  rules: [{backendRefs: [{name: stable, port: 80, weight: 100}, {name: canary, port: 80, weight: 0}]}]
---
apiVersion: v1
kind: Service
metadata: {name: stable, namespace: shop}
spec: {ports: [{port: 80}], selector: {version: v1}}
---
apiVersion: v1
kind: Service
metadata: {name: canary, namespace: shop}
spec: {ports: [{port: 80}], selector: {version: v2}}
""")
Until = Callable[[Callable[[], object]], None]


class Setup:
    """An API with the objects above, two backends, and the Gateway."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.api = stack.enter_context(ApiServer())
        self.api.load([ROUTE, *SERVICES])
        self.backends = [stack.enter_context(EchoBackend(name)) for name in ("v1", "v2")]
        pods = [Pod("shop", {"version": backend.name}, backend.address) for backend in self.backends]
        self.endpoints = Endpoints(pods)
        connection = ApiConnection(self.api.url)
        stack.callback(connection.close)
        self.gateway = stack.enter_context(ReferenceGateway(connection, GATEWAY, self.endpoints))
        self.client = http.client.HTTPConnection("127.0.0.1", int(self.gateway.url().rpartition(":")[2]), timeout=10)
        stack.callback(self.client.close)

    def ask(self) -> tuple[int, str]:
        """Return status and backend of an answer."""
        self.client.request("GET", "/")
        answer = self.client.getresponse()
        answer.read()
        return answer.status, answer.headers.get("x-backend", "")

    def route(self) -> Any:
        """Return the route as it is on the API."""
        return self.api.read("HTTPRoute", "shop", "web")

    def change(self, **backend_weights: int) -> int:
        """Set weights on the API; return the generation."""
        route = self.route()
        for ref in route["spec"]["rules"][0]["backendRefs"]:
            ref["weight"] = backend_weights[ref["name"]]
        generation: int = self.api.update(route)["metadata"]["generation"]
        return generation


@pytest.fixture
def setup() -> Iterator[Setup]:
    """Return a running setup."""
    with ExitStack() as stack:
        yield Setup(stack)


def conditions(route: Any) -> dict[str, tuple[str, int]]:
    """Return status and observed generation by condition of the only parent."""
    (parent,) = route["status"]["parents"]
    return {one["type"]: (one["status"], one["observedGeneration"]) for one in parent["conditions"]}


def test_weights_follow_the_api(setup: Setup) -> None:
    """A weight on the API is a share of the requests as soon as the generation is in effect."""
    assert [setup.ask() for _ in range(5)] == [(200, "v1")] * 5
    generation = setup.change(stable=80, canary=20)
    setup.gateway.wait_for("HTTPRoute", "shop", "web", generation, 10)

    assert Counter(setup.ask() for _ in range(50)) == {(200, "v1"): 40, (200, "v2"): 10}


def test_status_follows_the_generation(setup: Setup, until: Until) -> None:
    """Accepted and ResolvedRefs come with the generation in effect, which also bumps the resourceVersion."""
    until(lambda: setup.route().get("status"))
    assert conditions(setup.route()) == {"Accepted": ("True", 1), "ResolvedRefs": ("True", 1)}
    before = setup.route()["metadata"]["resourceVersion"]
    generation = setup.change(stable=1, canary=1)
    until(lambda: conditions(setup.route())["Accepted"] == ("True", generation))

    assert generation == 2
    assert int(setup.route()["metadata"]["resourceVersion"]) == int(before) + 2


def test_a_missing_service(setup: Setup, until: Until) -> None:
    """A backendRef to a Service that is gone gets 500 and turns ResolvedRefs to False; when it is back, all is well."""
    setup.api.delete("Service", "shop", "stable")
    until(lambda: conditions(setup.route())["ResolvedRefs"][0] == "False")
    assert setup.ask()[0] == 500

    setup.api.create(SERVICES[0])
    until(lambda: setup.ask() == (200, "v1"))


def test_endpoints(setup: Setup, until: Until) -> None:
    """A selector without ready pods is 503; another selector, or an annotation, moves the traffic."""
    service = setup.api.read("Service", "shop", "stable")
    service["spec"]["selector"] = {"version": "v2"}
    version = int(setup.api.update(service)["metadata"]["resourceVersion"])
    setup.gateway.wait_for("Service", "shop", "stable", version, 10)
    assert setup.ask() == (200, "v2")

    setup.endpoints.replace([])
    assert setup.ask()[0] == 503
    service = setup.api.read("Service", "shop", "stable")
    service["metadata"]["annotations"] = {ENDPOINTS_ANNOTATION: "{}:{}".format(*setup.backends[0].address)}
    setup.api.update(service)
    until(lambda: setup.ask() == (200, "v1"))


def test_a_route_that_is_deleted(setup: Setup, until: Until) -> None:
    """Without a route the answer is 404."""
    setup.api.delete("HTTPRoute", "shop", "web")

    until(lambda: setup.ask() == (404, ""))


def test_a_slow_and_silent_gateway(setup: Setup) -> None:
    """With a lag the change is not yet in effect, and without status nothing is written."""
    setup.gateway.writes_status = False
    setup.gateway.lag = 30.0
    status = setup.route().get("status")
    generation = setup.change(stable=0, canary=100)

    with pytest.raises(Unavailable, match="generation 1 in effect, 2 wanted"):
        setup.gateway.wait_for("HTTPRoute", "shop", "web", generation, 0.2)
    assert setup.ask() == (200, "v1")
    assert setup.route().get("status") == status


def test_unusable_objects_change_nothing(setup: Setup, until: Until) -> None:
    """A route without the shape of one leaves the last configuration, and the next good one is taken."""
    spec = {"parentRefs": [{"name": "edge"}], "rules": [{"matches": 7}]}
    setup.api.create({**ROUTE, "metadata": {"name": "odd", "namespace": "shop"}, "spec": spec})
    generation = setup.change(stable=0, canary=100)
    with pytest.raises(Unavailable):
        setup.gateway.wait_for("HTTPRoute", "shop", "web", generation, 0.2)
    assert setup.ask() == (200, "v1")
    setup.api.delete("HTTPRoute", "shop", "odd")

    until(lambda: setup.ask() == (200, "v2"))


def test_watches_survive_lost_connections(setup: Setup, until: Until) -> None:
    """When a watch breaks, the objects are listed again and nothing is missed."""
    setup.gateway._followers["httproutes"]._stream.shutdown()  # type: ignore[union-attr] # it is open
    generation = setup.change(stable=0, canary=100)
    setup.gateway.wait_for("HTTPRoute", "shop", "web", generation, 10)

    until(lambda: setup.ask() == (200, "v2"))


def test_no_api() -> None:
    """Without an API server the Gateway does not start, and says which one it asked."""
    gateway = ReferenceGateway(ApiConnection("http://127.0.0.1:1"), GATEWAY, Endpoints())

    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        gateway.__enter__()


LISTENERS = yaml.safe_load("""
- {name: web, protocol: HTTP, port: 80}
- {name: calls, protocol: HTTP, port: 9000, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}
- {name: raw, protocol: TCP, port: 8088}
- {name: secret, protocol: TLS, port: 443, tls: {mode: Passthrough}}
- {name: datagrams, protocol: UDP, port: 53}
""")


def test_listeners_of_all_protocols() -> None:
    """Each listener but UDP's has an address whose scheme says how it is spoken to; without a name it is the first."""
    gateway = {**GATEWAY, "spec": {**GATEWAY["spec"], "listeners": LISTENERS}}
    with ExitStack() as stack:
        api = stack.enter_context(ApiServer())
        connection = ApiConnection(api.url)
        stack.callback(connection.close)
        running = stack.enter_context(ReferenceGateway(connection, gateway, Endpoints()))
        schemes = {name: running.url(name).partition(":")[0] for name in ("web", "calls", "raw", "secret")}
        first = running.url() == running.url("web")
        with pytest.raises(KeyError):
            running.url("datagrams")

    assert schemes == {"web": "http", "calls": "grpc", "raw": "tcp", "secret": "tls"}
    assert first


def test_ports_of_a_service_lead_to_container_ports(setup: Setup) -> None:
    """The port of the backendRef decides which of the pod's servers gets the request."""
    with EchoBackend("admin") as admin:
        pods = [
            Pod("shop", {"version": backend.name}, backend.address, ports={"admin": admin.address})
            for backend in setup.backends
        ]
        setup.endpoints.replace(pods)
        setup.api.edit(
            "Service",
            "shop",
            "stable",
            lambda service: service["spec"]["ports"].append({"name": "x", "port": 81, "targetPort": "admin"}),
        )
        answers = []
        for port in (80, 81):
            route = setup.route()
            route["spec"]["rules"][0]["backendRefs"] = [{"name": "stable", "port": port}]
            generation = setup.api.update(route)["metadata"]["generation"]
            setup.gateway.wait_for("HTTPRoute", "shop", "web", generation, 10)
            answers.append(setup.ask())

    assert answers == [(200, "v1"), (200, "admin")]
