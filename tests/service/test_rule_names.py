"""One rule of a route alone is managed, chosen for all routes or for one of them (F06)."""

from typing import Any

import pytest
from tests.service.world import Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.model.calls import Verification

FORMS: list[Any] = [
    {"httpRoute": "web", "httpRouteRuleName": "b"},
    {"httpRoutes": [{"name": "web", "ruleName": "b", "useHeaderRoutes": True}]},
    {"httpRoutes": [{"name": "web", "ruleName": "b", "useHeaderRoutes": True}, {"name": "two"}], "ruleName": "a"},
]


@pytest.fixture
def named(shop: Shop, api: ApiServer) -> Shop:
    """Give two routes of two named rules each, and a Rollout past its header step."""
    rules = [
        rule("s100 c0", name=name, matches=[{"path": {"type": "PathPrefix", "value": f"/{name}"}}]) for name in "ab"
    ]
    api.update(route(*rules))
    api.create(route(*rules, name="two"))
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}, {"setWeight": 30}]
    shop.status["currentStepIndex"] = 1
    return shop


@pytest.mark.parametrize("form", FORMS)
def test_a_routes_own_rule_name_wins(named: Shop, form: Any) -> None:
    """For header routes, weights and their verification, in each of the forms (F06)."""
    named.config = form
    named.header("canary")
    named.weight(30)

    assert ["a: s=100 c=0", "b: s=70 c=30", "canary: c=1"] == named.rules()
    assert named.verify(30) is Verification.VERIFIED
    assert ("a: s=70 c=30" in named.rules("two")) == (len(form.get("httpRoutes", [])) > 1)


def test_the_rule_of_before_is_given_back(named: Shop) -> None:
    """Also where the route's own name changes (D29)."""
    named.config = FORMS[0]
    named.weight(30)
    named.config = {"httpRoute": "web", "httpRouteRuleName": "a"}
    named.weight(30)

    assert ["a: s=70 c=30", "b: s=100 c=0", "canary: c=1"] == named.rules()


def test_what_left_the_configuration_is_given_back(named: Shop) -> None:
    """By the name that it had."""
    named.config = FORMS[0]
    named.weight(30)
    named.config = {"httpRoute": "two"}
    named.weight(30)

    assert ["a: s=100 c=0", "b: s=100 c=0"] == named.rules()
