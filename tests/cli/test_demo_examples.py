"""Every example: its manifests are sound, its rights are the smallest, and played it does what it says.

Each is played at the speed of `demo --fast`. What is checked inside the play (shares within three sigma, nothing lost,
routes and ledger as they should be) is held against plugins that get it wrong.
"""

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from rollouts_gwapi_plugin.cli.demo import FAST_SPEED
from rollouts_gwapi_plugin.cli.demo.asked import Expectation
from rollouts_gwapi_plugin.cli.demo.examples import DESCRIPTION, example_names, examples_folder, load_example
from rollouts_gwapi_plugin.cli.demo.play import Options, Play
from rollouts_gwapi_plugin.cli.demo.plot import draw
from rollouts_gwapi_plugin.cli.demo.result import Result
from rollouts_gwapi_plugin.cli.lint import lint
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.embedded.sandbox import PLUGIN_AGENT

REPOSITORY = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "rollouts_gwapi_plugin")
# For a kind cluster's tools and for the demo, not for a cluster.
NOT_OBJECTS = {DESCRIPTION, "kind.yaml", "controller-patch.yaml"}
ROLLOUTS_MODULE = "github.com/argoproj/argo-rollouts@v1.9.2"
GatewayApiCrds = Callable[[str, str], list[dict[str, Any]]]
Rights = set[tuple[str, str, str]]


def manifest_files(name: str) -> list[Path]:
    """Return the files of an example that are for a cluster."""
    return sorted(path for path in (examples_folder() / name).glob("*.yaml") if path.name not in NOT_OBJECTS)


def documents(name: str) -> Iterator[Any]:
    """Give the objects of an example, its namespace first."""
    found = [one for path in manifest_files(name) for one in yaml.safe_load_all(path.read_text())]
    yield from sorted(found, key=lambda one: one["kind"] != "Namespace")


@cache
def rollout_crd() -> Any:
    """Return Argo Rollouts' own definition of a Rollout, out of its Go module."""
    command = ["go", "mod", "download", "-json", ROLLOUTS_MODULE]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    path = Path(json.loads(done.stdout)["Dir"]) / "manifests" / "crds" / "rollout-crd.yaml"
    return next(yaml.load_all(path.read_bytes(), _loader()))


def _loader() -> type[yaml.SafeLoader]:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def apply(api: ApiServer, name: str) -> list[str]:
    """Create all objects of an example as `kubectl apply --validate=strict` would; return the refusals."""
    refused: list[str] = []
    host, port = api.url.removeprefix("http://").split(":")
    client = http.client.HTTPConnection(host, int(port), timeout=30)
    for one in documents(name):
        found = api.registry.of_object(one["apiVersion"], one["kind"])
        assert found is not None, f"{one['apiVersion']} {one['kind']} is not served"
        kind, _ = found
        root = f"/apis/{one['apiVersion']}" if "/" in one["apiVersion"] else f"/api/{one['apiVersion']}"
        place = f"/namespaces/{one['metadata']['namespace']}" if kind.namespaced else ""
        path = f"{root}{place}/{kind.plural}?fieldValidation=Strict"
        client.request("POST", path, json.dumps(one), {"content-type": "application/json"})
        answer = client.getresponse()
        text = json.loads(answer.read())
        if answer.status != http.client.CREATED:
            refused.append(f"{one['kind']}: {text['message']}")
    client.close()
    return refused


@pytest.mark.parametrize("name", example_names())
def test_an_api_server_takes_the_manifests(name: str) -> None:
    """The objects fit together: each has a namespace that is made first, and a kind that is served."""
    with ApiServer(strict_namespaces=True) as api:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argo-rollouts"}})

        assert apply(api, name) == []


@pytest.mark.go
@pytest.mark.parametrize("channel", ["standard", "experimental"])
def test_the_real_definitions_take_the_manifests(gateway_api_crds: GatewayApiCrds, channel: str) -> None:
    """Gateway API 1.6 in both channels and Argo Rollouts know every field, and find every value allowed."""
    with ApiServer(crds=[*gateway_api_crds("1.6.3", channel), rollout_crd()], strict_namespaces=True) as api:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argo-rollouts"}})
        refused = {name: apply(api, name) for name in example_names()}

    # The GatewayClass is the same in all, so the first one's stands; so is what the controller is told.
    shared = r'(gatewayclasses\.gateway\.networking\.k8s\.io "envoy"|configmaps "argo-rollouts-config") already exists'
    assert {name: [one for one in found if not re.search(shared, one)] for name, found in refused.items()} == {
        name: [] for name in example_names()
    }


@pytest.mark.go
def test_the_real_definitions_are_strict(gateway_api_crds: GatewayApiCrds, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above sees a field that nobody knows, and a value that is not allowed."""
    broken = list(documents("canary"))
    for one in broken:
        if one["kind"] == "HTTPRoute":
            one["spec"]["rules"][0]["backendRefs"][0]["weight"] = -1
        if one["kind"] == "Rollout":
            one["spec"]["strategy"]["canary"]["stableservice"] = "x"
    monkeypatch.setitem(globals(), "documents", lambda _: iter(broken))
    with ApiServer(crds=[*gateway_api_crds("1.6.3", "standard"), rollout_crd()]) as api:
        refused = apply(api, "canary")

    assert [text.partition(":")[0] for text in refused] == ["HTTPRoute", "Rollout"]


@pytest.mark.parametrize("name", example_names())
def test_lint(name: str) -> None:
    """The plugin's own check has nothing to say, not even a warning, and plays all steps."""
    files = [str(path) for path in manifest_files(name)]
    done = CliRunner().invoke(lint, ["--strict", *files], standalone_mode=False)

    assert done.exception is None
    assert done.return_value == 0, done.output
    assert "all steps can be taken" in done.output
    assert "errors: 0, warnings: 0" in done.output


@pytest.mark.parametrize("name", example_names())
def test_readme(name: str) -> None:
    """A README names files that are there, each of its folder's, and what the demo is called."""
    folder = examples_folder() / name
    text = (folder / "README.md").read_text()
    paths = re.findall(r"examples/[\w./-]+\.yaml", text)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    listed = set(re.findall(r"`([\w.-]+\.yaml)`", text))

    assert [path for path in paths if not (REPOSITORY / path).is_file()] == []
    assert [link for link in links if not (folder / link).is_file()] == []
    assert listed == {path.name for path in folder.glob("*.yaml")}
    assert f"demo --example {name}\n" in text
    assert f"[{name}]({name}/README.md)" in (examples_folder() / "README.md").read_text()


def test_shared_parts() -> None:
    """What the controller is told, and the GatewayClass, are the same in all examples; Gloo's adds a second name."""
    told = {
        path.parent.name: path.read_text()
        for path in examples_folder().glob("*/argo-rollouts-config.yaml")
        if path.parent.name != "install"
    }
    gloo = yaml.safe_load(yaml.safe_load(told.pop("gloo"))["data"]["trafficRouterPlugins"])
    configurations = set(told.values())
    (others,) = (yaml.safe_load(yaml.safe_load(one)["data"]["trafficRouterPlugins"]) for one in configurations)
    classes = {
        json.dumps(one, sort_keys=True)
        for name in example_names()
        for one in documents(name)
        if one["kind"] == "GatewayClass"
    }

    assert (len(configurations), len(classes)) == (1, 1)
    assert gloo == [*others, {**others[0], "name": "solo-io/glooplatform"}]


def granted(name: str) -> Rights:
    """Return group, resource and verb of everything that an example's roles allow."""
    return {
        (group, resource, verb)
        for one in documents(name)
        if one["kind"] in {"Role", "ClusterRole"}
        for rule in one["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(requests: Iterator[Request]) -> Rights:
    """Return what the plugin has asked for beyond what everybody may."""
    asked = [one for one in requests if one.user_agent.startswith(PLUGIN_AGENT) and one.plural]
    return {(one.group, one.plural, one.verb) for one in asked}


def rows(result: Result) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Return asked share and hits by stage, cohort and name; copies are `copied to NAME`."""
    return {
        (one.stage, one.cohort, f"copied to {one.name}" if one.copies else one.name): (one.asked, one.hits)
        for one in result.shares
    }


# What must be in an example's table, beyond what the play itself checks: (stage, cohort, name) and the share.
Told = dict[tuple[str, str, str], float]
TESTERS_FIRST: Told = {
    ("weight 0, testers", "testers", "yellow"): 1.0,
    ("weight 0, testers", "everyone", "yellow"): 0.0,
    ("weight 20, testers", "everyone", "yellow"): 0.2,
}
TOLD: dict[str, Told] = {
    "canary": {("weight 20", "everyone", "yellow"): 0.2, ("promoted", "everyone", "yellow"): 1.0},
    "header-routing": {
        **TESTERS_FIRST,
        ("weight 0", "testers", "yellow"): 0.0,
        ("weight 20, testers", "testers", "yellow"): 1.0,
        ("weight 50, testers", "testers", "yellow"): 1.0,
        ("promoted", "testers", "yellow"): 1.0,
    },
    "mirror": {
        ("weight 0, shadow", "readers", "v2"): 0.0,
        ("weight 0, shadow", "readers", "copied to v2"): 0.3,
        ("weight 0, shadow", "writers", "copied to v2"): 0.0,
        ("weight 20, shadow", "readers", "copied to v2"): 0.3,
        ("weight 50", "readers", "copied to v2"): 0.0,
    },
    "experiment": {
        ("weight 0, experiment", "everyone", "blue"): 0.7,
        ("weight 0, experiment", "everyone", "baseline"): 0.05,
        ("weight 0, experiment", "everyone", "candidate"): 0.25,
        ("weight 0, experiment", "everyone", "web-canary"): 0.0,
        ("weight 0", "everyone", "yellow"): 0.0,
        ("weight 50", "everyone", "yellow"): 0.5,
    },
    "grpc": {
        ("weight 0, testers", "testers", "v2"): 1.0,
        ("weight 0, testers", "everyone", "v2"): 0.0,
        ("weight 20, testers", "other method", "v2"): 0.2,
    },
    "tcp": {("weight 25", "connections", "yellow"): 0.25, ("promoted", "connections", "yellow"): 1.0},
    "tls": {("weight 25", "connections", "v2"): 0.25, ("promoted", "connections", "v2"): 1.0},
    "gloo": {
        **TESTERS_FIRST,
        ("weight 0", "everyone", "yellow"): 0.0,
        ("weight 0, testers, shadow", "everyone", "copied to yellow"): 0.3,
        ("weight 0, testers, shadow", "testers", "yellow"): 1.0,
        ("weight 20, testers", "everyone", "copied to yellow"): 0.0,
        ("promoted", "everyone", "yellow"): 1.0,
    },
    "multi-route": {
        ("weight 0, testers", "site, testers", "v2"): 1.0,
        ("weight 0, testers", "orders, testers", "v2"): 1.0,
        ("weight 50, testers", "api, legacy", "v2"): 0.0,
        ("weight 50, testers", "orders", "v2"): 0.5,
        ("weight 50, testers", "raw", "v2"): 0.5,
    },
}


@pytest.mark.parametrize("name", example_names())
def test_play(name: str, tmp_path: Path) -> None:
    """Played fast, every figure is right, nothing is lost, all rights are used and no other, and all is told."""
    lines: list[str] = []
    play = Play(load_example(name), Options(COMMAND, FAST_SPEED))
    result = play.run(lines.append)
    found = rows(result)

    assert result.problems == (), lines
    assert result.lost == []
    assert {row: found[row][0] for row in TOLD[name]} == pytest.approx(TOLD[name])
    rights = used(iter(play._sandbox.api.requests))
    assert granted(name) - NOT_ALWAYS.get(name, set()) <= rights <= granted(name)
    draw(result, tmp_path / "demo.svg")
    drawn = (tmp_path / "demo.svg").read_text()
    for cohort, backend in {(cohort, backend) for _, cohort, backend in found if backend != "web-canary"}:
        assert f"{cohort}: {backend}<" in drawn


# What a play need not use: the canary example's role is for routes by selector, too, as its comment says; and a route
# that is found by a selector is read again only after a conflict or while its gateway is waited for. A MirrorPolicy is
# changed when its step or somebody else's hand changes it.
NOT_ALWAYS: dict[str, Rights] = {
    "canary": {("gateway.networking.k8s.io", "httproutes", "list")},
    "gloo": {("trafficcontrol.policy.gloo.solo.io", "mirrorpolicies", "update")},
    "multi-route": {("gateway.networking.k8s.io", "httproutes", "get")},
}


def test_every_example_is_told() -> None:
    """No example is without a line above."""
    assert sorted(TOLD) == example_names()


def test_experiment_leaves_nothing() -> None:
    """While it runs two backends are added and recorded; then stable has 100, the canary 0, and there is no trace."""
    play = Play(load_example("experiment"), Options(COMMAND, 2 * FAST_SPEED))
    result = play.run(lambda _: None)
    held = [stage for stage in result.stages if stage.held]
    index = next(index for index, stage in enumerate(held) if stage.name == "weight 0, experiment")
    during, after, last = held[index], held[index + 1], held[-1]

    assert result.problems == ()
    assert (during.routes[0].added_backends, during.ledger) == (2, 1)
    assert [weight for _, weight in during.routes[0].weights[0]] == [70, 0, 5, 25]
    for stage in (after, last):
        assert stage.routes[0].weights == ((("web-stable", 100), ("web-canary", 0)),)
        assert (stage.routes[0].added_backends, stage.routes[0].added_rules, stage.ledger) == (0, 0, 0)
    # What the API has at the end is the manifest, and the experiment's Services are gone.
    services = [one["metadata"]["name"] for one in play._sandbox.api.list("Service", "experiment")]
    assert services == ["web-canary", "web-stable"]


def test_a_stage_that_does_not_come() -> None:
    """A stage that an example speaks of and that did not take place is wrong, whatever else is right."""
    example = load_example("canary")
    expectations = {"everyone": Expectation(shares={"weight 33": {"yellow": 0.33}})}
    play = Play(replace(example, expectations=expectations), Options(COMMAND, 2 * FAST_SPEED))

    assert play.run(lambda _: None).problems == ("the stage 'weight 33' did not take place",)
