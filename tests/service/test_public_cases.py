"""Public cases that need the whole service and have no better home: one test each, by its number."""

from pathlib import Path
from typing import Any

import pytest
from tests.gob_view import through_gob
from tests.service.world import Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.model.calls import UpdateHashCall, Verification, WeightCall

GET: dict[str, Any] = {"method": {"exact": "GET"}}
DOCS = Path(__file__).parents[2] / "docs"


def test_a_weight_that_was_not_sent_is_zero(shop: Shop) -> None:
    """Go does not send a zero: neither an error nor "as it is" (C12)."""
    shop.weight(30)
    call = through_gob("SetWeight", {"rollout": shop.rollout(), "desiredWeight": 0})
    assert isinstance(call, WeightCall)
    shop.router.set_weight(call)

    assert shop.rules() == ["s=100 c=0"]


def test_a_refused_header_type_is_told_with_controller_reason_and_message(shop: Shop, api: ApiServer) -> None:
    """A provider without expressions in headers refuses the whole route; the write is fine, verifying tells (C52)."""
    shop.config = {"httpRoute": "web", "verifyWait": 0}
    shop.managed = ["r1"]
    shop.steps = [{"setHeaderRoute": {"name": "r1", "match": [{"headerName": "V", "headerValue": {"prefix": "v1"}}]}}]
    shop.weight(20)
    value = api.read("HTTPRoute", "shop", "web")
    condition = {
        "type": "Accepted",
        "status": "False",
        "reason": "UnsupportedValue",
        "message": "regular expressions in headers are not supported",
        "observedGeneration": value["metadata"]["generation"],
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    parent = {"parentRef": {"name": "gw"}, "controllerName": "example.com/gateway", "conditions": [condition]}
    api.update_status({**value, "status": {"parents": [parent]}})

    assert shop.verify(20) is Verification.NOT_VERIFIED
    # The Event is written by a thread of its own.
    shop.router._connector.cluster().events.close()
    told = " ".join(event["message"] for event in api.list("Event", "shop"))
    assert "example.com/gateway" in told
    assert "UnsupportedValue" in told
    assert "regular expressions in headers are not supported" in told


def test_a_mirror_stays_until_it_is_removed(shop: Shop) -> None:
    """The calls of a paused step write nothing, and leave the mirror where it is (C69)."""
    shop.managed = ["m"]
    shop.mirror("m", GET)
    set_ = shop.rules()
    made = [line for _ in range(5) for line in shop.requests(lambda: shop.weight(0))]

    assert set_ == ["m: s=100 c=0", "s=100 c=0"] == shop.rules()
    assert not [line for line in made if line.startswith(("update", "create"))]
    shop.remove()
    assert shop.rules() == ["s=100 c=0"]


def test_a_mirror_goes_in_the_call_that_removes_it(shop: Shop) -> None:
    """No canary is left to mirror to: one write takes the mirror, the pair's rule is as it was (C70)."""
    shop.managed = ["m"]
    shop.weight(20)
    before = shop.api.read("HTTPRoute", "shop", "web")["spec"]["rules"]
    shop.mirror("m", GET)
    requests = shop.requests(shop.remove)

    assert requests.count("update httproutes") == 1
    assert before == shop.api.read("HTTPRoute", "shop", "web")["spec"]["rules"]


def test_nothing_outside_the_namespace_is_asked_for(shop: Shop, api: ApiServer) -> None:
    """A namespaced Role suffices: every request names the namespace, none watches (C116, C117)."""
    api.create(route(rule("s100 c0"), name="chosen"))
    shop.managed, shop.steps = ["r1"], [{"setHeaderRoute": header_step("r1")}]
    shop.config = {"httpRoute": "web", "httpRouteSelector": {}}
    shop.weight(20)
    shop.verify(20)
    shop.remove()
    asked = [request for request in api.requests if request.plural]

    assert {request.namespace for request in asked} == {"shop"}
    assert {request.verb for request in asked} <= {"get", "list", "create", "update"}
    assert not [request for request in asked if request.plural in {"leases", "secrets", "pods"}]


def test_a_new_revision_in_the_middle_is_one_write(shop: Shop) -> None:
    """Its reconcile sends SetWeight(0), UpdateHash and SetWeight(0) again; only the first has something to do (C11)."""
    shop.weight(20)

    def reconcile() -> None:
        shop.weight(0)
        call = {"rollout": shop.rollout(), "canaryHash": "newer", "stableHash": "old", "additionalDestinations": []}
        shop.router.update_hash(UpdateHashCall.model_validate(call))
        shop.weight(0)

    assert shop.requests(reconcile).count("update httproutes") == 1
    assert shop.rules() == ["s=100 c=0"]


@pytest.mark.parametrize("config", [{"httpRoute": "web"}, {"httpRoute": "web", "namespace": ""}])
def test_without_a_namespace_it_is_the_rollouts(shop: Shop, config: dict[str, Any]) -> None:
    """An absent namespace and an empty one are the Rollout's own, for named routes and for selectors (C100)."""
    shop.config = config
    shop.weight(20)
    assert shop.rules() == ["s=80 c=20"]
    shop.config = {**config, "httpRouteSelector": {}}
    shop.weight(30)
    assert shop.rules() == ["s=70 c=30"]


@pytest.mark.parametrize("first", ["remove", "weight"])
def test_after_a_fail_over_the_first_call_may_be_any(shop: Shop, first: str) -> None:
    """A controller that takes over starts a plugin that has seen nothing; the update ends as it should (C134)."""
    shop.managed, shop.steps = ["r1"], [{"setHeaderRoute": header_step("r1")}]
    shop.header("r1")
    shop.weight(20)
    shop.restart()
    if first == "remove":
        shop.remove()
        shop.weight(0)
    else:
        shop.weight(50)
        assert shop.rules() == ["s=50 c=50", "r1: c=1"]
        shop.restart()
        shop.remove()
        shop.restart()
        shop.status = {**shop.status, "abort": True}
        shop.weight(0)

    assert shop.rules() == ["s=100 c=0"]
    assert shop.ledger() == {}


def test_at_rest_a_gitops_apply_gets_the_rules_back(shop: Shop, api: ApiServer) -> None:
    """After the update an apply of an edited manifest takes the list over again; we do not write any more (C93)."""
    manifest = route(rule("s100 c0"))
    api.apply(manifest, manager="gitops", force=True)
    shop.weight(20)
    shop.weight(0)
    manifest["spec"]["rules"][0]["timeouts"] = {"request": "9s"}
    api.apply(manifest, manager="gitops", force=True)
    shop.weight(0)
    value = api.read("HTTPRoute", "shop", "web")
    ours = [
        entry
        for entry in value["metadata"]["managedFields"]
        if entry["manager"] == "rollouts-gwapi-plugin" and "f:rules" in str(entry["fieldsV1"])
    ]

    assert value["spec"]["rules"][0]["timeouts"] == {"request": "9s"}
    assert not ours


def test_the_argo_cd_recipe_goes_by_our_field_manager() -> None:
    """It names the manager that we write under, and warns of the one that hangs on the label (C92, C93, F19)."""
    text = (DOCS / "gitops.md").read_text()

    assert "managedFieldsManagers: [rollouts-gwapi-plugin]" in text
    assert "Do not condition `ignoreDifferences` on the in-progress label" in text
    assert "a sync of an edited manifest takes the list over again" in text


def test_a_parent_that_is_a_service_is_as_good_as_a_gateway(shop: Shop, api: ApiServer) -> None:
    """Mesh routes hang on a Service; nothing else is different about them (F13)."""
    parent = {"group": "", "kind": "Service", "name": "front"}
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"].update(parentRefs=[parent]))
    shop.weight(20)

    assert shop.rules() == ["s=80 c=20"]
    assert shop.verify(20) is Verification.VERIFIED
    assert api.read("HTTPRoute", "shop", "web")["spec"]["parentRefs"] == [parent]
