"""RouteTables of one Rollout of which some can't take a managed step (D24)."""

import pytest
from tests.service.gloo.world import GlooShop, destination, table

from rollouts_gwapi_plugin.errors import StepNotTakenError


def add_table_without_http(shop: GlooShop) -> None:
    """Add a RouteTable `db` that has only a tcp route, and select it with `web`."""
    raw = table(name="db", tcp=({"forwardTo": {"destinations": [destination("s")]}},))
    raw["metadata"]["labels"] = {"app": "x"}
    shop.api.create(raw)
    shop.api.edit("RouteTable", "shop", "web", lambda value: value["metadata"].update(labels={"app": "x"}))
    shop.configure(routeTableSelector={"labels": {"app": "x"}})


def test_a_table_without_http_routes(shop: GlooShop) -> None:
    """Only http routes can be managed: the other RouteTable takes the step, and this one is told of in a warning."""
    add_table_without_http(shop)
    shop.header("canary")
    shop.router._connector.cluster().events.flush(5)

    assert ["canary: c=-", "main: s=-"] == shop.lines()
    assert ["s=-"] == shop.lines("db", "tcp")
    (event,) = shop.api.list("events", "shop")
    assert event["reason"] == "StepNotTaken"
    assert "RouteTable shop/db takes no part in managed route canary" in event["message"]


def test_alone_it_is_an_error(shop: GlooShop) -> None:
    """Nobody else takes the step then."""
    add_table_without_http(shop)
    shop.configure(routeTableSelector={"name": "db"})

    with pytest.raises(StepNotTakenError, match="RouteTable shop/db"):
        shop.header("canary")
