"""Services that take turns: what was the canary's is stable's after a promotion (C108, F07)."""

import pytest
from tests.service.world import LEDGER, Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.model.calls import Verification


@pytest.fixture
def turning(shop: Shop, api: ApiServer) -> Shop:
    """Give a rollout with ping and pong, pong stable, at its last step with managed routes."""
    api.update(route(rule("ping0 pong100")))
    shop.canary = {
        "pingPong": {"pingService": "ping", "pongService": "pong"},
        "stableService": "",
        "canaryService": "",
    }
    shop.managed = ["canary", "m"]
    shop.steps = [{"setHeaderRoute": header_step("canary")}, {"setWeight": 50}]
    shop.status |= {"currentStepIndex": 1, "canary": {"stablePingPong": "pong"}}
    shop.header("canary")
    shop.mirror("m", {"method": {"exact": "GET"}})
    shop.weight(100)
    assert ["m: ping=100 pong=0", "ping=100 pong=0", "canary: ping=1", "canary-1: ping=1"] == shop.rules()
    return shop


def promote(shop: Shop) -> None:
    """Let the controller promote: ping is stable from here on."""
    shop.status |= {"stableRS": "new", "canary": {"stablePingPong": "ping"}}


def test_everything_goes_after_the_turn(turning: Shop) -> None:
    """The rules that were made for ping as canary are known although ping is stable now."""
    promote(turning)
    turning.remove()
    turning.weight(0)

    assert ["ping=100 pong=0"] == turning.rules()
    assert {} == turning.ledger()
    assert Verification.VERIFIED == turning.verify(0)


def test_also_in_a_new_process_and_without_the_ledger(turning: Shop, api: ApiServer) -> None:
    """By the generated names, with either Service behind them (D7)."""
    promote(turning)
    turning.restart()
    api.delete("ConfigMap", "shop", LEDGER)
    turning.remove()
    turning.weight(0)

    assert ["ping=100 pong=0"] == turning.rules()


def test_a_remove_that_failed_at_the_turn_is_made_up_for(turning: Shop, api: ApiServer) -> None:
    """The next reconcile removes; no rule points at the Service that has no pods any more."""
    promote(turning)
    api.faults.add(verb="update", plural="httproutes", status=422, times=1)
    turning.remove()
    with pytest.raises(PluginError, match="422"):
        turning.weight(0)
    turning.remove()
    turning.weight(0)

    assert ["ping=100 pong=0"] == turning.rules()


def test_the_next_update_goes_the_other_way(turning: Shop) -> None:
    """Pong is the canary then."""
    promote(turning)
    turning.remove()
    turning.weight(0)
    turning.status["stableRS"] = "old"
    turning.header("canary")
    turning.weight(30)

    assert ["ping=70 pong=30", "canary: pong=1"] == turning.rules()


def test_without_turns_a_rule_with_only_stable_is_the_users(shop: Shop, api: ApiServer) -> None:
    """Whatever its name: only a rule with the canary alone can be ours (D7)."""
    api.update(route(rule("s100 c0"), rule("s1", name="canary")))
    shop.managed = ["canary"]
    shop.remove()

    assert ["s=100 c=0", "canary: s=1"] == shop.rules()
