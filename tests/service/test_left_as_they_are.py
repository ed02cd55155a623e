"""Managed routes that are left as they are stay where they are, and never hold up the weights (D8, D14, D17, D19)."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.world import Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.model.calls import Verification

Json = dict[str, Any]
GET = {"method": {"exact": "GET"}}
TESTERS = [{"headers": [{"name": "X-Test", "value": "1"}]}]


def path(value: str) -> list[Json]:
    """Make matches of a path."""
    return [{"path": {"type": "PathPrefix", "value": value}}]


def edit(api: ApiServer, change: Callable[[list[Json]], object]) -> None:
    """Let the user edit the rules."""
    api.edit("HTTPRoute", "shop", "web", lambda value: change(value["spec"]["rules"]))


@pytest.fixture
def updating(shop: Shop) -> Shop:
    """Give a Rollout behind its steps with two header routes."""
    shop.managed = ["beta", "other"]
    shop.steps = [
        {"setHeaderRoute": header_step("beta")},
        {"setHeaderRoute": header_step("other", "X-Other")},
        {"setWeight": 20},
    ]
    shop.status["currentStepIndex"] = 2
    return shop


@pytest.mark.parametrize("position", ["last", "first"])
@pytest.mark.parametrize("verb", ["get", "update"])
def test_ledger_trouble_never_holds_up_verification(updating: Shop, api: ApiServer, verb: str, position: str) -> None:
    """A new rule of the user would get rules for testers; without the ledger it has none, and all weights are right."""
    updating.config["managedRoutePosition"] = position
    updating.header("beta")
    updating.header("other", "X-Other")
    updating.weight(10)
    edit(api, lambda rules: rules.append(rule("s100 c0", matches=path("/new"))))
    api.faults.add(verb=verb, plural="configmaps", status=403, times=None)

    for _ in range(2):
        updating.weight(20)
        assert updating.verify(20) is Verification.VERIFIED
    assert sorted(updating.rules()) == ["beta: c=1", "other: c=1", "s=80 c=20", "s=80 c=20"]


def test_a_refused_managed_route_never_holds_up_verification(updating: Shop, api: ApiServer) -> None:
    """A policy denies what the new rule of the user's would need."""
    updating.header("beta")
    updating.header("other", "X-Other")
    updating.weight(10)
    edit(api, lambda rules: rules.append(rule("s100 c0", matches=path("/new"))))
    api.faults.add(lambda request: request.verb == "update" and b'"beta-1"' in request.raw_body, status=422, times=None)

    updating.weight(20)

    assert updating.verify(20) is Verification.VERIFIED


def test_a_header_rule_stays_before_the_rule_that_it_ties_with(updating: Shop, api: ApiServer) -> None:
    """A 17th rule would be needed, so all managed rules stay: testers of X-Test keep the canary."""
    others = [rule("x1", matches=path(f"/x{index}")) for index in range(10)]
    api.update(route(rule("s100 c0"), rule("s100 c0", name="testers", matches=TESTERS), *others))
    updating.header("beta")
    updating.header("other", "X-Other")
    updating.weight(10)
    edit(api, lambda rules: rules.insert(0, rule("s90 c10", matches=path("/new"))))
    before = updating.rules()

    updating.weight(20)

    moved = [line.replace("s=90 c=10", "s=80 c=20") for line in before]
    assert updating.rules() == moved
    assert moved.index("beta-1: c=1" if "beta-1: c=1" in moved else "beta: c=1") < moved.index("testers: s=80 c=20")
    assert updating.verify(20) is Verification.VERIFIED


def test_a_mirror_rule_that_stands_last_stays(shop: Shop, api: ApiServer) -> None:
    """The user has moved the source before it, and the ledger is out of reach."""
    shop.managed = ["shadow"]
    shop.steps = [{"setMirrorRoute": {"name": "shadow", "match": [GET]}}, {"setWeight": 20}]
    shop.status["currentStepIndex"] = 1
    api.update(route(rule("s100 c0", name="main")))
    shop.mirror("shadow", GET)
    shop.weight(10)
    edit(api, lambda rules: rules.reverse())
    api.faults.add(verb="get", plural="configmaps", status=403, times=None)

    shop.weight(20)

    assert shop.rules() == ["main: s=80 c=20", "shadow: s=80 c=20"]
    assert shop.verify(20) is Verification.VERIFIED


@pytest.mark.parametrize("rule_name", ["", "main"])
@pytest.mark.parametrize("edited", ["swapped", "parted"])
def test_an_abort_is_followed_by_a_copy_that_was_moved(shop: Shop, api: ApiServer, edited: str, rule_name: str) -> None:
    """Another Rollout mirrors the shared rule; its copy has the same shares of everybody, wherever it stands (W3)."""
    shop.managed = ["shadow"]
    shop.steps = [{"setMirrorRoute": {"name": "shadow", "match": [GET]}}, {"setWeight": 20}]
    shop.status["currentStepIndex"] = 1
    api.update(route(rule("s100 c0 t100 d0", name="main")))
    side = Shop(
        api,
        shop.folder,
        config={"httpRoute": "web", **({"ruleName": rule_name} if rule_name else {})},
        metadata={"name": "side", "uid": "uid-side"},
        canary={"stableService": "t", "canaryService": "d"},
        status=dict(shop.status),
    )
    shop.mirror("shadow", GET)
    shop.weight(20)
    side.weight(50)
    between = rule("x1", name="new", matches=path("/new"))
    edit(api, lambda rules: rules.reverse() if edited == "swapped" else rules.insert(1, between))

    side.status["abort"] = True
    side.remove()
    side.weight(0)

    ours = {line for line in side.rules() if not line.startswith("new")}
    assert ours == {"main: s=80 c=20 t=100 d=0", "shadow: s=80 c=20 t=100 d=0"}
    assert side.verify(0) is Verification.VERIFIED
