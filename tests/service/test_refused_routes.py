"""Managed routes that the API server refuses never hold back the weights, whatever refuses them (D22)."""

from typing import Any

import pytest
from tests.service.world import Shop, header_step, service

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import Forbidden, Invalid, PluginError
from rollouts_gwapi_plugin.kube.client import KubeClient


@pytest.fixture(params=[Invalid, Forbidden])
def refusing(request: pytest.FixtureRequest, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Give a Rollout past its header step, and an admission policy that takes no rule of its name."""
    put = KubeClient.put

    def picky(self: KubeClient, resource: Any, value: Any, **options: Any) -> Any:
        if any(item.get("name") == "canary" for item in (value.get("spec") or {}).get("rules", [])):
            raise request.param("a policy denied the request", status=422)
        return put(self, resource, value, **options)

    monkeypatch.setattr(KubeClient, "put", picky)
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}, {"setWeight": 30}]
    shop.status["currentStepIndex"] = 1
    return shop


def test_weights_go_on_where_a_managed_route_is_refused(
    refusing: Shop, api: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The header step fails; weights and experiments are set with one warning, and no mark is left of what is not."""
    api.create(service("b"))
    with pytest.raises(PluginError, match="a policy denied"):
        refusing.header("canary")
    refusing.weight(30, b=10)
    with_experiment = refusing.rules()
    refusing.weight(30)

    assert ["s=60 c=30 b=10"] == with_experiment
    assert ["s=70 c=30"] == refusing.rules()
    assert {} == refusing.ledger()
    assert "ManagedRouteNotRestored" in capsys.readouterr().out


def test_weights_at_rest_are_no_write_where_a_managed_route_is_refused(refusing: Shop) -> None:
    """What is right already is not written."""
    refusing.weight(30)
    before = refusing.api.read("HTTPRoute", "shop", "web")["metadata"]["resourceVersion"]
    refusing.weight(30)

    assert before == refusing.api.read("HTTPRoute", "shop", "web")["metadata"]["resourceVersion"]


@pytest.mark.parametrize("managed", [[], ["other"]])
def test_weights_that_are_refused_themselves_are_an_error(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, managed: list[str]
) -> None:
    """The API server's own words reach the controller, and it is not asked twice for the same."""
    asked: list[Any] = []

    def never(_self: KubeClient, resource: Any, value: Any, **_options: Any) -> Any:
        asked.append(value)
        raise Invalid(f"update {resource.plural}: no change is taken", status=422)

    monkeypatch.setattr(KubeClient, "put", never)
    shop.managed = managed
    with pytest.raises(PluginError, match="no change is taken"):
        shop.weight(30)

    assert 1 == len(asked)
