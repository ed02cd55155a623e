"""A running server and a client for it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

Ask = Callable[..., urllib3.BaseHTTPResponse]
ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Start an API server without CustomResourceDefinitions."""
    with ApiServer() as running:
        yield running


@pytest.fixture
def ask(server: ApiServer) -> Iterator[Ask]:
    """Give a function that sends one request: `ask("PUT", path, body)`."""
    with urllib3.PoolManager(retries=False, timeout=10.0, maxsize=10) as pool:

        def send(method: str, path: str, body: Any = None, **more: Any) -> urllib3.BaseHTTPResponse:
            if body is not None:
                more["json"] = body
            return pool.request(method, server.url + path, **more)

        yield send


@pytest.fixture
def routes() -> str:
    """Name the path of the HTTPRoutes of namespace `shop`."""
    return ROUTES


@pytest.fixture
def web() -> dict[str, Any]:
    """Give an HTTPRoute `shop/web` with a stable and a canary backend."""
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "rules": [{"backendRefs": [{"name": "stable", "port": 80}, {"name": "canary", "port": 80, "weight": 0}]}]
        },
    }
