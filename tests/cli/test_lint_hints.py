"""`lint` and `doctor` say what may be meant, and what the controller's version has to be."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.linting import Lint, rollout
from tests.cli.town import Town
from tests.service.world import route, rule

from rollouts_gwapi_plugin.cli.main import run

MIRROR = {"setMirrorRoute": {"name": "m", "match": [{"path": {"prefix": "/m"}}]}}
NEEDS = "needs Argo Rollouts 1.10: with a plugin, earlier controllers call such a Rollout invalid"


def test_folders_are_not_searched_below(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing was found it is said that folders in folders were not looked into."""
    assert run(["lint", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "error: there is no Rollout in the files (found: nothing); folders are not searched below\n"
    )


def test_a_route_of_the_name_in_another_namespace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A route that is in another namespace than the Rollout is named with the key that is missing."""
    made = rollout()
    made["metadata"]["namespace"] = "default"
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all([made, route(rule("s100 c0"))]))

    assert run(["lint", str(file)]) == 0
    hint = "HTTPRoute default/web is not among the files; shop/web is: is namespace: shop meant?\n"
    assert hint in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"steps": [{"setWeight": 5}, MIRROR], "managed": ("m",)}, ["steps[1].setMirrorRoute"]),
        ({"pingPong": {"pingService": "a", "pongService": "b"}}, ["pingPong"]),
        ({}, []),
    ],
)
def test_what_needs_a_newer_controller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], what: list[str]
) -> None:
    """Mirror steps and ping-pong are noted, since earlier controllers refuse them beside a plugin; it is no warning."""
    file = tmp_path / "rollout.yaml"
    file.write_text(yaml.safe_dump(rollout(**fields)))

    assert run(["lint", str(file), "--strict"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if " controller: " in line]
    assert lines == [f"info    controller: {one} {NEEDS}" for one in what]


def test_the_doctor_notes_it_too(sound: Town) -> None:
    """The same is told of a Rollout in a cluster; where the rules are is told so that 0 is a number."""
    sound.configure(steps=[MIRROR], managed=["m"])
    found = sound.found()

    assert f"info controller: steps[0].setMirrorRoute {NEEDS}" in found
    assert "ok pair: s and c are in rule 0 (counted from 0)" in found


def test_an_unquoted_off(lint: Lint) -> None:
    """YAML 1.1 makes false of it; it is taken for off, as the plugin takes it."""
    code, found = lint(rollout({"httpRoute": "web", "verify": False}), route(rule("s100 c0")))

    assert code == 0
    assert not [line for line in found if line.startswith(("error", "warning"))]
