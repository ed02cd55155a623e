"""`simulate`: the controller's calls on the files' routes, each with its diff; nothing but files is needed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.service.world import PLUGIN_KEY, header_step, route, rule

from rollouts_gwapi_plugin.cli.main import run

Json = dict[str, Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "canary"


def rollout(*steps: Json, managed: tuple[str, ...] = (), **canary: Any) -> Json:
    """Make a Rollout shop/web of two pods."""
    routing = {"managedRoutes": [{"name": name} for name in managed], "plugins": {PLUGIN_KEY: {"httpRoute": "web"}}}
    container = {"name": "web", "image": "web:1", "ports": [{"name": "http", "containerPort": 8080}]}
    strategy = {"stableService": "s", "canaryService": "c", "steps": list(steps), "trafficRouting": routing, **canary}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 2,
            "template": {"spec": {"containers": [container]}},
            "strategy": {"canary": {key: value for key, value in strategy.items() if value is not None}},
        },
    }


@pytest.fixture
def simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Json]]:
    """Give a function that simulates objects and returns exit code and JSON."""

    def play(*objects: Json, options: tuple[str, ...] = ()) -> tuple[int, Json]:
        files = []
        for number, value in enumerate(objects):
            files.append(tmp_path / f"{number}.yaml")
            files[-1].write_text(yaml.safe_dump(value))
        routes = [word for file in files[1:] for word in ("--route", str(file))]
        code = run(["simulate", "--rollout", str(files[0]), *routes, "-o", "json", *options])
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else {"error": captured.err}

    return play


Simulate = Callable[..., tuple[int, Json]]


def calls(told: Json) -> list[str]:
    """Return each call that did something, with its step."""
    return [f"{one['step']} / {one['call']}" for one in told["calls"] if one["changes"] or one["error"] or one["notes"]]


def added(told: Json, call: str) -> list[str]:
    """Return the lines that the first such call added to the routes."""
    made = next(one for one in told["calls"] if one["call"] == call and one["changes"])
    return [line[1:].strip() for change in made["changes"] for line in change["diff"].splitlines() if line[:1] == "+"]


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    """The example's weights go up step by step and back, and the route ends as it began."""
    files = ("--rollout", str(EXAMPLE / "rollout.yaml"), "--route", str(EXAMPLE / "httproute.yaml"))

    assert run(["simulate", *files]) == 0
    captured = capsys.readouterr()

    lines = captured.out.splitlines()
    assert [line for line in lines if "  SetWeight " in line] == [
        "step 0: setWeight 20  SetWeight 20",
        "step 2: setWeight 50  SetWeight 50",
        "step 4: setWeight 100  SetWeight 100",
        "promoted  SetWeight 0",
    ]
    assert "    +      weight: 80" in lines
    assert lines[-1] == "in the end the routes are as they were before"
    assert captured.err == ""


MIRROR = {"setMirrorRoute": {"name": "shadow", "percentage": 30, "match": [{"path": {"prefix": "/m"}}]}}


def test_header_and_mirror_routes(simulate: Simulate) -> None:
    """Managed routes come with their steps, mirror rules have the weights, and all are gone in the end."""
    steps: list[Json] = [{"setWeight": 20}, {"setHeaderRoute": header_step("canary")}, MIRROR, {"pause": {}}]

    code, told = simulate(rollout(*steps, managed=("canary", "shadow")), route(rule("s100 c0")))

    assert (code, told["left"], told["problem"]) == (0, [], "")
    assert calls(told) == [
        "step 0: setWeight 20 / SetWeight 20",
        "step 1: setHeaderRoute canary / SetHeaderRoute canary",
        "step 2: setMirrorRoute shadow / SetMirrorRoute shadow",
        "after the last step / SetWeight 100",
        "promoted / RemoveManagedRoutes",
        "promoted / SetWeight 0",
    ]
    assert {"name: canary", "- name: X-Test"} <= set(added(told, "SetHeaderRoute canary"))
    assert {"name: shadow", "percent: 30", "value: /m", "weight: 80"} <= set(added(told, "SetMirrorRoute shadow"))
    assert added(told, "SetWeight 100").count("weight: 100") == 2


def test_a_managed_route_before_any_weight(simulate: Simulate) -> None:
    """While the canary has no pods the controller removes what it has set, and the next weight brings it back."""
    steps: list[Json] = [{"setHeaderRoute": header_step("canary")}, {"setWeight": 20}, {"pause": {}}]

    told = simulate(rollout(*steps, managed=("canary",)), route(rule("s100 c0")))[1]

    assert calls(told)[:3] == [
        "step 0: setHeaderRoute canary / SetHeaderRoute canary",
        "step 1: setWeight 20 / RemoveManagedRoutes",
        "step 1: setWeight 20 / SetWeight 20",
    ]
    assert {"name: canary", "weight: 20"} <= set(added(told, "SetWeight 20"))


def test_an_experiment(simulate: Simulate) -> None:
    """An experiment's backend stands while it runs, at the port that its Service has, and goes with it."""
    templates = [{"name": "a", "weight": 10, "specRef": "canary"}, {"name": "baseline", "specRef": "stable"}]

    code, told = simulate(rollout({"experiment": {"templates": templates}}, {"setWeight": 50}), route(rule("s100 c0")))

    sets = [one for one in told["calls"] if one["call"].startswith("SetWeight") and one["changes"]]
    name = sets[0]["call"].split()[2].partition("=")[0]
    assert (code, told["left"]) == (0, [])
    assert name.startswith("web-")
    assert name.endswith("-0-a")
    assert {f"name: {name}", "port: 8080", "weight: 10"} <= set(added(told, f"SetWeight 0 {name}=10"))
    assert sets[1]["call"] == "SetWeight 0"


def test_ping_pong_swaps_the_services(simulate: Simulate) -> None:
    """After an update with ping-pong the other Service is stable: the route differs, and that is told."""
    services: Json = {
        "pingPong": {"pingService": "s", "pongService": "c"},
        "stableService": None,
        "canaryService": None,
    }

    code, told = simulate(rollout({"setWeight": 50}, **services), route(rule("s100 c0")))

    assert code == 0
    assert len(told["left"]) == 1
    assert "HTTPRoute shop/web" == told["left"][0]["route"]


@pytest.mark.parametrize("step", [0, 1])
def test_an_abort(simulate: Simulate, step: int) -> None:
    """After an abort the canary has no weight and no managed route, whether the step is done or stands."""
    steps: list[Json] = [{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}]

    code, told = simulate(rollout(*steps), route(rule("s100 c0")), options=("--abort-after", str(step)))

    assert (code, told["left"]) == (0, [])
    assert calls(told) == ["step 0: setWeight 20 / SetWeight 20", "aborted / SetWeight 0"]


def test_pauses_take_no_time(simulate: Simulate) -> None:
    """A pause of hours passes at once, one without an end is promoted."""
    steps: list[Json] = [{"setWeight": 20}, {"pause": {"duration": "9h30m"}}, {"pause": {}}, {"setWeight": 60}]

    code, told = simulate(rollout(*steps), route(rule("s100 c0")))

    assert code == 0
    assert "step 3: setWeight 60 / SetWeight 60" in calls(told)


def test_a_rollout_that_cannot_go_on(simulate: Simulate) -> None:
    """A call that fails ends the simulation where the rollout would hang, with the plugin's own error."""
    code, told = simulate(rollout({"setWeight": 20}), route(rule("s100 x0")))

    assert code == 1
    assert told["problem"].startswith("first version: SetWeight: HTTPRoute shop/web: backendRef was not found")
    assert told["calls"][-1]["error"].startswith("HTTPRoute shop/web: backendRef was not found")


def test_a_warning_of_the_plugin_is_shown(simulate: Simulate) -> None:
    """What the plugin would log and make an Event of stands beside the call."""
    raw = rollout({"setHeaderRoute": header_step("r")}, managed=("r",))
    raw["spec"]["strategy"]["canary"]["trafficRouting"]["plugins"][PLUGIN_KEY] = {"httpRoutes": [{"name": "web"}]}

    code, told = simulate(raw, route(rule("s100 c0")))

    notes = [note for one in told["calls"] for note in one["notes"]]
    assert code == 0
    assert [note for note in notes if note.startswith("warn: Rollout shop/web: no configured route takes the step")]


def test_single_calls(simulate: Simulate) -> None:
    """--call makes just these calls, a managed route by its step or by a body of one's own."""
    steps: list[Json] = [{"setWeight": 20}, {"setHeaderRoute": header_step("canary")}]
    body = json.dumps(header_step("extra", "X-Extra"))
    wanted = ("set-weight=30", "set-header-route=canary", f"set-header-route={body}", "remove-managed-routes")
    options = tuple(word for call in wanted for word in ("--call", call))

    code, told = simulate(rollout(*steps, managed=("canary",)), route(rule("s100 c0")), options=options)

    assert code == 0
    assert calls(told) == [
        "call 0 / SetWeight 30",
        "call 1 / SetHeaderRoute canary",
        "call 2 / SetHeaderRoute extra",
        "call 3 / RemoveManagedRoutes",
    ]
    assert "weight: 70" in added(told, "SetWeight 30")
    assert len(told["left"]) == 1


def test_a_mirror_call(simulate: Simulate) -> None:
    """A mirror step that does not fit the kind of route is the plugin's error."""
    step = {"setMirrorRoute": {"name": "m", "match": [{"method": {"prefix": "G"}}]}}

    code, told = simulate(
        rollout(step, managed=("m",)), route(rule("s100 c0")), options=("--call", "set-mirror-route=m")
    )

    assert code == 1
    assert "the Gateway API matches methods by exact name only" in told["calls"][0]["error"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            'set-header-route={"name": 1}',
            "SetHeaderRoute can't be read: setHeaderRoute.name: Input should be a valid string, found 1",
        ),
        (
            'set-mirror-route={"name": "m", "match": 5}',
            "SetMirrorRoute can't be read: setMirrorRoute.match: Input should be a valid tuple, found 5",
        ),
    ],
)
def test_a_body_that_is_none(simulate: Simulate, call: str, text: str) -> None:
    """A body with wrong types is the call's error, in the words that the controller would get."""
    code, told = simulate(rollout(), route(rule("s100 c0")), options=("--call", call))

    assert code == 1
    assert [one["error"] for one in told["calls"]] == [f"the arguments of {text}"]


def test_a_route_from_a_cluster(simulate: Simulate) -> None:
    """A route as kubectl prints it, with what only a server gives, can be played on."""
    live = route(rule("s90 c10"))
    live["metadata"] |= {"uid": "u", "resourceVersion": "7", "generation": 3, "managedFields": [{}]}
    live["status"] = {"parents": [{"parentRef": {"name": "gw"}, "conditions": []}]}

    code, told = simulate(rollout({"setWeight": 20}), live)

    assert code == 0
    assert "first version / SetWeight 0" in calls(told)


@pytest.mark.parametrize(
    ("objects", "options", "text"),
    [
        ([route(rule("s1"))], (), "error: one Rollout is needed, the files have none"),
        ([rollout(), rollout()], (), "error: one Rollout is needed, the files have Rollout shop/web, Rollout shop/web"),
        (
            [rollout()],
            ("--call", "set-header-route=a"),
            "error: no step of the Rollout is a setHeaderRoute of managed r",
        ),
        ([rollout()], ("--call", "set-header-route={"), "error: --call setHeaderRoute: '{' is not JSON"),
        ([rollout()], ("--call", "set-header-route=" + '{"a":' * 9999), 'error: --call setHeaderRoute: \'{"a":{"a'),
        (
            [rollout({"pause": {"duration": "soon"}})],
            (),
            "error: Rollout shop/web: spec.strategy.canary.steps.0.pause.duration: found 'soon', Value error, 'soon'",
        ),
        ([rollout({"pause": "5m"})], (), "error: Rollout shop/web: spec.strategy.canary.steps.0.pause: found '5m'"),
        (
            [rollout({})],
            (),
            "error: Rollout shop/web: spec.strategy.canary.steps.0: found '{}', Value error, a step ha",
        ),
        (
            [{**rollout(), "spec": {**rollout()["spec"], "replicas": -1}}],
            (),
            "error: Rollout shop/web: spec.replicas: found '-1'",
        ),
        (
            [{**rollout(), "spec": {**rollout()["spec"], "template": {"spec": {"containers": []}}}}],
            (),
            "error: Rollout shop/web: spec.template.spec.containers: found '[]'",
        ),
        (
            [rollout(trafficRouting={"plugins": {}})],
            (),
            "error: Rollout shop/web: spec.strategy.canary.trafficRouting.pl",
        ),
        ([{**rollout(), "spec": {}}], (), "error: Rollout shop/web has no canary strategy"),
        (
            [rollout(), {**route(), "metadata": {"name": "A"}}],
            (),
            "error: the API server refuses an object of the files",
        ),
    ],
)
def test_what_cannot_be_played(simulate: Simulate, objects: list[Json], options: tuple[str, ...], text: str) -> None:
    """Wrong files and wrong calls are one line each."""
    code, told = simulate(*objects, options=options)

    assert code == 1
    assert told["error"].startswith(text)
    assert told["error"].count("\n") == 1


def test_a_wrong_command_line(tmp_path: Path) -> None:
    """Single calls can't be aborted, and a Rollout is needed."""
    file = tmp_path / "rollout.yaml"
    file.write_text(yaml.safe_dump(rollout({"setWeight": 20})))

    assert run(["simulate", "--rollout", str(file), "--call", "set-weight=1", "--abort-after", "0"]) == 2
    assert run(["simulate"]) == 2
