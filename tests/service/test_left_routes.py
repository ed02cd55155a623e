"""Routes that left the configuration, and routes that are gone, in all variants (decision D29, C97)."""

import json
from typing import Any

import pytest
from tests.service.world import Shop, header_step, route, rule, service

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.routes.label import ANNOTATION

NEXT = route(rule("s100 c0"), name="next")


@pytest.fixture
def left(shop: Shop, api: ApiServer) -> Shop:
    """Give a rollout in the middle: weight 30, then a header route, on `web`; `next` is there, too."""
    api.create(NEXT)
    shop.managed, shop.steps = ["canary"], [{"setWeight": 30}, {"setHeaderRoute": header_step("canary")}]
    shop.weight(30)
    shop.status["currentStepIndex"] = 1
    shop.header("canary")
    return shop


def test_a_header_route_after_the_weight_does_not_forget_who_wrote_it(left: Shop) -> None:
    """The weight is this process's although another call wrote the route after it."""
    left.config = {"httpRoute": "next"}
    left.weight(30)

    assert ["s=100 c=0"] == left.rules()
    assert ["s=70 c=30", "canary: c=1"] == left.rules("next")


def test_a_remove_gives_back_too(left: Shop) -> None:
    """An abort right after the edit: the controller sends Remove first."""
    left.config = {"httpRoute": "next"}
    left.status["abort"] = True
    left.remove()

    assert ["s=100 c=0"] == left.rules()
    assert {} == left.ledger()


def test_weights_that_somebody_else_wrote_meanwhile_stay(left: Shop, api: ApiServer) -> None:
    """Rules and label go; the user's own split is not touched."""
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"]["rules"].__setitem__(0, rule("s50 c50")))
    left.config = {"httpRoute": "next"}
    left.weight(30)
    metadata = api.read("HTTPRoute", "shop", "web")["metadata"]

    assert ["s=50 c=50"] == left.rules()
    assert not metadata.get("labels")
    assert ANNOTATION not in metadata.get("annotations", {})


def test_a_canary_only_rule_of_the_users_is_no_proof(shop: Shop, api: ApiServer) -> None:
    """Its weight equals what was written last by chance; the pair's does not."""
    api.create(NEXT)
    pinned = rule("c30", matches=[{"path": {"type": "PathPrefix", "value": "/pinned"}}])
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"]["rules"].append(pinned))
    shop.weight(30)
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"]["rules"].__setitem__(0, rule("s50 c50")))
    shop.config = {"httpRoute": "next"}
    shop.weight(30)

    assert ["s=50 c=50", "c=30"] == shop.rules()


def test_a_route_whose_label_was_taken_off_is_given_back(shop: Shop, api: ApiServer) -> None:
    """The selector takes another route now."""
    api.create(NEXT)
    api.edit("HTTPRoute", "shop", "web", lambda value: value["metadata"].update(labels={"app": "x"}))
    shop.config = {"httpRouteSelector": {"matchLabels": {"app": "x"}}}
    shop.weight(30)
    api.edit("HTTPRoute", "shop", "web", lambda value: value["metadata"].update(labels={}))
    api.edit("HTTPRoute", "shop", "next", lambda value: value["metadata"].update(labels={"app": "x"}))
    shop.weight(30)

    assert ["s=100 c=0"] == shop.rules()
    assert ["s=70 c=30"] == shop.rules("next")


def test_the_last_selected_route_is_given_back_although_the_call_fails(shop: Shop, api: ApiServer) -> None:
    """Nothing matches any more: SetWeight is an error, and what stood on the route goes all the same."""
    api.edit("HTTPRoute", "shop", "web", lambda value: value["metadata"].update(labels={"app": "x"}))
    shop.config = {"httpRouteSelector": {"matchLabels": {"app": "x"}}}
    shop.weight(30)
    api.edit("HTTPRoute", "shop", "web", lambda value: value["metadata"].update(labels={}))
    with pytest.raises(Exception, match="matches no HTTPRoute"):
        shop.weight(30)

    assert ["s=100 c=0"] == shop.rules()


def test_removing_where_nothing_is_selected_any_more_succeeds(shop: Shop) -> None:
    """The routes are gone, as a named one can be: an abort must be able to finish (C97)."""
    shop.config = {"httpRouteSelector": {"matchLabels": {"app": "x"}}}
    shop.remove()


def test_the_record_of_a_deleted_route_is_swept(left: Shop, api: ApiServer) -> None:
    """With the route its rules are gone; a route made anew under the name is the user's alone."""
    api.delete("HTTPRoute", "shop", "web")
    left.remove()
    api.create(route(rule("s100 c0"), rule("s1", name="canary")))
    left.weight(0)

    assert {} == left.ledger()
    assert ["s=100 c=0", "canary: s=1"] == left.rules()


def test_the_record_of_a_deleted_route_that_left_is_swept(left: Shop, api: ApiServer) -> None:
    """Once: later calls do not ask for the route again."""
    api.delete("HTTPRoute", "shop", "web")
    left.config, left.steps = {"httpRoute": "next"}, []
    left.weight(30)
    again = left.requests(lambda: left.weight(30))

    assert {} == left.ledger()
    assert 1 == again.count("get httproutes")


def test_a_route_of_another_namespace_is_remembered(left: Shop, api: ApiServer) -> None:
    """The configuration's namespace changed: place and ConfigMap of the old one are known."""
    other = route(rule("s100 c0"), name="web")
    other["metadata"]["namespace"] = "infra"
    for item in other["spec"]["rules"]:
        for ref in item["backendRefs"]:
            ref["namespace"] = "shop"
    api.create(other)
    left.config = {"httpRoute": "web", "namespace": "infra"}
    left.weight(30)
    there = api.read("HTTPRoute", "infra", "web")["spec"]["rules"][0]["backendRefs"]

    assert ["s=100 c=0"] == left.rules()
    assert [70, 30] == [ref["weight"] for ref in there]
    assert {} == left.ledger()


def test_experiment_backends_go_too(shop: Shop, api: ApiServer) -> None:
    """In the middle of an experiment the route leaves: its backends do not stay to point at a deleted Service."""
    api.create(NEXT)
    api.create(service("b"))
    shop.weight(20, b=10)
    shop.config = {"httpRoute": "next"}
    shop.weight(20, b=10)

    assert ["s=100 c=0"] == shop.rules()
    assert ["s=70 c=20 b=10"] == shop.rules("next")


def test_trouble_is_told_and_tried_again(left: Shop, api: ApiServer) -> None:
    """A route that can't be written now fails no call, and is given back later."""
    left.config = {"httpRoute": "next"}
    with api.deny("update", "httproutes", "shop", "web"):
        left.weight(30)
    before = left.rules()
    left.weight(30)

    assert ["s=70 c=30", "canary: c=1"] == before
    assert ["s=100 c=0"] == left.rules()


def test_a_rollout_made_anew_takes_over_its_predecessors_entries(left: Shop) -> None:
    """Another uid under the name: the entries are its own, and its Remove removes them (D5)."""
    left.metadata, left.managed, left.steps = {"uid": "uid-new"}, [], []
    left.restart()
    left.remove()

    assert ["s=70 c=30"] == left.rules()
    assert {} == left.ledger()


def test_a_rollout_made_anew_is_noted_by_its_uid(left: Shop) -> None:
    """Its own managed routes are recorded under its own uid."""
    left.metadata = {"uid": "uid-new"}
    left.header("canary", "X-Other")
    entries = json.loads(left.ledger()["httpManagedHeaderRoutes"])["rollouts"]["shop/web"]

    assert "uid-new" == entries["uid"]
    assert ["s=70 c=30", "canary: c=1"] == left.rules()


@pytest.fixture
def two_rules(shop: Shop, api: ApiServer) -> Shop:
    """Give a route with two named rules of the pair, the first of them configured and at 20."""
    api.update(route(rule("s100 c0", name="main"), rule("s100 c0", name="side"), rule("s100 x20 c0", name="third")))
    shop.config = {"httpRoute": "web", "ruleName": "main"}
    shop.managed, shop.steps = ["m"], [{"setHeaderRoute": header_step("m")}]
    shop.weight(20)
    assert shop.rules() == ["main: s=80 c=20", "side: s=100 c=0", "third: s=100 x=20 c=0", "m: c=1"]
    return shop


def test_a_rule_that_left_the_configuration_is_given_back(two_rules: Shop) -> None:
    """With another `ruleName` the rule of before is at stable, in the same write that weights the new one (D29)."""
    two_rules.config = {"httpRoute": "web", "ruleName": "side"}
    writes = two_rules.requests(lambda: two_rules.weight(40))

    assert two_rules.rules() == ["main: s=100 c=0", "side: s=60 c=40", "third: s=100 x=20 c=0", "m: c=1"]
    assert writes.count("update httproutes") == 1
    assert not [line for line in two_rules.requests(lambda: two_rules.weight(40)) if line.startswith("update")]


def test_rules_that_are_no_longer_meant_are_given_back(two_rules: Shop, api: ApiServer) -> None:
    """From all rules to one, experiments included; and from one to all."""
    two_rules.config = {"httpRoute": "web"}
    api.create(service("exp"))
    api.create(service("s"))
    two_rules.weight(20, exp=5)
    every = two_rules.rules()[:3]
    two_rules.config = {"httpRoute": "web", "ruleName": "side"}
    two_rules.weight(20, exp=5)

    assert every == ["main: s=75 c=20 exp=5", "side: s=75 c=20 exp=5", "third: s=75 x=20 c=20 exp=5"]
    assert two_rules.rules()[:3] == ["main: s=100 c=0", "side: s=75 c=20 exp=5", "third: s=100 x=20 c=0"]


def test_a_rule_whose_weights_somebody_else_wrote_stays(two_rules: Shop, api: ApiServer) -> None:
    """Nor is one given back that a restart made us forget; `status` shows it."""

    def edit(value: dict[str, Any]) -> None:
        for ref, weight in zip(value["spec"]["rules"][0]["backendRefs"], (50, 50), strict=True):
            ref["weight"] = weight

    api.edit("HTTPRoute", "shop", "web", edit)
    two_rules.config = {"httpRoute": "web", "ruleName": "side"}
    two_rules.weight(40)
    assert two_rules.rules()[:2] == ["main: s=50 c=50", "side: s=60 c=40"]

    two_rules.restart()
    two_rules.config = {"httpRoute": "web", "ruleName": "third"}
    two_rules.weight(40)
    assert two_rules.rules()[1:3] == ["side: s=60 c=40", "third: s=60 x=20 c=40"]


def test_a_route_whose_one_rule_was_weighted_is_given_back_by_that_rule(two_rules: Shop, api: ApiServer) -> None:
    """Route and rule name change at once: the old route's old rule is the one."""
    api.create(route(rule("s100 c0", name="side"), name="other"))
    two_rules.config = {"httpRoute": "other", "ruleName": "side"}
    two_rules.weight(40)

    assert two_rules.rules() == ["main: s=100 c=0", "side: s=100 c=0", "third: s=100 x=20 c=0"]
    assert two_rules.rules("other") == ["side: s=60 c=40", "m: c=1"]


@pytest.fixture
def selected(shop: Shop, api: ApiServer) -> Shop:
    """Give a rollout at 30 with a header route, on a route that is taken by its label."""
    api.create(NEXT)
    api.edit("HTTPRoute", "shop", "web", lambda value: value["metadata"].update(labels={"app": "x"}))
    shop.config = {"httpRouteSelector": {"matchLabels": {"app": "x"}}, "httpRoute": "next", "useHeaderRoutes": True}
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}]
    shop.header("canary")
    shop.weight(30)
    return shop


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("unanswered", ["list", "discovery"])
def test_a_selector_that_cannot_be_asked_gives_nothing_back(
    selected: Shop, api: ApiServer, unanswered: str, *, restarted: bool
) -> None:
    """Lists are what an API server under load refuses first; that says nothing of which routes are meant."""
    before = api.read("HTTPRoute", "shop", "web")
    if restarted or unanswered == "discovery":
        # A process that found the kind does not ask for it again.
        selected.restart()

    def is_asked(request: Request) -> bool:
        listed = request.verb == "list" and request.plural == "httproutes"
        return listed if unanswered == "list" else not request.plural and "gateway.networking" in request.path

    api.faults.add(is_asked, status=503, times=None)
    with pytest.raises(PluginError, match="503"):
        selected.weight(30)
    selected.remove()
    with pytest.raises(PluginError, match="503"):
        selected.weight(30)
    api.faults.clear()

    assert before == api.read("HTTPRoute", "shop", "web")
    selected.weight(30)
    assert ["s=70 c=30", "canary: c=1"] == selected.rules()


@pytest.mark.parametrize("is_configured", [True, False])
def test_a_kind_that_is_not_served_for_a_moment_keeps_its_record(
    selected: Shop, api: ApiServer, *, is_configured: bool
) -> None:
    """As while an API server starts: the rules are there still, and nobody else knows whose they are."""
    selected.config = {"httpRoute": "web"} if is_configured else {"tcpRoute": "none"}
    selected.restart()
    api.faults.add(lambda request: "gateway.networking.k8s.io" in request.path, status=404, times=None)
    selected.remove()
    api.faults.clear()

    assert "web" in selected.ledger()["httpManagedHeaderRoutes"]
    # What is not served is remembered for some seconds.
    selected.restart()
    selected.config = {"httpRoute": "web"}
    selected.remove()
    selected.weight(0)
    assert (["s=100 c=0"], {}) == (selected.rules(), selected.ledger())
