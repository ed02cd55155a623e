"""`status`: what is told of each rule, of routes that left, and of Rollouts that are gone; D7, D29, D33."""

from typing import Any

import pytest
from tests.cli.town import Town
from tests.service.world import LEDGER, header_step, route, rule, service

from rollouts_gwapi_plugin.cli.main import run
from rollouts_gwapi_plugin.model.config import DEFAULT_LABEL_KEY
from rollouts_gwapi_plugin.routes.label import ANNOTATION

HEADERS = [{"path": {"type": "PathPrefix", "value": "/"}, "headers": [{"name": "X-Test", "value": "1"}]}]


def whats(found: Any) -> list[str]:
    """Return what is said of each rule of a route."""
    return [
        f"{one['index']} {one['what']} {one['managedRoute']} {one['why']} "
        + " ".join(f"{ref['role']}={ref['weight']}" for ref in one["backends"])
        for one in found["rules"]
    ]


def test_a_rollout_with_everything(town: Town) -> None:
    """Pair, experiment, recorded managed rule, look-alike and user's rule are told apart, with their live weights."""
    shop = town.shop
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}, {"setWeight": 30}]
    town.apply()
    shop.header("canary")
    town.api.edit("HTTPRoute", "shop", "web", lambda one: one["spec"]["rules"].append(rule("c1", matches=HEADERS)))
    town.api.edit("HTTPRoute", "shop", "web", lambda one: one["spec"]["rules"].append(rule("x1")))
    town.api.create(service("b"))
    shop.weight(30, b=5)

    code, text, _ = town.run("status", "web")
    (found,) = town.json("status", "web")

    assert code == 0
    assert (found["rollout"], found["gone"], found["configMap"]) == ("shop/web", False, f"shop/{LEDGER}")
    (web,) = found["routes"]
    alike = "only the canary c is behind it; it has the headers of setHeaderRoute canary"
    assert whats(web) == [
        "0 weighted   stable=65 canary=30 experiment=5",
        f"1 look-alike  {alike} canary=1",
        "2 user's   other=1",
        "3 managed canary known by record canary=1",
    ]
    assert (web["label"], web["inProgress"], web["stale"]) == ("plugin", ["shop/web"], [])
    assert web["recorded"] == ["header route canary", "experiment backend b"]
    assert "managed header route canary, known by record" in text
    assert "s=65, c=30, b=5 (experiment)" in text
    assert "the label is on, for shop/web" in text


def test_a_lost_record(town: Town) -> None:
    """Without the record a rule is known by its name, which is what the plugin goes by, too (D7)."""
    town.shop.managed = ["canary"]
    town.apply()
    town.shop.header("canary")
    town.api.delete("ConfigMap", "shop", LEDGER)

    (found,) = town.json("status", "web")

    assert whats(found["routes"][0])[1] == "1 managed canary known by name canary=1"


def test_a_record_without_its_rule(town: Town) -> None:
    """What is on record and not on the route any more is named."""
    town.shop.managed = ["canary"]
    town.apply()
    town.shop.header("canary")
    town.api.edit("HTTPRoute", "shop", "web", lambda one: one["spec"].update(rules=[rule("s100 c0")]))

    (found,) = town.json("status", "web")

    assert found["routes"][0]["stale"] == ["managed route canary"]


def test_a_rule_with_a_name_of_its_own_is_the_users(town: Town) -> None:
    """A canary-only rule that bears a name that the plugin would not give is no look-alike (gw#217)."""
    town.api.edit(
        "HTTPRoute", "shop", "web", lambda one: one["spec"]["rules"].append(rule("c1", name="beta", matches=HEADERS))
    )

    (found,) = town.json("status", "web")

    assert whats(found["routes"][0])[1] == "1 user's   canary=1"


@pytest.mark.parametrize("trace", ["record", "annotation", "weights"])
def test_a_route_that_left_the_configuration(town: Town, trace: str) -> None:
    """A route that left is shown by its record, by the annotation, or by its weights alone, and says so (D29)."""
    town.shop.config = {"httpRoute": "web", "disableInProgressLabel": trace == "weights"}
    town.shop.managed = ["canary"] if trace == "record" else []
    town.shop.weight(30)
    if trace == "record":
        town.shop.header("canary")
    town.api.create(route(rule("s100 c0"), name="next"))
    town.shop.config = {**town.shop.config, "httpRoute": "next"}
    town.apply()

    (found,) = town.json("status", "web")

    configured, left = found["routes"]
    signs = {
        "record": "on record",
        "annotation": f"annotation {ANNOTATION}",
        "weights": "the canary has weight on it",
    }
    assert (configured["name"], configured["configured"]) == ("next", True)
    assert (left["name"], left["configured"], left["sign"]) == ("web", False, signs[trace])
    assert whats(left)[0] == "0 weighted   stable=70 canary=30"


def test_a_rollout_that_is_gone(town: Town) -> None:
    """A deleted Rollout's rules are found by its record, and its Services' names by them."""
    town.shop.managed = ["canary"]
    town.shop.weight(30)
    town.shop.header("canary")
    town.api.delete("Rollout", "shop", "web")

    everything = town.json("status")
    by_name = town.json("status", "web")

    assert everything == by_name
    (found,) = everything
    assert (found["rollout"], found["gone"]) == ("shop/web", True)
    assert whats(found["routes"][0]) == [
        "0 weighted   stable=70 canary=30",
        "1 managed canary known by record canary=1",
    ]


def test_gateways_that_refuse(town: Town) -> None:
    """What a parent says of the route is told with its reason."""
    condition = {
        "type": "Accepted",
        "status": "False",
        "reason": "NoMatchingParent",
        "message": "no",
        "observedGeneration": 1,
    }
    web = town.api.read("HTTPRoute", "shop", "web")
    parents = [{"parentRef": {"name": "gw"}, "controllerName": "example.com/gateway", "conditions": [condition]}]
    town.api.update_status({**web, "status": {"parents": parents}})

    (found,) = town.json("status")

    assert "Accepted=False, NoMatchingParent: no" in found["routes"][0]["gateways"]


def test_what_cannot_be_read(town: Town) -> None:
    """A missing route, a forbidden record and an unusable Rollout are told, and the exit code is 1."""
    town.api.delete("HTTPRoute", "shop", "web")
    assert town.run("status")[0] == 1
    assert "HTTPRoute shop/web does not exist" in town.json("status")[0]["routes"][0]["error"]

    town.api.create(route(rule("s100 c0")))
    assert town.run("status")[0] == 0
    with town.api.deny("get", "configmaps"):
        code, text, _ = town.run("status", "web")
    assert code == 1
    assert f"ConfigMap shop/{LEDGER}: get ConfigMap" in text

    town.shop.config = {}
    town.apply()
    code, text, _ = town.run("status")
    assert code == 1
    assert "No routes configured" in text


def test_names_that_are_none(town: Town) -> None:
    """A Rollout that never was, or that never named the plugin, is an error, and is not called gone."""
    code, text, _ = town.run("status", "absent")
    assert code == 1
    assert text.startswith("Rollout shop/absent (does not exist)\n")

    town.configure(plugins={})
    code, text, _ = town.run("status", "web")
    assert code == 1
    assert text.startswith("Rollout shop/web\n")
    assert "has none of the keys" in text


def test_nothing_of_the_plugin(town: Town) -> None:
    """A namespace with neither Rollout nor record nor label of the plugin is as it should be; else that is told."""
    town.api.delete("Rollout", "shop", "web")
    assert town.run("status") == (0, "nothing of this plugin in namespace shop\n", "")
    assert town.json("status") == []

    labels = {"app.kubernetes.io/managed-by": "rollouts-gwapi-plugin"}
    empty = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "r", "namespace": "shop", "labels": labels}}
    town.api.create(empty)
    code, _, complaint = town.run("status")
    assert code == 1
    assert complaint.startswith("error: no Rollout in namespace shop names this plugin")
    assert complaint.endswith("there is nevertheless ConfigMap shop/r\n")

    town.api.delete("ConfigMap", "shop", "r")
    town.api.edit("HTTPRoute", "shop", "web", lambda one: one["metadata"].update(labels={DEFAULT_LABEL_KEY: "x"}))
    assert town.run("status")[2].endswith(
        f"there is nevertheless the label {DEFAULT_LABEL_KEY} of HTTPRoute shop/web\n"
    )


@pytest.mark.parametrize(("verb", "plural"), [("list", "rollouts"), ("list", "httproutes"), ("list", "configmaps")])
def test_nothing_is_said_of_what_cannot_be_listed(town: Town, verb: str, plural: str) -> None:
    """Without the right to look everywhere it is not said that nothing is there."""
    town.api.delete("Rollout", "shop", "web")
    with town.api.deny(verb, plural, "shop"):
        code, text, _ = town.run("status")

    assert (code, text) == (1, "")


@pytest.mark.parametrize("arguments", [(), ("web",)])
def test_a_rollout_without_the_plugin(town: Town, arguments: tuple[str, ...]) -> None:
    """A Rollout that stands, and does not name the plugin any more, is not called gone; its routes are shown."""
    town.shop.weight(30)
    town.configure(plugins={})

    code, text, _ = town.run("status", *arguments)
    (found,) = town.json("status", *arguments)

    assert code == 0
    assert text.startswith("Rollout shop/web (does not name the plugin any more)\n")
    assert whats(found["routes"][0]) == ["0 weighted   stable=70 canary=30"]


def test_routes_in_another_namespace_than_the_rollout_that_is_gone(elsewhere: Town) -> None:
    """In the routes' namespace a gone Rollout is shown with its routes, wherever it was itself."""
    (found,) = elsewhere.json("status")

    assert (found["rollout"], found["absence"]) == ("app/web", "gone")
    assert [(one["namespace"], one["name"], one["inProgress"]) for one in found["routes"]] == [
        ("shop", "web", ["app/web"])
    ]


def test_it_writes_nothing(town: Town) -> None:
    """Looking changes nothing."""
    town.shop.weight(30)
    town.api.requests.clear()

    town.run("status")

    assert town.writes() == []


def test_a_kubeconfig_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """No way to a cluster is one line."""
    assert run(["status", "--kubeconfig", "/nowhere/kubeconfig"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: kubeconfig /nowhere/kubeconfig")
    assert captured.err.count("\n") == 1
