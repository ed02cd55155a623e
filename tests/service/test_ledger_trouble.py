"""Trouble with the ledger never blocks weights, and never makes a rule without a record (decisions D6, D8, D31)."""

import json
from typing import Any

import pytest
from tests.service.world import LEDGER, Shop, header_step, rule, service

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import LedgerError, RouteError

SOURCE = rule("s100 c0", matches=[{"path": {"type": "PathPrefix", "value": "/b"}}])


def make_ledger(api: ApiServer, text: str) -> None:
    """Create the ConfigMap with something in it that is no record."""
    metadata = {"name": LEDGER, "namespace": "shop"}
    data = {"httpManagedHeaderRoutes": text}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def with_header_route(shop: Shop) -> None:
    """Set a header route as in the middle of a rollout."""
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}, {"setWeight": 10}]
    shop.status["currentStepIndex"] = 1
    shop.header("canary")


@pytest.mark.parametrize("verb", ["get", "update"])
def test_no_rule_is_made_for_a_new_source_that_can_not_be_recorded(shop: Shop, api: ApiServer, verb: str) -> None:
    """The user adds a rule with the pair while the ledger is out of reach: its weights are set, it gets no rule yet."""
    with_header_route(shop)
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"]["rules"].insert(1, SOURCE))
    with api.deny(verb, "configmaps"):
        shop.weight(10)
    during = shop.rules()
    shop.weight(10)

    assert ["s=90 c=10", "s=90 c=10", "canary: c=1"] == during
    assert ["s=90 c=10", "s=90 c=10", "canary: c=1", "canary-1: c=1"] == shop.rules()


def test_a_name_only_step_makes_no_rule_for_others(shop: Shop, api: ApiServer) -> None:
    """Removing one managed route without the ledger leaves the others just as they stand."""
    shop.managed = ["canary", "beta"]
    shop.header("canary")
    shop.header("beta", "X-Beta")
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"]["rules"].insert(1, SOURCE))
    api.deny("get", "configmaps")
    shop.unset("beta")

    assert ["s=100 c=0", "s=100 c=0", "canary: c=1"] == shop.rules()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"version": 1, "rollouts": []}', '{"version": 1, "rollouts": {"a": 1}}']
)
def test_no_text_in_the_ledger_is_more_than_trouble(shop: Shop, api: ApiServer, text: str) -> None:
    """However broken: weights and removals go on, a header route is refused by name of ConfigMap and key."""
    make_ledger(api, text)
    shop.managed = ["canary"]
    shop.weight(30)
    with pytest.raises(LedgerError, match=f"ConfigMap shop/{LEDGER}, key httpManagedHeaderRoutes"):
        shop.header("canary")
    shop.remove()

    assert ["s=70 c=30"] == shop.rules()
    assert {"httpManagedHeaderRoutes": text} == shop.ledger()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("httpManagedMirrorRoutes", r'{"rollouts":{"shop/other\ud800":{"routes":{},"uid":"u"}},"version":1}'),
        ("httpManagedRoutes", r'{"x":{"\ud800":3}}'),
    ],
)
def test_half_a_surrogate_in_the_ledger_is_no_trouble_at_all(shop: Shop, api: ApiServer, key: str, text: str) -> None:
    """Weights, a header route and its removal go through, and the foreign entry stays as it is."""
    metadata = {"name": LEDGER, "namespace": "shop"}
    data = {key: text, "httpManagedHeaderRoutes": '{"version":1,"rollouts":{}}', "httpManagedRoutes": text}
    if key != "httpManagedRoutes":
        del data["httpManagedRoutes"]
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    with_header_route(shop)
    shop.weight(10)
    during = shop.rules()
    shop.remove()
    ledger = shop.ledger()

    assert ["s=90 c=10", "canary: c=1"] == during
    assert ["s=90 c=10"] == shop.rules()
    assert ledger is not None
    assert text == ledger[key]


@pytest.mark.parametrize("verb", ["get", "create"])
def test_an_experiment_that_can_not_be_recorded_is_refused_unless_the_canary_is_lowered(
    shop: Shop, api: ApiServer, verb: str
) -> None:
    """Both where the ledger can't be read and where it can't be written (D31)."""
    api.create(service("b"))
    api.deny(verb, "configmaps")
    with pytest.raises(RouteError, match="experiment backends can't be recorded"):
        shop.weight(20, b=10)
    untouched = shop.rules()
    shop.weight(50)
    with pytest.raises(RouteError, match="experiment backends can't be recorded"):
        shop.weight(20, b=10)

    assert ["s=100 c=0"] == untouched
    assert ["s=80 c=20"] == shop.rules()


def test_trouble_is_told_once_and_again_when_it_comes_back(shop: Shop, api: ApiServer) -> None:
    """One warning and one Event a state, not one a reconcile (D8)."""

    def events() -> list[Any]:
        shop.router._connector.cluster().events.flush(5)
        return [event["reason"] for event in api.list("events", "shop")]

    with_header_route(shop)
    with api.deny("get", "configmaps"):
        for _ in range(3):
            shop.weight(20)
        once = events()
    shop.weight(20)
    api.deny("get", "configmaps")
    shop.weight(20)

    assert ["LedgerTrouble"] == once
    assert ["LedgerTrouble"] * 2 == events()


def test_without_ledger_rights_weights_go_on(shop: Shop, api: ApiServer) -> None:
    """A 403 on ConfigMaps costs a warning, never a weight; heal is skipped (D8)."""
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}]
    for verb in ("get", "create", "update"):
        api.deny(verb, "configmaps")

    shop.weight(30)

    assert ["s=70 c=30"] == shop.rules()


def test_without_ledger_rights_a_header_route_is_refused_with_the_rule_to_add(shop: Shop, api: ApiServer) -> None:
    """What can't be recorded is not written, and the error names ConfigMap and missing rule (D8, C114)."""
    api.deny("get", "configmaps")

    with pytest.raises(LedgerError, match=f"ConfigMap shop/{LEDGER}") as raised:
        shop.header("canary")

    assert "configmaps" in str(raised.value)
    assert ["s=100 c=0"] == shop.rules()


def test_a_ledger_that_can_be_read_but_not_written_refuses_the_rule(shop: Shop, api: ApiServer) -> None:
    """The write-ahead fails, so the rule is not written (D6)."""
    api.deny("create", "configmaps")

    with pytest.raises(LedgerError, match="can't be recorded"):
        shop.header("canary")

    assert ["s=100 c=0"] == shop.rules()


@pytest.mark.parametrize("value", ["{", '{"version": 2, "rollouts": {}}', '{"version": 1}', "[]"])
def test_a_broken_or_newer_ledger_is_left_alone(shop: Shop, api: ApiServer, value: str) -> None:
    """Weights and removals by name go on, a header route is refused, the ConfigMap stays byte for byte (D8)."""
    metadata = {"name": LEDGER, "namespace": "shop"}
    data = {"httpManagedHeaderRoutes": value, "other": "kept"}
    shop.managed = ["canary"]
    shop.header("canary")
    api.delete("ConfigMap", "shop", LEDGER)
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    shop.weight(30)
    with pytest.raises(LedgerError, match="httpManagedHeaderRoutes"):
        shop.header("other")
    shop.remove()

    assert ["s=70 c=30"] == shop.rules()
    assert data == shop.ledger()


def test_other_keys_of_the_config_map_are_never_touched(shop: Shop, api: ApiServer) -> None:
    """The ConfigMap is shared: foreign keys and other Rollouts' entries stay."""
    other = '{"version":1,"rollouts":{"shop/other":{"uid":"u","routes":{"web":{"x":{"rules":[]}}}}}}'
    metadata = {"name": LEDGER, "namespace": "shop"}
    data = {"foreign": "1", "httpManagedHeaderRoutes": other, "httpManagedRoutes": '{"x":{"elsewhere":1}}'}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    shop.managed = ["canary"]
    shop.header("canary")
    shop.remove()
    after = shop.ledger()

    assert json.loads(other) == json.loads(after["httpManagedHeaderRoutes"])
    assert {**data, "httpManagedHeaderRoutes": ""} == {**after, "httpManagedHeaderRoutes": ""}
