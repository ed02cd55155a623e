"""`lint`: what it finds in a Rollout alone, and on the routes among its files; C102, C103, C104, C109, F17."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.linting import Json, Lint, rollout
from tests.service.world import PLUGIN_KEY, header_step, route, rule

from rollouts_gwapi_plugin.cli.main import run

Change = Callable[[Json], Any]
EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_sound_rollout_on_its_route(lint: Lint) -> None:
    """Where all is in order it says so, with the most rules that the route will have, and exits with 0."""
    steps = [{"setHeaderRoute": header_step("canary")}, {"setWeight": 20}, {"pause": {}}, {"setWeight": 50}]

    code, lines = lint(rollout(steps=steps, managed=("canary",)), route(rule("s100 c0")))

    assert code == 0
    assert lines == [
        f"ok configuration: the configuration under '{PLUGIN_KEY}' and 4 steps are in order",
        "ok steps: all steps can be taken; the route has 1 rule, at most 2 on the way",
    ]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("text", "the configuration is not JSON"),
        ({}, "No routes configured. At least one of httpRoute, httpRoutes, httpRouteSelector"),
        (
            {"grpcRoutes": [{"name": "web", "useHeaderRoutes": "false"}]},
            'grpcRoutes[0].useHeaderRoutes: found "false", true or false expected',
        ),
        ({"httpRoute": "web", "verify": "never"}, "verify: \"never\" is not allowed, 'status' or 'off' expected"),
        ({"httpRoute": "web", "inProgressLabelKey": "a b"}, "inProgressLabelKey: 'a b' is not a legal label key"),
        (
            {"httpRouteSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            "httpRouteSelector.matchExpressions[0].operator: 'Is' is none of In, NotIn",
        ),
    ],
)
def test_a_configuration_that_cannot_be_used(lint: Lint, config: Any, text: str) -> None:
    """The error has the path, the value and what was expected (C102, C105, C111)."""
    code, lines = lint(rollout(config))

    assert code == 1
    assert [text] == [text for line in lines if line.startswith("error configuration:") and text in line]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            {"httpRoute": "web", "disableInProgresLabel": True},
            "disableInProgresLabel is no key that this plugin knows, and has no effect; is disableInProgressLabel",
        ),
        ({"httpRoutes": [{"name": "web", "frobnicate": 1}]}, "httpRoutes[0].frobnicate is no key that this plugin"),
        (
            {"httpRoute": "web", "useHeaderRoutes": True},
            "useHeaderRoutes beside routes without a selector has no effec",
        ),
        ({"tcpRoutes": [{"name": "web", "useHeaderRoutes": True}]}, "tcpRoutes[0].useHeaderRoutes: a TCPRoute has no"),
    ],
)
def test_what_has_no_effect_is_a_warning(lint: Lint, config: Any, text: str) -> None:
    """Keys that are accepted and do nothing are told, and count only if asked to be strict (C103)."""
    code, lines = lint(rollout(config))

    assert code == 0
    assert [line for line in lines if line.startswith("warning") and text in line]
    assert lint(rollout(config), options=("--strict",))[0] == 1


def test_a_configuration_of_route_tables(lint: Lint) -> None:
    """Under Gloo Platform's key its own keys are known, in the depth, too."""
    raw = rollout()
    config = {"routeTableSelector": {"name": "web"}, "stableDestination": {"ref": {"nam": "s"}}, "httpRoute": "web"}
    raw["spec"]["strategy"]["canary"]["trafficRouting"]["plugins"] = {"solo-io/glooplatform": config}

    warnings = [line for line in lint(raw)[1] if line.startswith("warning unknown key")]

    assert [line.split("]: ")[1].split(" is no key")[0] for line in warnings] == [
        "httpRoute",
        "stableDestination.ref.nam",
    ]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"httpRoute": "web\n"}, "http route 'web\\n' can't be the name of an object"),
        ({"httpRoute": "web", "configMap": "a_b"}, "configMap 'a_b' can't be the name of an object"),
        ({"httpRoute": "web", "namespace": "shop\n"}, "namespace 'shop\\n' can't be the name of a namespace"),
    ],
)
def test_names_that_kubernetes_refuses(lint: Lint, config: Any, text: str) -> None:
    """A name that no object can have is an error, also where only a line break at its end makes it one."""
    code, lines = lint(rollout(config))

    assert code == 1
    assert [line for line in lines if line.startswith("error name:") and text in line]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda canary: canary.update(canaryService=""),
            "error configuration: Rollout shop/web: spec.strategy.canary.can",
        ),
        (
            lambda canary: canary["trafficRouting"].update(maxTrafficWeight=2_000_000),
            "error configuration: Rollout shop/web: spec.strategy.canary.trafficRouting.maxTrafficWeight is 2000000",
        ),
        (
            lambda canary: canary.update(steps=7),
            "error configuration: Rollout shop/web: spec.strategy.canary.steps: found",
        ),
        (
            lambda canary: canary["trafficRouting"].update(plugins={"argoproj-labs/gatewayApi": {"httpRoute": "web"}}),
            "error plugin: trafficRouting.plugins has 'argoproj-labs/gatewayApi', which is nobody's key; is 'ar",
        ),
        (
            lambda canary: canary["trafficRouting"].update(plugins={"other/router": {}}),
            "info plugin: it does not name this plugin",
        ),
    ],
)
def test_the_rollout_around_the_configuration(lint: Lint, change: Change, text: str) -> None:
    """Missing Services, an impossible maximum, wrong types and a key of nobody are found (C104, C109)."""
    broken = rollout()
    change(broken["spec"]["strategy"]["canary"])

    assert [line for line in lint(broken)[1] if line.startswith(text)]


def test_a_route_without_the_pair(lint: Lint) -> None:
    """The route among the files lacks the canary: said once, with what each rule has (C113)."""
    code, lines = lint(rollout(steps=[{"setWeight": 10}, {"setWeight": 20}]), route(rule("s100 x")))

    errors = [line for line in lines if line.startswith("error")]
    assert code == 1
    assert len(errors) == 1
    assert "canary Service c not found); found rule 0: s, x" in errors[0]


def test_limits_with_all_steps_applied(lint: Lint) -> None:
    """A route of nine rules has no room for the nine rules of a header step, and its weights are sound."""
    rules = [rule("s100 c0", matches=[{"path": {"type": "PathPrefix", "value": f"/{n}"}}]) for n in range(9)]
    steps = [{"setWeight": 10}, {"setHeaderRoute": header_step("canary")}]

    code, lines = lint(rollout(steps=steps, managed=("canary",)), route(*rules))

    errors = [line for line in lines if line.startswith("error")]
    assert code == 1
    assert len(errors) == 1
    assert "step 1: setHeaderRoute canary: " in errors[0]
    assert "spec.rules: 18 needed, the Gateway API takes 16" in errors[0]


def test_an_experiment_needs_room(lint: Lint) -> None:
    """The backends of an experiment count against the sixteen of a rule."""
    others = " ".join(f"x{letter}" for letter in "abcdefghijklmn")
    steps = [{"experiment": {"templates": [{"name": "a", "weight": 5}]}}]

    code, lines = lint(rollout(steps=steps), route(rule(f"s100 c0 {others}")))

    assert code == 1
    assert [line for line in lines if "17 backendRefs with the experiment's" in line]


def test_routes_by_selector_and_missing_ones(lint: Lint) -> None:
    """A selector picks among the files' routes by their labels; a named route that is not there is a warning."""
    labelled = route(rule("s100 c0"), name="picked")
    labelled["metadata"]["labels"] = {"team": "a"}
    config = {"httpRouteSelector": {"matchLabels": {"team": "a"}}, "httpRoutes": [{"name": "absent"}]}

    code, lines = lint(rollout(config), labelled, route(rule("x1"), name="other"))

    assert code == 0
    assert "warning route: HTTPRoute shop/absent is not among the files" in lines
    assert "ok steps: all steps can be taken; the route has 1 rule, at most 1 on the way" in lines


def test_a_broken_route(lint: Lint) -> None:
    """A route whose fields have wrong types is told by path, not by a traceback."""
    broken = route(rule("s100 c0"))
    broken["spec"]["rules"][0]["backendRefs"][0]["weight"] = "hundred"

    code, lines = lint(rollout(), broken)

    assert code == 1
    assert [line for line in lines if "spec.rules.0.backendRefs.0.weight" in line]


def test_every_example_is_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    """The published examples have neither errors nor warnings."""
    folders = sorted(file.parent for file in EXAMPLES.glob("*/rollout.yaml"))

    assert folders
    for folder in folders:
        assert (run(["lint", str(folder), "--strict"]), folder.name, capsys.readouterr().out)[:2] == (0, folder.name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "this is not YAML"),
        ("just: text", "this is no Kubernetes object"),
        ("kind: Rollout", "has no metadata"),
        ("{kind: Service, metadata: {name: a}}", "there is no Rollout in the files (found: Service)"),
    ],
)
def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str) -> None:
    """A file that can't be linted is one line on standard error."""
    file = tmp_path / "objects.yaml"
    file.write_text(text)

    assert run(["lint", str(file)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert expected in captured.err
    assert captured.err.count("\n") == 1


def test_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without JSON each finding is one line below its subject, however long, and a count ends it."""
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump(rollout(steps=[{"setWeight": 101}])))

    assert run(["lint", str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"Rollout shop/web ({file})",
        "  error   weight: steps[0].setWeight is 101; maxTrafficWeight lets it be 0 to 100",
        "  info    route: none of its routes is among the files, so nothing was played on them",
        "errors: 1, warnings: 0",
    ]


def test_folders_lists_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder's objects are read and nothing else of it, a List is its items, and a namespace is filled in."""
    web, its_route = rollout(), route(rule("s100 c0"))
    for one in (web, its_route):
        del one["metadata"]["namespace"]
    (tmp_path / "a.json").write_text(json.dumps({"kind": "List", "items": [web, its_route]}))
    (tmp_path / "notes.txt").write_text("not read")
    (tmp_path / "values.yaml").write_text("replicas: 3")
    (tmp_path / "kind.yaml").write_text("kind: Cluster")

    assert run(["lint", str(tmp_path), "-n", "elsewhere"]) == 0
    assert "HTTPRoute elsewhere/web" in capsys.readouterr().out
