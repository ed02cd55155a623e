"""A world for each test: an embedded API server with a RouteTable `shop/web`, and a service that works on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.gloo.world import GlooShop, crds, http, table
from tests.service.world import service

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """Give an API server that holds the RouteTable `main: [s]`."""
    with ApiServer(crds=crds()) as server:
        server.create(table(http("s", "main")))
        for name in ("s", "c"):
            server.create(service(name))
        yield server


@pytest.fixture
def shop(api: ApiServer, tmp_path: Path) -> GlooShop:
    """Give the world."""
    made = GlooShop(api, tmp_path)
    made.configure(routeTableSelector={"name": "web"})
    return made
