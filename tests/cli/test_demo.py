"""The demo: what it measures, what it plays, and that it fails when something is wrong."""

import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from rollouts_gwapi_plugin.cli.demo import demo, examples
from rollouts_gwapi_plugin.cli.demo.examples import example_names, examples_folder, load_example
from rollouts_gwapi_plugin.cli.demo.play import Options, Play, State
from rollouts_gwapi_plugin.cli.demo.view import LiveView, PlainView, make_view
from rollouts_gwapi_plugin.embedded.load import Answer, Load
from rollouts_gwapi_plugin.errors import ConfigError

REPOSITORY = Path(__file__).parents[2]
# Each stage lasts half a second.
QUICK = ["--speed", "60", "--plain"]


def answers(old: int, new: int, lost: int = 0, since: float = 0.0) -> list[Answer]:
    """Return so many answers of both versions to everyone."""
    backends = ["old"] * old + ["new"] * new + [""] * lost
    return [
        Answer("everyone", since + index * 0.001, 0.01, 200 if name else 503, name)
        for index, name in enumerate(backends)
    ]


def test_examples() -> None:
    """Each folder with a demo.yaml can be loaded, and its Rollout names the Services that are there."""
    assert "canary" in example_names()
    for example in map(load_example, example_names()):
        named = {(one["kind"], one["metadata"]["name"]) for one in example.manifests}
        canary = example.rollout["spec"]["strategy"]["canary"]
        assert {("Service", canary["stableService"]), ("Service", canary["canaryService"])} <= named
        assert sum(kind in {"Gateway", "VirtualGateway"} for kind, _ in named) == 1
        assert example.cohorts


def test_unknown_example() -> None:
    """A name that is not there is answered with those that are."""
    with pytest.raises(ConfigError, match=r"no example 'nothing' to play; there are .*canary"):
        load_example("nothing")


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "1e9"])
def test_speeds_that_are_none(value: str) -> None:
    """A speed that can't be played is a wrong command line."""
    result = CliRunner().invoke(demo, ["--speed", value])

    assert result.exit_code == 2
    assert "Invalid value for '--speed'" in result.output


def test_list() -> None:
    """`--example list` names what can be played."""
    lines = CliRunner().invoke(demo, ["--example", "list"]).output.splitlines()

    assert [line.split()[0] for line in lines] == example_names()
    assert lines[0] == "canary          A canary rollout: 0, 20, 50, 100 percent, done"


def test_wheel_has_the_examples(tmp_path: Path) -> None:
    """The built wheel carries the examples where an installed demo looks for them."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True, timeout=100)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    for path in (examples_folder() / "canary").iterdir():
        assert f"rollouts_gwapi_plugin/examples/canary/{path.name}" in names


@pytest.mark.parametrize("transport", ["netrpc", "grpc"])
def test_demo(tmp_path: Path, transport: str) -> None:
    """As a program, over either transport: every stage is right, nothing is lost, and the picture is drawn."""
    plot = tmp_path / "new" / "demo.svg"
    command = [sys.executable, "-m", "rollouts_gwapi_plugin", "demo", "--transport", transport, "--plot", str(plot)]
    done = subprocess.run([*command, *QUICK], capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    end = done.stdout.splitlines()[-3:]
    assert end[0] == "requests lost: 0"
    assert re.fullmatch(
        r"passed: \d+ requests, none lost; each share within 3 sigma \(± allowed\) of what the Rollout asked for;"
        r" after it the route is as you wrote it",
        end[1],
    )
    assert end[2].startswith("next: demo --example header-routing")
    assert [line for line in done.stdout.splitlines() if "…" in line or line != line.rstrip()] == []
    assert "weight 100 -> weight 0 (web-stable leads to yellow now)\n" in done.stdout
    for stage in ("weight 0", "weight 20", "weight 50", "weight 100", "promoted", "weight 100 to promoted"):
        (line,) = re.findall(rf"^ {stage} +everyone .*$", done.stdout, re.MULTILINE)
        assert line.rstrip().endswith("ok")
    assert re.search(r"^ weight 20 +HTTPRoute web +web-stable 80, web-canary 20 +0 +0 +0 ", done.stdout, re.MULTILINE)
    assert "plugin started in" in done.stdout
    assert transport in done.stdout
    drawn = ET.parse(plot).getroot()  # noqa: S314 - drawn by us
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert re.search('(href|src)="[^#]', plot.read_text()) is None, "the picture loads something"


HALF = """#!{python}
import sys
from rollouts_gwapi_plugin.model.calls import Verification
from rollouts_gwapi_plugin.serve import run
from rollouts_gwapi_plugin.service.router import TrafficRouter

right = TrafficRouter.set_weight
TrafficRouter.set_weight = lambda self, call: right(
    self, call.model_copy(update={{"desired_weight": call.desired_weight // 2}})
)
TrafficRouter.verify_weight = lambda self, call: Verification.VERIFIED
sys.exit(run(sys.argv[1:]))
"""


def test_a_plugin_that_sets_half_the_weight_is_found_out(tmp_path: Path) -> None:
    """Wrong weights that the plugin calls verified are seen in the traffic, and the exit code is 1."""
    plugin = tmp_path / "plugin"
    plugin.write_text(HALF.format(python=sys.executable))
    plugin.chmod(0o755)
    plot = str(tmp_path / "demo.svg")
    found = CliRunner().invoke(demo, [*QUICK, "--plugin", str(plugin), "--plot", plot], standalone_mode=False)

    assert found.exception is None
    assert found.return_value == 1
    assert re.search(r"wrong: weight 100, everyone: [45]\d\.\d% of", found.output)
    assert "wrong: weight 50: HTTPRoute web has the weights web-stable 75, web-canary 25, asked were" in found.output
    assert "requests lost: 0" in found.output


def test_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal the step, asked and measured share, lost requests and API calls are shown."""
    play = Play(load_example("canary"), Options((), 1.0))
    now = [0.0]
    play.version, play.load = "new", Load({}, [], clock=lambda: now[0])
    now[0] = 9.0
    for answer in answers(3, 1, lost=2, since=8.5):
        play.load.record(answer)
    play.state = State(
        step=2, asked={"everyone": 0.5}, status="progressing", reads=7, writes=3, messages=["weight 20 -> 50"]
    )
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(LiveView(play)._render())
    shown = console.export_text()

    for text in (
        "(progressing)",
        "20% pause 50%",
        "everyone, asked",
        "50.0%",
        "16.7%",
        "7 reads, 3 writes",
        "weight 20 -> 50",
    ):
        assert text in shown
    assert re.search(r"lost +2", shown)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert isinstance(make_view(play, plain=False), LiveView)
    assert isinstance(make_view(play, plain=True), PlainView)


FLAKY = """#!{python}
import sys
from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.serve import run
from rollouts_gwapi_plugin.service.router import TrafficRouter

right, failures = TrafficRouter.set_weight, [0]

def set_weight(self, call):
    if call.desired_weight == 30 and failures[0] < {failures}:
        failures[0] += 1
        raise RouteError("out of order")
    right(self, call)

TrafficRouter.set_weight = set_weight
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize(("failures", "ends"), [(2, True), (1000, False)])
def test_calls_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, *, ends: bool) -> None:
    """A failed call is tried again, a rollout that can't go on ends the demo, an endless pause is ended."""
    plugin = tmp_path / "plugin"
    plugin.write_text(FLAKY.format(python=sys.executable, failures=failures))
    plugin.chmod(0o755)
    example = load_example("canary")
    rollout = deepcopy(example.rollout)
    rollout["spec"]["strategy"]["canary"]["steps"] = [{"setWeight": 30}, {"pause": {}}]
    monkeypatch.setattr("rollouts_gwapi_plugin.cli.demo.play.MAX_FAILURES", 3)
    lines: list[str] = []
    result = Play(replace(example, rollout=rollout), Options((str(plugin),), 60.0)).run(lines.append)

    assert "failed, tried again: SetWeight: out of order" in lines
    assert ("promoted by hand" in lines) == ends
    assert result.problems == (() if ends else ("the rollout did not end, it stands at step 0",))
    assert result.lost == []


def test_lost_requests_fail_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that is not there costs its share of the requests, which are counted and shown; the exit code is 1."""
    folder = tmp_path / "examples" / "canary"
    folder.mkdir(parents=True)
    for path in (examples_folder() / "canary").glob("*.yaml"):
        documents: list[Any] = list(yaml.safe_load_all(path.read_text()))
        if path.name == "httproute.yaml":
            refs = documents[0]["spec"]["rules"][0]["backendRefs"]
            refs.append({"name": "gone", "port": 80, "weight": 25})
        (folder / path.name).write_text(yaml.safe_dump_all(documents))
    monkeypatch.setattr(examples, "examples_folder", lambda: tmp_path / "examples")
    plot = str(tmp_path / "demo.svg")
    found = CliRunner().invoke(demo, [*QUICK, "--plot", plot], standalone_mode=False)

    assert found.exception is None
    assert found.return_value == 1
    assert "status 500 BackendNotFound: Service shop/gone not found" in found.output
    assert "requests lost: 0" not in found.output
    assert "passed: " not in found.output


def test_a_plugin_that_can_not_be_started(tmp_path: Path) -> None:
    """A plugin that is not there ends the demo with its name, and nothing hangs."""
    found = CliRunner().invoke(demo, [*QUICK, "--plugin", str(tmp_path / "nothing")], standalone_mode=False)

    assert "nothing can't be started" in str(found.exception)
