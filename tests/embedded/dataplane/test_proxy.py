"""Real requests through a listener: what arrives at the backends and what comes back."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import yaml

from rollouts_gwapi_plugin.embedded.backends import EchoBackend
from rollouts_gwapi_plugin.embedded.dataplane.dealing import Dealer
from rollouts_gwapi_plugin.embedded.dataplane.decision import Configuration, decide
from rollouts_gwapi_plugin.embedded.dataplane.matching import RouteTable
from rollouts_gwapi_plugin.embedded.dataplane.proxy import MAX_BODY, REASON_HEADER, Listener, Upstream
from rollouts_gwapi_plugin.embedded.dataplane.references import References

ROUTES = yaml.safe_load("""
- kind: HTTPRoute
  metadata: {namespace: shop, name: web}
  spec:
    rules:
    - backendRefs: [{name: stable, port: 80, weight: 4}, {name: canary, port: 80, weight: 1}]
    - matches: [{path: {value: /filtered}}]
      filters:
      - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: "2"}]}}
      - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-b, value: "3"}]}}
      - type: URLRewrite
        urlRewrite: {hostname: inner, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}
      backendRefs: [{name: stable, port: 80}]
    - matches: [{path: {value: /mirrored}}]
      filters: [{type: RequestMirror, requestMirror: {backendRef: {name: canary, port: 80}}}]
      backendRefs: [{name: stable, port: 80}]
    - matches: [{path: {value: /mirrored-to-empty}}]
      filters: [{type: RequestMirror, requestMirror: {backendRef: {name: empty, port: 80}}}]
      backendRefs: [{name: stable, port: 80}]
    - matches: [{path: {value: /redirected}}]
      filters: [{type: RequestRedirect, requestRedirect: {hostname: new.example, port: 80}}]
    - matches: [{path: {value: /empty}}]
      backendRefs: [{name: empty, port: 80}]
    - matches: [{path: {value: /dead}}]
      backendRefs: [{name: dead, port: 80}]
    - matches: [{path: {value: /gone}}]
      backendRefs: [{name: gone, port: 80}]
""")
NAMES = ("stable", "canary", "empty", "dead")


class Setup:
    """A listener over the routes, its backends, and one kept-alive client."""

    def __init__(self, stack: ExitStack) -> None:
        self.backends = {name: stack.enter_context(EchoBackend(name)) for name in ("stable", "canary")}
        services = [{"metadata": {"namespace": "shop", "name": n}, "spec": {"ports": [{"port": 80}]}} for n in NAMES]
        configuration = Configuration(RouteTable(ROUTES), References(services))
        dealer = Dealer()
        addresses = {name: backend.address for name, backend in self.backends.items()}
        with EchoBackend("dead") as dead:
            addresses["dead"] = dead.address
        upstream = Upstream(lambda target: addresses.get(target.name))
        stack.callback(upstream.close)
        self.listener = Listener("http", lambda request: decide(request, configuration, dealer), upstream)
        self.listener.start()
        stack.callback(self.listener.stop)
        port = int(self.listener.url.rpartition(":")[2])
        self.client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        stack.callback(self.client.close)

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, Any, Any]:
        """Return status, headers and JSON body of an answer."""
        self.client.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = self.client.getresponse()
        content = answer.read()
        return answer.status, answer.headers, json.loads(content) if content else None


@pytest.fixture
def setup() -> Iterator[Setup]:
    """Return a running data plane."""
    with ExitStack() as stack:
        yield Setup(stack)


def test_weights(setup: Setup) -> None:
    """Of 50 requests on one connection a fifth reaches the canary, and each answer names its backend."""
    names = [setup.ask("/")[1]["x-backend"] for _ in range(50)]

    assert names.count("canary") == 10
    assert (setup.backends["stable"].count, setup.backends["canary"].count) == (40, 10)


def test_request_arrives_whole(setup: Setup) -> None:
    """Method, query, body and headers arrive; hop-by-hop headers and what nobody sent do not."""
    status, _, seen = setup.ask("/a?b=c%20d", "POST", b"x" * 1000, X_One="1", Connection="keep-alive, x-two", X_Two="2")

    assert (status, seen["method"], seen["path"]) == (200, "POST", "/a?b=c%20d")
    assert seen["headers"]["x-one"] == "1"
    assert seen["headers"]["content-length"] == "1000"
    assert {"x-two", "connection", "user-agent"}.isdisjoint(seen["headers"])


def test_filters(setup: Setup) -> None:
    """Request and response headers, host and path are changed as the filters say; the query stays."""
    status, headers, seen = setup.ask("/filtered/x?q=1", X_A="1")

    assert (status, seen["path"], seen["headers"]["host"], seen["headers"]["x-a"]) == (200, "/new/x?q=1", "inner", "2")
    assert headers["x-b"] == "3"
    assert headers["x-gateway-service"] == "stable"


def test_mirror(setup: Setup, until: Callable[[Callable[[], object]], None]) -> None:
    """A mirrored request is answered by the backend and arrives at the mirror too; an empty mirror is no loss."""
    assert setup.ask("/mirrored")[1]["x-backend"] == "stable"
    assert setup.ask("/mirrored-to-empty")[1]["x-backend"] == "stable"

    until(lambda: setup.backends["canary"].count == 1)
    assert setup.backends["canary"].received[0].target == "/mirrored"


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/empty", 503, "Service shop/empty:80 has no ready endpoint"),
        ("/dead", 503, "Connection refused"),
        ("/gone", 500, "BackendNotFound: Service shop/gone not found"),
    ],
)
def test_failures(setup: Setup, path: str, status: int, reason: str) -> None:
    """What can't be served gets the Gateway API's status and says why, and the connection lives on."""
    found, headers, _ = setup.ask(path)

    assert found == status
    assert reason in headers[REASON_HEADER]
    assert setup.ask("/")[0] == 200


def test_redirect(setup: Setup) -> None:
    """A redirect is answered, not followed."""
    status, headers, _ = setup.ask("/redirected/x")

    assert (status, headers["location"]) == (302, "http://new.example/redirected/x")


def test_status_and_head_pass_through(setup: Setup) -> None:
    """A backend's error is the client's answer, and HEAD has no body."""
    setup.backends["stable"].status = 418

    assert setup.ask("/mirrored")[0] == 418
    assert setup.ask("/mirrored", "HEAD")[2] is None


@pytest.mark.parametrize(
    ("headers", "status"), [({"Transfer-Encoding": "chunked"}, 411), ({"Content-Length": str(MAX_BODY + 1)}, 413)]
)
def test_bodies_that_are_not_taken(setup: Setup, headers: dict[str, str], status: int) -> None:
    """A body of unknown or excessive length is refused before it is read."""
    setup.client.request("POST", "/", None, headers)

    assert setup.client.getresponse().status == status
