"""The calls as the controller makes them, against an API server.

| what | cases |
| --- | --- |
| reads and writes of a call | C86, C11, D8, D21 |
| conflicts, drift, a list that moved | C85, C90, C96 |
| several routes, missing routes | C28, C97, X1, X2 |
| ledger trouble | D8, C94 |
| experiments | C80, D31 |
| namespaces, keys, configuration | C100, C104, C105, C110 |
| errors | C113, C114, C119 |
"""

from typing import Any

import pytest
from tests.service.world import Shop, header_step, route, rule, service

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import ConfigError, Forbidden, NotFound, PluginError, RouteError
from rollouts_gwapi_plugin.model.calls import Verification

READ_ROUTE, WRITE_ROUTE = "get httproutes", "update httproutes"
READ_LEDGER, MAKE_LEDGER, WRITE_LEDGER = "get configmaps", "create configmaps", "update configmaps"


def test_a_change_is_one_read_and_one_write(shop: Shop) -> None:
    """SetWeight reads each route once and writes it once; no ledger is touched for plain weights (D8)."""
    assert [READ_ROUTE, WRITE_ROUTE] == shop.requests(lambda: shop.weight(30))
    assert ["s=70 c=30"] == shop.rules()


def test_no_change_is_one_read(shop: Shop) -> None:
    """A hundred reconciles with the same weight write once (C86)."""
    shop.weight(30)

    def reconcile_a_hundred_times() -> None:
        for _ in range(100):
            shop.weight(30)

    assert [READ_ROUTE] * 100 == shop.requests(reconcile_a_hundred_times)


def test_every_call_of_a_finished_rollout_writes_nothing(shop: Shop) -> None:
    """RemoveManagedRoutes and SetWeight(0) for ever, as the controller does once promoted, are reads only."""
    shop.weight(0)

    made = shop.requests(shop.remove) + shop.requests(lambda: shop.weight(0)) + shop.requests(lambda: shop.verify(0))

    assert [READ_ROUTE] * 3 == made


def test_a_managed_route_costs_one_ledger_read(shop: Shop) -> None:
    """With managed routes there is one more read, and none of it writes when nothing changed."""
    shop.managed = ["canary"]
    shop.header("canary")
    shop.weight(0)

    assert [READ_ROUTE, READ_LEDGER] == shop.requests(lambda: shop.weight(0))
    assert [READ_ROUTE, READ_LEDGER] == shop.requests(lambda: shop.header("canary"))


def test_the_record_is_written_before_the_rule_and_swept_after_it(shop: Shop) -> None:
    """Adding: ledger, then route. Removing: route, then ledger (D6)."""
    shop.managed = ["canary"]

    added = shop.requests(lambda: shop.header("canary"))
    removed = shop.requests(shop.remove)

    assert [READ_ROUTE, READ_LEDGER, MAKE_LEDGER, WRITE_ROUTE, WRITE_LEDGER] == added
    assert [READ_ROUTE, READ_LEDGER, WRITE_ROUTE, WRITE_LEDGER] == removed
    assert {} == shop.ledger()


def test_a_header_route_keeps_the_canary_while_weights_move(shop: Shop) -> None:
    """The story of C40: at weight 0 the header cohort has the canary, and keeps it through the rollout."""
    shop.managed = ["canary"]
    shop.weight(0)
    shop.header("canary")
    for weight in (0, 30, 100):
        shop.weight(weight)
        assert "canary: c=1" in shop.rules()
    shop.remove()
    shop.weight(0)

    assert ["s=100 c=0"] == shop.rules()
    assert {} == shop.ledger()


def test_two_conflicts_then_success(shop: Shop, api: ApiServer) -> None:
    """A conflict is met by reading and computing again (C85)."""
    api.faults.add(verb="update", plural="httproutes", status=409, times=2)

    made = shop.requests(lambda: shop.weight(30))

    assert [READ_ROUTE, WRITE_ROUTE] * 3 == made
    assert ["s=70 c=30"] == shop.rules()


def test_a_conflict_without_end_names_the_route(shop: Shop, api: ApiServer) -> None:
    """After the bounded tries the error says which route it was (C85)."""
    api.faults.add(verb="update", plural="httproutes", status=409, times=None)

    with pytest.raises(PluginError, match="HTTPRoute shop/web: others wrote it in between"):
        shop.weight(30)


def test_a_rule_put_first_between_read_and_write_is_respected(shop: Shop, api: ApiServer) -> None:
    """A list that moved is refused by the API server and computed again on the right rule (C96)."""
    foreign = iter([lambda: api.edit("HTTPRoute", "shop", "web", lambda o: o["spec"]["rules"].insert(0, rule("x y")))])

    def write_in_between(request: Any) -> None:
        if request.verb == "update" and request.plural == "httproutes":
            next(foreign, lambda: None)()

    api.before_write(write_in_between)
    shop.weight(30)

    assert ["x=1 y=1", "s=70 c=30"] == shop.rules()


def test_a_hand_edit_is_corrected_in_one_write(shop: Shop, api: ApiServer) -> None:
    """Drift of the pair's weights is corrected by the next call (C90)."""
    shop.weight(30)
    api.edit("HTTPRoute", "shop", "web", lambda o: o["spec"].update(rules=[rule("s50 c50")]))

    assert [READ_ROUTE, WRITE_ROUTE] == shop.requests(lambda: shop.weight(30))
    assert ["s=70 c=30"] == shop.rules()


def test_one_missing_route_does_not_stop_the_others(shop: Shop) -> None:
    """The sound route is written in full, the error names the missing one (C28)."""
    shop.config = {"httpRoutes": [{"name": "missing"}, {"name": "web"}]}

    with pytest.raises(NotFound, match=r"shop/missing does not exist; create it, or correct its name or the namespace"):
        shop.weight(20)

    assert ["s=80 c=20"] == shop.rules()


def test_removing_from_a_missing_route_succeeds(shop: Shop, api: ApiServer) -> None:
    """A route that is gone needs no clean-up, and an abort can finish (C97)."""
    api.delete("HTTPRoute", "shop", "web")

    shop.remove()
    with pytest.raises(NotFound, match="web"):
        shop.weight(0)


def test_a_new_process_cleans_up_after_a_killed_one(shop: Shop) -> None:
    """Nothing that a clean-up needs is in memory only (C94)."""
    shop.managed = ["canary"]
    shop.header("canary")
    shop.restart()
    shop.remove()

    assert ["s=100 c=0"] == shop.rules()
    assert {} == shop.ledger()


def test_header_routes_come_back_with_the_next_weight(shop: Shop, api: ApiServer) -> None:
    """After a GitOps reset the next SetWeight restores what the steps ask for (C54)."""
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}, {"setWeight": 10}, {"pause": {}}]
    shop.status["currentStepIndex"] = 2
    shop.header("canary")
    shop.weight(10)
    api.edit("HTTPRoute", "shop", "web", lambda o: o["spec"].update(rules=[rule("s100 c0")]))

    shop.weight(10)

    assert ["s=90 c=10", "canary: c=1"] == shop.rules()


def test_nothing_is_restored_in_the_reconcile_of_a_remove(shop: Shop) -> None:
    """Reconciles [H W V] [RM W V] [W V]: gone after the Remove, back in the next reconcile (C54, D17)."""
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}, {"setWeight": 10}]
    shop.status["currentStepIndex"] = 1
    shop.header("canary")
    shop.weight(10)
    shop.verify(10)
    shop.remove()
    shop.weight(10)
    during = shop.rules()
    shop.verify(10)
    shop.weight(10)

    assert ["s=90 c=10"] == during
    assert ["s=90 c=10", "canary: c=1"] == shop.rules()


def test_the_remove_set_weight_loop_has_the_rule_after_every_weight(shop: Shop) -> None:
    """While the canary has no pods the controller sends RM, H, W in every reconcile of the step (C54)."""
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}]
    for _ in range(10):
        shop.remove()
        shop.header("canary")
        shop.weight(0)
        assert ["s=100 c=0", "canary: c=1"] == shop.rules()
        shop.verify(0)


@pytest.mark.parametrize("status", [{"abort": True}, {"promoteFull": True}, {"stableRS": "new"}])
def test_set_header_route_is_a_no_op_when_nothing_may_stand(shop: Shop, status: dict[str, Any]) -> None:
    """The controller sends the step right after Remove in an aborted, fully promoting or promoted rollout (D17)."""
    shop.status.update(status)

    assert [] == shop.requests(lambda: shop.header("canary"))


def test_an_experiment_reads_its_services_once(shop: Shop, api: ApiServer) -> None:
    """The Services are read when the backends are added, not again while they stand."""
    api.create(service("b"))
    api.create(service("s"))

    first = shop.requests(lambda: shop.weight(20, b=10))
    second = shop.requests(lambda: shop.weight(20, b=15))

    assert 2 == first.count("get services")
    assert [READ_ROUTE, READ_LEDGER, WRITE_ROUTE] == second
    assert ["s=65 c=20 b=15"] == shop.rules()


def test_a_missing_experiment_service_is_an_error_and_nothing_is_written(shop: Shop) -> None:
    """Stable's share is not lowered for backends that are not there (C80)."""
    with pytest.raises(RouteError, match="experiment Service shop/b can't be read"):
        shop.weight(20, b=10)

    assert ["s=100 c=0"] == shop.rules()


def test_a_missing_experiment_service_never_holds_up_an_abort(shop: Shop) -> None:
    """A call that lowers the canary lowers it, and reports the experiment (D31)."""
    shop.weight(50)

    with pytest.raises(RouteError, match="experiment Service shop/b can't be read"):
        shop.weight(20, b=10)

    assert ["s=80 c=20"] == shop.rules()


def test_experiment_backends_go_with_the_first_call_without_them(shop: Shop, api: ApiServer) -> None:
    """Also in a new process, by the ledger (E1)."""
    api.create(service("b"))
    shop.weight(20, b=10)
    shop.restart()
    shop.weight(20)

    assert ["s=80 c=20"] == shop.rules()
    assert {} == shop.ledger()


def test_a_route_that_left_the_configuration_is_given_back(shop: Shop, api: ApiServer) -> None:
    """Managed rules, label and, since this process wrote them, weights (D29)."""
    before = api.read("HTTPRoute", "shop", "web")
    api.create(route(rule("s100 c0"), name="next"))
    shop.managed = ["canary"]
    shop.header("canary")
    shop.weight(30)
    shop.config = {"httpRoute": "next"}
    shop.weight(30)
    after = api.read("HTTPRoute", "shop", "web")

    assert before["spec"] == after["spec"]
    assert "labels" not in after["metadata"]
    assert ["s=70 c=30"] == shop.rules("next")


def test_after_a_restart_the_ledger_still_knows_the_left_route(shop: Shop, api: ApiServer) -> None:
    """Then rules and label go; weights stay, since this process did not write them (D29)."""
    api.create(route(rule("s100 c0"), name="next"))
    shop.managed = ["canary"]
    shop.header("canary")
    shop.weight(30)
    shop.restart()
    shop.config = {"httpRoute": "next"}
    shop.weight(30)

    assert ["s=70 c=30"] == shop.rules("web")
    assert {} == shop.ledger()


def test_the_selector_that_matches_nothing_is_named(shop: Shop) -> None:
    """The error says selector, kind and namespace (C29)."""
    shop.config = {"httpRouteSelector": {"matchLabels": {"app": "x"}}}

    with pytest.raises(ConfigError, match=r"httpRouteSelector \(app=x\) matches no HTTPRoute in namespace shop"):
        shop.weight(20)


def test_a_forbidden_list_does_not_stop_the_named_routes(shop: Shop, api: ApiServer) -> None:
    """The named route is written, the error is about the list (D21)."""
    shop.config = {"httpRouteSelector": {"matchLabels": {"app": "x"}}, "httpRoute": "web"}

    with api.deny("list", "httproutes"), pytest.raises(Forbidden, match="list"):
        shop.weight(20)

    assert ["s=80 c=20"] == shop.rules()


def test_a_selector_costs_one_list(shop: Shop, api: ApiServer) -> None:
    """The list is the read (D21), and a route that is also named is handled once."""
    api.edit("HTTPRoute", "shop", "web", lambda o: o["metadata"].update(labels={"app": "x"}))
    shop.config = {"httpRouteSelector": {"matchLabels": {"app": "x"}}, "httpRoute": "web"}

    assert ["list httproutes", WRITE_ROUTE] == shop.requests(lambda: shop.weight(20))


def test_selector_routes_take_header_routes_where_asked_to(shop: Shop, api: ApiServer) -> None:
    """`useHeaderRoutes` is also for selectors (C32); without it the step is not silently lost (C58)."""
    api.edit("HTTPRoute", "shop", "web", lambda o: o["metadata"].update(labels={"app": "x"}))
    selector = {"httpRouteSelector": {"matchLabels": {"app": "x"}}}
    shop.config = selector
    shop.header("canary")
    without = shop.rules()
    shop.config = {**selector, "useHeaderRoutes": True}
    shop.header("canary")

    assert ["s=100 c=0"] == without
    assert ["s=100 c=0", "canary: c=1"] == shop.rules()


def test_a_route_of_another_namespace_can_be_forbidden(shop: Shop) -> None:
    """The installer limits whose routes a Rollout may rewrite (C110)."""
    shop.settings = {"allowed_namespaces": frozenset({"infra"})}
    shop.config = {"httpRoute": "web", "namespace": "other"}

    with pytest.raises(ConfigError, match="namespace 'other' in the plugin's configuration is not allowed"):
        shop.weight(20)


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ({"a/b": {}}, "has none of the keys argoproj-labs/gatewayAPI, .*; its keys: a/b. .*set --plugin-name"),
        ({"argoproj-labs/gatewayAPI": None}, "the configuration is null"),
        ({"argoproj-labs/gatewayAPI": {}}, "No routes configured. At least one of httpRoute, "),
        ({"argoproj-labs/gatewayAPI": {}, "solo-io/glooplatform": {}}, "several keys that could be meant"),
    ],
)
def test_a_configuration_that_can_not_be_used_says_why(shop: Shop, plugins: dict[str, Any], message: str) -> None:
    """Every such error names the key looked for and what was found (C104, C105)."""
    shop.plugins = plugins

    with pytest.raises(ConfigError, match=message):
        shop.weight(20)


def test_no_services_is_said_as_such(shop: Shop) -> None:
    """Neither pair given: the error is about the Rollout, not about backendRefs (C109)."""
    shop.canary = {"stableService": "", "canaryService": ""}

    with pytest.raises(ConfigError, match="canaryService and stableService must be set"):
        shop.weight(20)


def test_403_names_verb_resource_and_rule(shop: Shop, api: ApiServer) -> None:
    """An SRE can copy the missing RBAC rule from the error (C114)."""
    api.deny("update", "httproutes")

    with pytest.raises(PluginError) as raised:
        shop.weight(20)

    assert isinstance(raised.value, Forbidden) or isinstance(raised.value.__cause__, Forbidden)
    for word in ("update", "httproutes", "gateway.networking.k8s.io", "shop"):
        assert word in str(raised.value)


def test_verify_says_no_to_wrong_weights(shop: Shop) -> None:
    """Live weights must be the wanted ones."""
    shop.weight(20)

    assert Verification.VERIFIED == shop.verify(20)
    assert Verification.NOT_VERIFIED == shop.verify(30)


def test_verify_never_raises(shop: Shop, api: ApiServer) -> None:
    """The controller promotes on an error, so everything that goes wrong is "not verified" (D19)."""
    api.deny("get", "httproutes")
    denied = shop.verify(20)
    shop.plugins = {}
    unconfigured = shop.verify(20)

    assert [Verification.NOT_VERIFIED] * 2 == [denied, unconfigured]
