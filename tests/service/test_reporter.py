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
