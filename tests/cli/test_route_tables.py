"""The commands on Gloo Platform's RouteTables: what they tell, and that nothing of a Rollout is left behind."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.town import Town, controller_config
from tests.service.gloo.world import KEPT, KEY, GlooShop, crds, destination, http, table
from tests.service.world import LEDGER, PLUGIN_KEY, Shop, header_step, route, rule, service

from rollouts_gwapi_plugin.cli.main import run
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

CONFIG = {"routeTableSelector": {"name": "web"}}
STEPS: list[dict[str, Any]] = [
    {"setWeight": 20},
    {"setHeaderRoute": header_step("canary")},
    {"setMirrorRoute": {"name": "shadow", "match": [{"path": {"prefix": "/m"}}]}},
]


@pytest.fixture
def gloo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Town]:
    """Give a namespace with the RouteTable `web`, whose one route leads to stable, and a Rollout of it."""
    with ApiServer(crds=crds()) as api:
        api.create(table(http("s", name="main")))
        for name in ("s", "c"):
            api.create(service(name))
        town = Town(api, tmp_path, capsys)
        town.shop = GlooShop(api, tmp_path, plugins={KEY: CONFIG}, managed=["canary", "shadow"], steps=STEPS)
        town.shop.status["currentStepIndex"] = 2
        town.apply()
        yield town


def stand(town: Town) -> None:
    """Let weights, a header route and a mirror stand."""
    town.shop.weight(20)
    town.shop.header("canary")
    town.shop.mirror("shadow", {"path": {"prefix": "/m"}})


def test_status(gloo: Town) -> None:
    """Every route of the RouteTable is told with its destinations, managed ones by what they are known."""
    stand(gloo)

    (found,) = gloo.json("status", "web")

    (web,) = found["routes"]
    told = {
        one["name"]: (one["what"], one["why"], [(ref["role"], ref["weight"]) for ref in one["backends"]])
        for one in web["rules"]
    }
    assert told["main"] == ("weighted", "", [("stable", 80), ("canary", 20)])
    assert told["canary"][:2] == ("managed", "known by record")
    assert told["canary"][2] == [("canary", 100)]
    assert web["recorded"] == ["header route canary", "mirror route shadow"]
    assert web["stale"] == []
    assert {one["place"] for one in web["rules"]} >= {"http[0]", "http[1]"}


@pytest.mark.parametrize("gone", [False, True])
def test_cleanup_without_a_trace(gloo: Town, *, gone: bool) -> None:
    """Table, policies and record are as before the first call, whether the Rollout is there or deleted."""
    before = gloo.api.read("RouteTable", "shop", "web")
    stand(gloo)
    assert gloo.api.list("MirrorPolicy", "shop")
    if gone:
        gloo.api.delete("Rollout", "shop", "web")

    code, text, _ = gloo.run("cleanup", "web", "-y", *(("--stable", "s", "--canary", "c", "--weights") if gone else ()))

    after = gloo.api.read("RouteTable", "shop", "web")
    assert code == 0, text
    assert after["spec"] == before["spec"]
    assert KEPT not in (after["metadata"].get("annotations") or {})
    assert gloo.api.list("MirrorPolicy", "shop") == []
    assert gloo.api.find("ConfigMap", "shop", LEDGER) is None


def test_cleanup_gives_a_canary_its_own_share_back(gloo: Town) -> None:
    """A canary that the user gave a share of its own is out of the route at rest; cleanup puts it back."""
    own = destination("c", 10, port={"name": "http-canary"})
    gloo.api.update(table({"name": "main", "forwardTo": {"destinations": [destination("s", 90), own]}}))
    before = gloo.api.read("RouteTable", "shop", "web")["spec"]
    gloo.shop.status = {"stableRS": "new", "currentPodHash": "new"}
    gloo.shop.weight(0)
    (main,) = gloo.api.read("RouteTable", "shop", "web")["spec"]["http"]
    assert main["forwardTo"]["destinations"] == [destination("s", 100)]

    code, text, _ = gloo.run("cleanup", "web", "-y")

    assert code == 0, text
    assert gloo.api.read("RouteTable", "shop", "web")["spec"] == before


def test_what_is_gone_is_found_by_what_is_kept_for_it(gloo: Town) -> None:
    """A deleted Rollout with weights only is found by the destinations that the RouteTable keeps for it."""
    gloo.shop.managed, gloo.shop.steps = [], []
    gloo.shop.weight(20)
    gloo.api.delete("Rollout", "shop", "web")

    assert [one["rollout"] for one in gloo.json("status")] == ["shop/web"]


def test_doctor(gloo: Town) -> None:
    """The RouteTable's own kinds, rights and limits are checked; the rights for MirrorPolicies are asked for, too."""
    gloo.api.create(controller_config([{"name": KEY, "location": "file:///plugins/plugin"}]))
    found = gloo.found()

    assert gloo.bad() == []
    assert "ok version: served at networking.gloo.solo.io/v2" in found
    assert [line for line in found if line.startswith("ok rights") and "has all 10 that are needed" in line]
    assert "ok pair: s and c are in rule http[0]" in found
    with gloo.api.deny("delete", "mirrorpolicies"):
        assert [line for line in gloo.bad() if "may not delete mirrorpolicies in namespace shop" in line]
    gloo.api.update(table(http("x", name="main")))
    assert [line for line in gloo.bad() if line.startswith("error pair: RouteTable shop/web: no route has the stable")]


@pytest.mark.parametrize(
    ("state", "finding"),
    [
        (None, "info gateways: no gateway says anything of it, so weights count as verified once they are written"),
        ({"approval": "ACCEPTED", "observedGeneration": 1}, "ok gateways: accepted at this generation"),
        (
            {"approval": "PENDING", "observedGeneration": 1},
            "warning gateways: RouteTable shop/web: PENDING: no message",
        ),
        (
            {"approval": "INVALID", "observedGeneration": 1, "message": "no host"},
            "error gateways: RouteTable shop/web: INVALID: no host; no weight is verified while that is so",
        ),
    ],
)
def test_what_gloo_says(gloo: Town, state: Any, finding: str) -> None:
    """The RouteTable's own state is told: nothing said, accepted, not yet, refused (D19)."""
    if state is not None:
        web = gloo.api.read("RouteTable", "shop", "web")
        gloo.api.update_status({**web, "status": {"common": {"State": state}}})

    found = gloo.found()

    assert [line for line in found if " gateways: " in line] == [finding]
    assert [line for line in found if line.startswith("ok steps: all can be taken; 1 rule now, at most 3 on")]


@pytest.mark.parametrize("command", ["lint", "simulate"])
def test_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], gloo: Town, command: str) -> None:
    """All steps can be linted and played on a RouteTable of a file, and it ends as it began."""
    raw = gloo.api.read("Rollout", "shop", "web")
    raw["spec"] |= {"replicas": 2, "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}}
    rollout, rest = tmp_path / "rollout.yaml", tmp_path / "table.yaml"
    rollout.write_text(yaml.safe_dump(raw))
    rest.write_text(yaml.safe_dump_all([*crds(), table(http("s", name="main"))]))
    files = (str(rollout), str(rest)) if command == "lint" else ("--rollout", str(rollout), "--route", str(rest))

    code = run([command, *files, "-o", "json"])
    told = json.loads(capsys.readouterr().out)

    assert code == 0, told
    if command == "lint":
        assert [one for one in told if one["severity"] in {"warning", "error"}] == []
        assert [
            one for one in told if one["text"] == "all steps can be taken; the route has 1 rule, at most 3 on the way"
        ]
    else:
        assert [one["call"] for one in told["calls"] if one["changes"]][:3] == [
            "SetWeight 20",
            "SetHeaderRoute canary",
            "SetMirrorRoute shadow",
        ]
        assert told["left"] == []


def test_a_rollout_of_both_keys(gloo: Town) -> None:
    """What the other key's process does is not called left over under this key, and not given back under it."""
    plugins = {PLUGIN_KEY: {"httpRoute": "web"}, KEY: CONFIG}
    gloo.api.create(route(rule("s100 c0")))
    gloo.configure(plugins=plugins)
    gloo.shop.settings = {"plugin_name": KEY}
    other = Shop(gloo.api, gloo.shop.folder, plugins=plugins, settings={"plugin_name": PLUGIN_KEY})
    gloo.shop.weight(20)
    other.weight(20)
    seen = {key: gloo.json("status", "web", "--plugin-name", key) for key in plugins}
    bad = [line for key in plugins for line in gloo.bad("--plugin-name", key) if "left" in line]

    code, _, _ = gloo.run("cleanup", "web", "--yes", "--weights", "--plugin-name", PLUGIN_KEY)

    assert {key: [one["kind"] for one in found[0]["routes"]] for key, found in seen.items()} == {
        PLUGIN_KEY: ["HTTPRoute"],
        KEY: ["RouteTable"],
    }
    assert (code, bad) == (0, [])
    assert other.rules() == ["s=100 c=0"]
    routes = {one["name"]: one for one in gloo.api.read("RouteTable", "shop", "web")["spec"]["http"]}
    assert [one["weight"] for one in routes["main"]["forwardTo"]["destinations"]] == [80, 20]
