"""Steps that one of several routes can't take, as `lint` and `doctor` find them: what the plugin itself would say."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.linting import rollout
from tests.cli.town import Town
from tests.service.world import route, rule

from rollouts_gwapi_plugin.cli.main import run

Json = dict[str, Any]
STEP: Json = {"setMirrorRoute": {"name": "m", "match": [{"path": {"prefix": "/api"}}]}}
BOTH = {"httpRoutes": [{"name": "a"}, {"name": "b"}]}


def at(path: str, name: str) -> Json:
    """Make a route of one path."""
    return route(rule("s100 c0", matches=[{"path": {"type": "PathPrefix", "value": path}}]), name=name)


def lint(folder: Path, capsys: pytest.CaptureFixture[str], config: Json, *routes: Json) -> list[str]:
    """Return the errors and warnings that `lint` finds."""
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all([rollout(config, [STEP, {"setWeight": 20}], ("m",)), *routes]))
    run(["lint", str(file), "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    return [f"{one['severity']}: {one['text']}" for one in found if one["severity"] in {"error", "warning"}]


def test_one_of_two_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning names the other."""
    text = "HTTPRoute shop/b takes no part in managed route m: no rule and the step have requests in common"

    assert lint(tmp_path, capsys, BOTH, at("/api", "a"), at("/static", "b")) == [
        f"warning: step 0: setMirrorRoute m: {text}"
    ]


def test_none_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is an error."""
    found = lint(tmp_path, capsys, BOTH, at("/x", "a"), at("/static", "b"))

    assert [text.partition(":")[0] for text in found] == ["error", "error"]


def test_a_route_that_is_not_among_the_files_may_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So what is known is no error."""
    found = lint(tmp_path, capsys, BOTH, at("/static", "b"))

    assert [text.partition(":")[0] for text in found] == ["warning", "warning"]
    assert "HTTPRoute shop/a is not among the files" in found[0]


def test_a_kind_that_can_not_match_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside an HTTPRoute a GRPCRoute's limit is a warning, without the routes and on them."""
    grpc = route(rule("s100 c0"), name="g", kind="GRPCRoute")
    found = lint(tmp_path, capsys, {"httpRoute": "a", "grpcRoute": "g"}, at("/api", "a"), grpc)

    assert [text.partition(":")[0] for text in found] == ["warning", "warning"]
    assert ["a GRPCRoute can't match it" in text for text in found] == [True, True]


def test_doctor_says_the_same(sound: Town) -> None:
    """The live routes are judged together, too."""
    for made in (at("/api", "a"), at("/static", "b")):
        sound.api.create(made)
    sound.configure(config=BOTH, steps=[STEP, {"setWeight": 20}], managed=["m"])
    alone = [line for line in sound.bad() if " steps: " in line]
    sound.api.delete("HTTPRoute", "shop", "a")
    broken = [line for line in sound.bad() if " steps: " in line]

    assert [line.partition(" ")[0] for line in alone] == ["warning"]
    assert "HTTPRoute shop/b takes no part in managed route m" in alone[0]
    assert [line.partition(" ")[0] for line in broken] == ["error"]
