"""Real gRPC calls through a listener: weights, metadata, mirrors, and what a failure looks like."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest
import yaml

from rollouts_gwapi_plugin.embedded.dataplane.dealing import Dealer
from rollouts_gwapi_plugin.embedded.dataplane.decision import Configuration, decide
from rollouts_gwapi_plugin.embedded.dataplane.grpc_proxy import GrpcListener
from rollouts_gwapi_plugin.embedded.dataplane.matching import RouteTable
from rollouts_gwapi_plugin.embedded.dataplane.references import References
from rollouts_gwapi_plugin.embedded.grpc_backend import GrpcBackend

ROUTES = yaml.safe_load("""
- kind: GRPCRoute
  metadata: {namespace: shop, name: orders}
  spec:
    rules:
    - matches: [{method: {service: shop.Orders}}]
      backendRefs: [{name: stable, port: 80, weight: 4}, {name: canary, port: 80, weight: 1}]
    - matches: [{method: {service: shop.Orders}, headers: [{name: X-Tester, value: "yes"}]}]
      filters:
      - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: "2"}], remove: [x-tester]}}
      - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-b, value: "3"}]}}
      backendRefs: [{name: canary, port: 80}]
    - matches: [{method: {service: shop.Mirrored}}]
      filters: [{type: RequestMirror, requestMirror: {backendRef: {name: canary, port: 80}}}]
      backendRefs: [{name: stable, port: 80}]
    - matches: [{method: {service: shop.Empty}}]
      backendRefs: [{name: empty, port: 80}]
    - matches: [{method: {service: shop.Gone}}]
      backendRefs: [{name: gone, port: 80}]
    - matches: [{method: {service: shop.Dead}}]
      backendRefs: [{name: dead, port: 80}]
""")
SERVICES = [
    {"metadata": {"namespace": "shop", "name": name}, "spec": {"ports": [{"port": 80}]}}
    for name in ("stable", "canary", "empty", "dead")
]


class Setup:
    """A listener over the routes, its backends, and one client's channel."""

    def __init__(self, stack: ExitStack) -> None:
        self.backends = {name: stack.enter_context(GrpcBackend(name)) for name in ("stable", "canary")}
        addresses = {name: backend.address for name, backend in self.backends.items()}
        with GrpcBackend("dead") as dead:
            addresses["dead"] = dead.address
        configuration, dealer = Configuration(RouteTable(ROUTES), References(SERVICES)), Dealer()
        listener = GrpcListener(
            "grpc", lambda call: decide(call, configuration, dealer), lambda target: addresses.get(target.name)
        )
        listener.start()
        stack.callback(listener.stop)
        assert listener.url.startswith("grpc://")
        self.channel = stack.enter_context(grpc.insecure_channel(listener.url.removeprefix("grpc://")))

    def call(self, path: str, message: bytes = b"", **metadata: str) -> tuple[bytes, dict[str, Any]]:
        """Make a call; return its answer and the initial metadata."""
        pairs = tuple((name.replace("_", "-"), value) for name, value in metadata.items())
        send: Any = self.channel.unary_unary(path)
        answer, done = send.with_call(message, metadata=pairs, timeout=10)
        return answer, dict(done.initial_metadata())


@pytest.fixture
def setup() -> Iterator[Setup]:
    """Return a running data plane."""
    with ExitStack() as stack:
        yield Setup(stack)


def test_weights(setup: Setup) -> None:
    """Of 50 calls on one connection a fifth reaches the canary; each says which Service was chosen."""
    answers = [setup.call("/shop.Orders/Get", b"\x08\x01") for _ in range(50)]

    assert Counter(metadata["x-backend"] for _, metadata in answers) == {"stable": 40, "canary": 10}
    assert all(metadata["x-gateway-service"] == metadata["x-backend"] for _, metadata in answers)
    assert {message for message, _ in answers} == {b"\x08\x01"}


def test_metadata_and_filters(setup: Setup) -> None:
    """Metadata matches as headers do, and filters change it on both ways."""
    _, metadata = setup.call("/shop.Orders/Get", x_tester="yes", x_one="1")
    (received,) = setup.backends["canary"].arrivals.last

    assert (metadata["x-backend"], metadata["x-b"]) == ("canary", "3")
    assert (received.target, received.headers["x-one"], received.headers["x-a"]) == ("/shop.Orders/Get", "1", "2")
    assert "x-tester" not in received.headers


def test_mirror(setup: Setup, until: Callable[[Callable[[], object]], None]) -> None:
    """A mirrored call is answered by the backend and arrives at the mirror too."""
    assert setup.call("/shop.Mirrored/Get")[1]["x-backend"] == "stable"

    until(lambda: setup.backends["canary"].arrivals.count == 1)
    assert setup.backends["canary"].arrivals.last[0].target == "/shop.Mirrored/Get"


@pytest.mark.parametrize(
    ("path", "code", "reason"),
    [
        ("/shop.Nothing/Get", "UNIMPLEMENTED", "no route matches"),
        ("/shop.Empty/Get", "UNAVAILABLE", "Service shop/empty:80 has no ready endpoint"),
        ("/shop.Gone/Get", "UNKNOWN", "BackendNotFound: Service shop/gone not found"),
        ("/shop.Dead/Get", "UNAVAILABLE", "refused"),
    ],
)
def test_failures(setup: Setup, path: str, code: str, reason: str) -> None:
    """What can't be served gets gRPC's status and says why, and the connection lives on."""
    with pytest.raises(grpc.RpcError) as caught:
        setup.call(path)
    failed: Any = caught.value

    assert failed.code().name == code
    assert reason in failed.details()
    assert setup.call("/shop.Orders/Get")[0] == b""
