"""A VirtualGateway in the place of the Gateway: RouteTables and MirrorPolicies on the API happen to real requests."""

import http.client
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import yaml

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.backends import EchoBackend
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Endpoints, Pod
from rollouts_gwapi_plugin.embedded.dataplane.gateway import ReferenceGateway
from rollouts_gwapi_plugin.embedded.dataplane.watching import ApiConnection

GATEWAY, TABLE, POLICY, *SERVICES = yaml.safe_load_all("""
apiVersion: networking.gloo.solo.io/v2
kind: VirtualGateway
metadata: {name: edge, namespace: gateways}
spec:
  workloads: [{selector: {labels: {istio: ingressgateway}}}]
  listeners: [{http: {}, port: {number: 80}}]
---
apiVersion: networking.gloo.solo.io/v2
kind: RouteTable
metadata: {name: web, namespace: shop}
spec:
  hosts: ["*"]
  virtualGateways: [{name: edge, namespace: gateways}]
  http:
    - name: main
      labels: {route: main}
      matchers: [{uri: {prefix: /}}]
      forwardTo: {destinations: [{ref: {name: stable}, port: {number: 80}}]}
---
apiVersion: trafficcontrol.policy.gloo.solo.io/v2
kind: MirrorPolicy
metadata: {name: shadow, namespace: shop}
spec:
  applyToRoutes: [{route: {labels: {route: main}}}]
  config: {destination: {ref: {name: canary}, port: {name: http}}, percentage: 40}
---
apiVersion: v1
kind: Service
metadata: {name: stable, namespace: shop}
spec: {ports: [{name: http, port: 80}], selector: {version: v1}}
---
apiVersion: v1
kind: Service
metadata: {name: canary, namespace: shop}
spec: {ports: [{name: http, port: 80}], selector: {version: v2}}
""")
CANARY = {"ref": {"name": "canary"}, "port": {"name": "http"}}
Until = Callable[[Callable[[], object]], None]


class Setup:
    """An API with the RouteTable and the Services above, two backends, and the gateway."""

    def __init__(self, stack: ExitStack) -> None:
        self.api = stack.enter_context(ApiServer())
        self.api.load([TABLE, *SERVICES])
        self.backends = {name: stack.enter_context(EchoBackend(name)) for name in ("v1", "v2")}
        pods = [Pod("shop", {"version": name}, backend.address) for name, backend in self.backends.items()]
        connection = ApiConnection(self.api.url)
        stack.callback(connection.close)
        self.gateway = stack.enter_context(ReferenceGateway(connection, GATEWAY, Endpoints(pods)))
        port = int(self.gateway.url("port-80").rpartition(":")[2])
        self.client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        stack.callback(self.client.close)

    def ask(self, **headers: str) -> tuple[int, str]:
        """Return status and backend of an answer."""
        self.client.request("GET", "/", headers=headers)
        answer = self.client.getresponse()
        answer.read()
        return answer.status, answer.headers.get("x-backend", "")

    def table(self) -> Any:
        """Return the RouteTable as it is on the API."""
        return self.api.read("RouteTable", "shop", "web")

    def change(self, change: Callable[[list[Any]], object]) -> int:
        """Change the routes on the API, and wait until that is in effect; return the generation."""
        table = self.table()
        change(table["spec"]["http"])
        generation: int = self.api.update(table)["metadata"]["generation"]
        self.gateway.wait_for("RouteTable", "shop", "web", generation, 10)
        return generation

    def weigh(self, stable: int, canary: int) -> int:
        """Set the weights of both destinations."""
        destinations = [
            {"ref": {"name": "stable"}, "port": {"number": 80}, "weight": stable},
            {**CANARY, "weight": canary},
        ]
        return self.change(lambda routes: routes[0]["forwardTo"].update(destinations=destinations))


@pytest.fixture
def setup() -> Iterator[Setup]:
    """Return a running setup."""
    with ExitStack() as stack:
        yield Setup(stack)


def state(setup: Setup) -> Any:
    """Return what the gateway says of the RouteTable."""
    return ((setup.table().get("status") or {}).get("common") or {}).get("State") or {}


def test_weights_follow_the_api(setup: Setup, until: Until) -> None:
    """A destination without weight has what is left; weights are shares as soon as the generation is in effect."""
    assert [setup.ask() for _ in range(5)] == [(200, "v1")] * 5
    generation = setup.weigh(80, 20)

    assert Counter(setup.ask() for _ in range(50)) == {(200, "v1"): 40, (200, "v2"): 10}
    until(lambda: state(setup).get("observedGeneration") == generation)
    assert state(setup)["approval"] == "ACCEPTED"


@pytest.mark.parametrize(("stable", "canary"), [(100, 0), (60, 30), (60, 50)])
def test_weights_that_gloo_refuses(setup: Setup, until: Until, stable: int, canary: int) -> None:
    """A zero beside a full 100, and any other sum, is answered with 500; the RouteTable is INVALID, with the reason."""
    generation = setup.weigh(stable, canary)

    assert setup.ask() == (500, "")
    until(lambda: state(setup).get("observedGeneration") == generation)
    assert state(setup)["approval"] == "INVALID"
    assert f"route main: the weights [{stable}, {canary}] of 2 destinations" in state(setup)["message"]


def test_a_header_route_stands_before(setup: Setup) -> None:
    """The first route whose matcher holds wins; of alternatives any one, and of a matcher's headers all."""
    added = {"matchers": [{"headers": [{"name": "X-Tester", "value": "yes"}]}], "forwardTo": {"destinations": [CANARY]}}
    setup.change(lambda routes: routes.insert(0, added))
    assert [setup.ask(), setup.ask(**{"x-tester": "yes"}), setup.ask(**{"X-Tester": "no"})] == [
        (200, "v1"), (200, "v2"), (200, "v1")
    ]  # fmt: skip

    # What the proof-of-concept plugin writes: the header beside the route's own matcher.
    setup.change(lambda routes: routes[0]["matchers"].append({"uri": {"prefix": "/"}}))
    assert setup.ask() == (200, "v2")


def test_a_mirror_policy(setup: Setup, until: Until) -> None:
    """Of the requests of the routes with its labels, so many percent are copied; without the policy none are."""
    canary = setup.backends["v2"]
    assert [setup.ask() for _ in range(5)] == [(200, "v1")] * 5
    made = setup.api.create(POLICY)
    setup.gateway.wait_for("MirrorPolicy", "shop", "shadow", made["metadata"]["generation"], 10)
    assert [setup.ask() for _ in range(50)] == [(200, "v1")] * 50
    until(lambda: canary.count == 20)

    setup.change(lambda routes: routes[0].pop("labels"))
    assert [setup.ask() for _ in range(10)] == [(200, "v1")] * 10
    assert canary.count == 20


def test_tables_of_other_gateways(setup: Setup) -> None:
    """A RouteTable that names another VirtualGateway is not served here: without a namespace its own is meant."""
    table = setup.table()
    table["spec"]["virtualGateways"] = [{"name": "edge"}]
    generation = setup.api.update(table)["metadata"]["generation"]
    setup.gateway.wait_for("RouteTable", "shop", "web", generation, 10)

    assert setup.ask() == (404, "")
