"""MirrorPolicies: there before their routes, gone after them, on record all the time (decisions D6, D8, D16)."""

import json

import pytest
from tests.service.gloo.world import MIRROR_LABEL, GlooShop, http, table
from tests.service.world import LEDGER

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import Forbidden, LedgerError, PluginError, RouteError

GET = {"method": {"exact": "GET"}}


@pytest.fixture
def mirroring(shop: GlooShop) -> GlooShop:
    """Give a shop in the middle of an update with the mirror route `m`."""
    shop.managed = ["m"]
    shop.steps = [{"setMirrorRoute": {"name": "m", "match": [GET], "percentage": 30}}, {"setWeight": 20}]
    shop.status = {"stableRS": "old", "currentPodHash": "new", "currentStepIndex": 1}
    return shop


def test_order_of_writes(mirroring: GlooShop) -> None:
    """Setting: record, policy, route. Removing: route, policy, record."""
    set_calls = mirroring.requests(lambda: mirroring.mirror("m", GET, percentage=30))
    remove_calls = mirroring.requests(mirroring.remove)

    writes = [[call for call in calls if not call.startswith("get")] for calls in (set_calls, remove_calls)]
    assert writes[0][:3] == ["create configmaps", "create mirrorpolicies", "update routetables"]
    assert writes[1] == ["update routetables", "delete mirrorpolicies", "update configmaps"]


def test_a_policy_selects_exactly_its_route(mirroring: GlooShop) -> None:
    """By the one label that only this route has; it belongs to the RouteTable, and says whose it is."""
    mirroring.mirror("m", GET, percentage=30)

    route = mirroring.live()["spec"]["http"][0]
    ((name, spec),) = mirroring.policies().items()
    assert spec["applyToRoutes"] == [{"route": {"labels": {MIRROR_LABEL: name}}}]
    assert route["labels"] == {MIRROR_LABEL: name}
    metadata = mirroring.api.read("MirrorPolicy", "shop", name)["metadata"]
    assert metadata["ownerReferences"][0]["uid"] == mirroring.live()["metadata"]["uid"]
    assert metadata["annotations"] == {
        "rollouts.argoproj.io/rollout": "shop/web", "rollouts.argoproj.io/managed-route": "web/m"
    }  # fmt: skip


def test_the_same_names_on_two_tables_have_policies_of_their_own(api: ApiServer, mirroring: GlooShop) -> None:
    """A label is unique in the workspace, not only in its RouteTable."""
    for name in ("web", "web2"):
        if name != "web":
            api.create(table(http("s", "main"), name=name))
        live = mirroring.live(name)
        live["metadata"]["labels"] = {"app": "x"}
        api.update(live)
    mirroring.configure(routeTableSelector={"labels": {"app": "x"}})

    mirroring.mirror("m", GET)

    assert len(mirroring.policies()) == 2
    assert [mirroring.lines(name) for name in ("web", "web2")] == [["m: s=-", "main: s=-"]] * 2
    mirroring.remove()
    assert mirroring.policies() == {}


def test_a_changed_or_deleted_policy_is_put_right(mirroring: GlooShop) -> None:
    """Each SetWeight looks at it; what others added to its metadata stays, and nothing is written without need."""
    mirroring.weight(20)
    (name,) = mirroring.policies()
    good = mirroring.policies()[name]
    policy = mirroring.api.read("MirrorPolicy", "shop", name)
    policy["spec"]["config"]["percentage"] = 100
    policy["metadata"]["labels"]["team"] = "a"
    mirroring.api.update(policy)

    mirroring.weight(20)

    assert good == mirroring.policies()[name]
    assert mirroring.api.read("MirrorPolicy", "shop", name)["metadata"]["labels"]["team"] == "a"
    mirroring.api.delete("MirrorPolicy", "shop", name)
    mirroring.weight(20)
    assert good == mirroring.policies()[name]
    assert not [call for call in mirroring.requests(lambda: mirroring.weight(20)) if not call.startswith("get")]


def test_a_step_without_rights_fails_and_writes_no_route(mirroring: GlooShop) -> None:
    """The error names the verb, the resource and its group, and the RouteTable stays without a copy."""
    with mirroring.api.deny("create", "mirrorpolicies"), pytest.raises(PluginError) as raised:
        mirroring.mirror("m", GET, percentage=30)

    for part in ("create", "mirrorpolicies", "trafficcontrol.policy.gloo.solo.io", "RouteTable shop/web"):
        assert part in str(raised.value)
    assert mirroring.lines() == ["main: s=-"]
    assert isinstance(raised.value, Forbidden) or isinstance(raised.value.__cause__, Forbidden)


def test_weights_do_not_wait_for_a_policy(mirroring: GlooShop) -> None:
    """SetWeight sets weights and copies the route, tells of the policy, and makes it when it can."""
    with mirroring.api.deny("create", "mirrorpolicies"):
        mirroring.weight(20)
    assert mirroring.lines() == ["m: s=80 c=20", "main: s=80 c=20"]
    assert mirroring.policies() == {}

    mirroring.weight(20)
    assert len(mirroring.policies()) == 1


def test_a_policy_that_can_t_be_deleted_stays_on_record(mirroring: GlooShop) -> None:
    """RemoveManagedRoutes takes the routes off and succeeds; the policy goes by the next call that may delete it."""
    mirroring.mirror("m", GET, percentage=30)
    with mirroring.api.deny("delete", "mirrorpolicies"):
        mirroring.remove()
    assert mirroring.lines() == ["main: s=-"]
    assert len(mirroring.policies()) == 1
    assert "routeTableManagedMirrorRoutes" in mirroring.recorded()

    mirroring.remove()
    assert mirroring.policies() == {}
    assert mirroring.recorded() == {}


def test_with_a_lost_ledger_the_policy_is_found_by_its_route(mirroring: GlooShop) -> None:
    """The label says whose the route is, and so what its policy is called."""
    mirroring.mirror("m", GET, percentage=30)
    mirroring.api.delete("ConfigMap", "shop", LEDGER)

    mirroring.remove()

    assert mirroring.policies() == {}
    assert mirroring.lines() == ["main: s=-"]


def test_without_a_ledger_a_mirror_is_refused_and_removed_all_the_same(mirroring: GlooShop) -> None:
    """What can't be recorded is not made; what bears our label goes (D8)."""
    mirroring.mirror("m", GET, percentage=30)
    with mirroring.api.deny("get", "configmaps"):
        with pytest.raises(LedgerError, match="can't be recorded"):
            mirroring.mirror("n", GET, percentage=30)
        mirroring.remove()

    assert mirroring.policies() == {}
    assert mirroring.lines() == ["main: s=-"]


def test_without_the_kind_a_mirror_step_says_what_is_missing(api: ApiServer, mirroring: GlooShop) -> None:
    """A cluster without MirrorPolicies takes weights and header routes; a mirror step names the kind and its group."""
    api.delete("CustomResourceDefinition", "", "mirrorpolicies.trafficcontrol.policy.gloo.solo.io")
    mirroring.steps = []
    mirroring.header("h")
    mirroring.weight(20)

    with pytest.raises(PluginError, match=r"(?s)mirrorpolicies.*trafficcontrol\.policy\.gloo\.solo\.io|MirrorPolicy"):
        mirroring.mirror("m", GET)
    mirroring.remove()
    assert mirroring.lines() == ["main: s=80 c=20"]


def test_a_route_table_that_left_the_configuration_is_given_back(api: ApiServer, mirroring: GlooShop) -> None:
    """Copies, policies, canary and annotation go by the next call, also by a new process (D29)."""
    api.create(table(http("s", "main"), name="next"))
    before = mirroring.live()["spec"]
    mirroring.weight(20)
    mirroring.header("h")
    mirroring.configure(routeTableName="next")
    mirroring.restart()

    mirroring.weight(30)

    assert before == mirroring.live()["spec"]
    assert mirroring.kept() == {}
    assert mirroring.lines("next") == ["m: s=70 c=30", "main: s=70 c=30"]
    assert len(mirroring.policies()) == 1
    assert set(mirroring.recorded()["routeTableManagedMirrorRoutes"]["shop/web"]["routes"]) == {"next"}


def test_another_rollouts_policies_stay(api: ApiServer, mirroring: GlooShop) -> None:
    """Two Rollouts with equal names of managed routes on one RouteTable do not meet."""
    live = mirroring.live()
    live["spec"]["http"].append(http("t", "side"))
    api.update(live)
    mirroring.weight(20)
    other = GlooShop(api, mirroring.folder, managed=["m"], metadata={"name": "side", "uid": "uid-side"})
    other.canary = {"stableService": "t", "canaryService": "d"}
    other.configure(routeTableName="web")
    other.mirror("m", GET, percentage=5)
    other.header("h")
    assert mirroring.lines() == ["m: s=80 c=20", "main: s=80 c=20", "h: d=-", "m-1: t=-", "side: t=-"]
    assert len(mirroring.policies()) == 2

    mirroring.remove()
    assert mirroring.lines() == ["main: s=80 c=20", "h: d=-", "m-1: t=-", "side: t=-"]
    assert [spec["config"]["percentage"] for spec in mirroring.policies().values()] == [5]
    assert not [call for call in other.requests(lambda: other.mirror("m", GET, percentage=5)) if "update" in call]


def test_a_mirror_that_no_route_can_take_writes_nothing(mirroring: GlooShop) -> None:
    """A step that is refused leaves no record and no policy behind."""
    before = json.dumps(mirroring.live())

    with pytest.raises(RouteError, match="methods by exact name"):
        mirroring.mirror("m", {"method": {"exact": "GRAB"}})
    assert before == json.dumps(mirroring.live())
    assert mirroring.policies() == {}
    assert mirroring.recorded() == {}
