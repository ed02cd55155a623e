"""Which routes a call is about: names, lists, selectors, and what is wrong with one of them (D21, D24, X1)."""

import pytest
from tests.service.world import Shop, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import ConfigError, PluginError

SELECTOR = {"matchLabels": {"app": "x"}}


def events(shop: Shop) -> list[str]:
    """Return the reasons of all Events so far."""
    shop.router._connector.cluster().events.flush(5)
    return [event["reason"] for event in shop.api.list("events", "shop")]


def test_a_selector_that_takes_nothing_is_no_error_beside_other_routes(shop: Shop, api: ApiServer) -> None:
    """As with the Go plugin; a warning tells it (C29)."""
    api.create(route(rule("s100 c0"), kind="GRPCRoute"))
    shop.config = {"httpRouteSelector": SELECTOR, "grpcRoute": "web"}
    shop.weight(20)
    alone = {"httpRouteSelector": SELECTOR, "tcpRouteSelector": SELECTOR}

    assert ["s=80 c=20"] == shop.rules(kind="GRPCRoute")
    assert ["SelectorTakesNothing"] == events(shop)
    shop.config = alone
    with pytest.raises(PluginError, match=r"httpRouteSelector \(app=x\) matches no HTTPRoute.*tcpRouteSelector"):
        shop.weight(20)


def test_an_empty_selector_takes_every_route(shop: Shop, api: ApiServer) -> None:
    """As Kubernetes reads it."""
    api.create(route(rule("s100 c0"), name="next"))
    shop.config = {"httpRouteSelector": {}}
    shop.weight(20)

    assert ["s=80 c=20"] == shop.rules() == shop.rules("next")


def test_match_expressions_select_as_labels_do(shop: Shop, api: ApiServer) -> None:
    """All four operators are the API server's."""
    api.create(route(rule("s100 c0"), name="next"))
    api.edit("HTTPRoute", "shop", "next", lambda value: value["metadata"].update(labels={"app": "y", "tier": "web"}))
    expressions = [
        {"key": "app", "operator": "In", "values": ["x", "y"]},
        {"key": "tier", "operator": "Exists"},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "app", "operator": "NotIn", "values": ["x"]},
    ]
    shop.config = {"httpRouteSelector": {"matchExpressions": expressions}}
    shop.weight(20)

    assert ["s=100 c=0"] == shop.rules()
    assert ["s=80 c=20"] == shop.rules("next")


def test_several_kinds_in_one_rollout(shop: Shop, api: ApiServer) -> None:
    """Each is written; a kind that takes no header routes is passed over by them."""
    for kind in ("GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute"):
        api.create(route(rule("s100 c0"), kind=kind))
    shop.config = {f"{family}Route": "web" for family in ("http", "grpc", "tcp", "tls", "udp")}
    shop.weight(20)
    shop.header("canary")
    shop.mirror("m", {"headers": {"X": {"exact": "1"}}})

    for kind in ("TCPRoute", "TLSRoute", "UDPRoute"):
        assert ["s=80 c=20"] == shop.rules(kind=kind)
    for kind in ("HTTPRoute", "GRPCRoute"):
        assert ["m: s=80 c=20", "s=80 c=20", "canary: c=1", "canary-1: c=1"] == shop.rules(kind=kind)


def test_a_missing_route_without_header_routes_does_not_fail_the_step(shop: Shop) -> None:
    """Only routes that take header routes matter to one; SetWeight reports the missing one (X1)."""
    shop.config = {"httpRoutes": [{"name": "missing"}, {"name": "web", "useHeaderRoutes": True}]}
    shop.header("canary")
    shop.config["httpRoutes"][0]["useHeaderRoutes"] = True

    assert ["s=100 c=0", "canary: c=1"] == shop.rules()
    with pytest.raises(PluginError, match="missing"):
        shop.header("canary", "X-Other")


def test_header_routes_that_are_switched_off_midway_go(shop: Shop) -> None:
    """The next weight removes the rule and its record; mirror rules stay."""
    shop.managed = ["canary", "m"]
    shop.config = {"httpRoutes": [{"name": "web", "useHeaderRoutes": True}]}
    shop.header("canary")
    shop.mirror("m", {"method": {"exact": "GET"}})
    shop.config = {"httpRoutes": [{"name": "web"}]}
    shop.weight(10)

    assert ["m: s=90 c=10", "s=90 c=10"] == shop.rules()
    assert ["httpManagedMirrorRoutes"] == list(shop.ledger())


@pytest.mark.parametrize("config", [{"tcpRoute": "web"}, {"httpRoutes": [{"name": "web"}]}])
def test_a_header_step_that_nobody_takes_is_told(shop: Shop, api: ApiServer, config: dict[str, object]) -> None:
    """It succeeds with one warning and an Event that names the step (C58, D24)."""
    api.create(route(rule("s100 c0"), kind="TCPRoute"))
    shop.config = config
    for _ in range(2):
        shop.header("canary")

    assert ["StepTakenByNoRoute"] == events(shop)


def test_a_kind_that_is_not_served_is_told_as_such(shop: Shop, api: ApiServer) -> None:
    """Not "not found": the CRD is missing, and the routes of other kinds are written."""
    api.registry.withdraw_defaults("gateway.networking.k8s.io")
    shop.config = {"httpRoute": "web", "tcpRoute": "web"}

    with pytest.raises(PluginError, match=r"serves no HTTPRoute .*; .*serves no TCPRoute"):
        shop.weight(20)
    shop.remove()


def test_every_error_is_told_of_several_broken_routes(shop: Shop, api: ApiServer) -> None:
    """One error has the texts of all, each with its route (C28, X1)."""
    api.create(route(rule("x"), name="pairless"))
    shop.config = {"httpRoutes": [{"name": "missing"}, {"name": "pairless"}, {"name": "web"}]}

    with pytest.raises(PluginError) as raised:
        shop.weight(20)
    assert "missing" in str(raised.value)
    assert "HTTPRoute shop/pairless: backendRef was not found" in str(raised.value)
    assert ["s=80 c=20"] == shop.rules()


@pytest.mark.parametrize("name", ["../../secrets/x", "a/b", "%2e%2e", "x?y", "a b"])
def test_a_strange_name_is_a_route_that_is_not_there(shop: Shop, name: str) -> None:
    """It never becomes another path of the API."""
    shop.config = {"httpRoute": name}

    with pytest.raises(PluginError):
        shop.weight(20)
    assert {request.plural for request in shop.api.requests if request.verb == "get" and request.plural} <= {
        "httproutes"
    }


def test_a_selector_of_a_namespace_that_is_not_allowed(shop: Shop) -> None:
    """The Rollout's own namespace is always allowed (C110, F15)."""
    shop.settings = {"allowed_namespaces": frozenset()}
    shop.weight(20)
    shop.config = {"httpRouteSelector": SELECTOR, "namespace": "other"}

    assert ["s=80 c=20"] == shop.rules()
    with pytest.raises(ConfigError, match="it allows: none"):
        shop.weight(20)
