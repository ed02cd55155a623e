"""A world for each test: an embedded API server with one HTTPRoute `shop/web`, and a service that works on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.world import Shop, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """Give an API server that holds the route `[s100 c0]`."""
    with ApiServer() as server:
        server.create(route(rule("s100 c0")))
        yield server


@pytest.fixture
def shop(api: ApiServer, tmp_path: Path) -> Shop:
    """Give the world."""
    return Shop(api, tmp_path)
