"""Notes are told once a state, however many of one kind there are (D32, issue of all route kinds)."""

import pytest
from tests.service.world import Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer


def told(shop: Shop) -> list[tuple[str, str]]:
    """Return reason and message of all Events so far."""
    shop.router._connector.cluster().events.flush(5)
    return [(event["reason"], event["message"]) for event in shop.api.list("events", "shop")]


def test_two_notes_of_one_kind_are_one_state(shop: Shop, api: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rules contradict the step: one Event names both, and nothing more is told in later reconciles."""
    contradicting = [
        rule("s100 c0", name=name, matches=[{"headers": [{"name": "X-Test", "value": name}]}])
        for name in ("one", "two")
    ]
    api.update(route(rule("s100 c0"), *contradicting))
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}]
    shop.header("canary")
    first = told(shop)
    capsys.readouterr()
    for _ in range(3):
        shop.weight(0)
        shop.header("canary")

    assert ["HeaderContradiction"] == [reason for reason, _ in first]
    assert "rule one is left out" in first[0][1]
    assert "rule two is left out" in first[0][1]
    assert first == told(shop)
    assert "left out" not in capsys.readouterr().out


def test_several_templates_without_a_service_are_one_state(shop: Shop) -> None:
    """The destinations' notes are the call's, not a route's."""
    call = shop._weight_call(20, {})
    asked = [{"serviceName": "", "weight": weight} for weight in (5, 7)]
    call = call.model_validate({"rollout": shop.rollout(), "desiredWeight": 20, "additionalDestinations": asked})
    for _ in range(3):
        shop.router.set_weight(call)

    assert ["ExperimentWithoutService"] == [reason for reason, _ in told(shop)]


def test_a_state_that_changes_is_told_again(shop: Shop, api: ApiServer) -> None:
    """Another rule contradicts: that is news."""
    shop.managed = ["canary"]
    for name in ("one", "two"):
        other = rule("s100 c0", name=name, matches=[{"headers": [{"name": "X-Test", "value": name}]}])
        api.update(route(rule("s100 c0"), other))
        shop.header("canary")

    assert ["HeaderContradiction"] * 2 == [reason for reason, _ in told(shop)]


@pytest.fixture
def namesakes(shop: Shop, api: ApiServer) -> Shop:
    """Give an HTTPRoute and a GRPCRoute `web` with a header route on each, and the HTTPRoute `next`."""
    api.create(route(rule("s100 c0"), kind="GRPCRoute"))
    api.create(route(rule("s100 c0"), name="next"))
    shop.config = {"httpRoute": "web", "grpcRoute": "web"}
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}]
    shop.header("canary")
    return shop


def test_routes_of_one_name_are_told_apart(namesakes: Shop, api: ApiServer) -> None:
    """Neither of two routes that can't be given back makes the other's state new (D32)."""
    namesakes.config = {"httpRoute": "next"}
    with api.deny("update", "httproutes", "shop", "web"), api.deny("update", "grpcroutes", "shop", "web"):
        for _ in range(3):
            namesakes.weight(0)

    assert ["RouteNotGivenBack"] * 2 == [reason for reason, _ in told(namesakes)]


def test_records_of_one_name_are_told_apart(namesakes: Shop, api: ApiServer) -> None:
    """Nor do the records of two routes that are gone, where they can't be swept."""
    api.delete("HTTPRoute", "shop", "web")
    api.delete("GRPCRoute", "shop", "web")
    with api.deny("update", "configmaps", "shop"):
        for _ in range(3):
            namesakes.remove()

    assert ["LedgerNotSwept"] * 2 == [reason for reason, _ in told(namesakes)]


def test_steps_of_one_name_are_told_apart(shop: Shop) -> None:
    """A header and a mirror step of one managed route, neither of which any route takes."""
    shop.config = {"tcpRoute": "web"}
    shop.api.create(route(rule("s100 c0"), kind="TCPRoute", version="v1alpha2"))
    shop.managed = ["canary"]
    for _ in range(3):
        shop.header("canary")
        shop.mirror("canary", {"method": {"exact": "GET"}})

    assert ["StepTakenByNoRoute"] * 2 == [reason for reason, _ in told(shop)]


def test_an_unknown_key_is_told_once_with_a_way_out(shop: Shop) -> None:
    """The plugin ignores it as the Go plugin does (C103), and says what to do."""
    shop.config = {"httpRoute": "web", "httpRute": "web"}
    for _ in range(3):
        shop.weight(20)
    ((reason, message),) = told(shop)

    assert "UnknownKey" == reason
    assert "has the key 'httpRute', which this plugin does not know; remove it, or see docs/configuration.md" in message
