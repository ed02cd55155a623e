"""What the API server would refuse of a file is one line of `lint` and `simulate`: wrong types, wrong text."""

import copy
import io
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.linting import rollout
from tests.service.world import route, rule

from rollouts_gwapi_plugin.cli.main import run

Json = dict[str, Any]


def edited(part: str, **fields: Any) -> Json:
    """Return a Rollout with fields of its spec, canary, routing or metadata changed."""
    made = copy.deepcopy(rollout(steps=[{"setWeight": 20}, {"pause": {}}]))
    canary = made["spec"]["strategy"]["canary"]
    parts = {
        "spec": made["spec"],
        "canary": canary,
        "routing": canary["trafficRouting"],
        "metadata": made["metadata"],
    }
    parts[part].update(fields)
    return made


def experiment(**template: Any) -> list[Json]:
    """Make the steps with one experiment of one template."""
    return [{"experiment": {"templates": [{"name": "b", "specRef": "stable", **template}]}}]


WRONG = [
    (edited("canary", steps=[{"setWeight": "20"}]), "steps.0.setWeight: found '20'"),
    (edited("canary", steps=[{"setWeight": True}]), "steps.0.setWeight: found 'True'"),
    (edited("canary", steps=[{"setWeight": 2**31}]), "steps.0.setWeight: found '2147483648'"),
    (edited("routing", maxTrafficWeight="100"), "trafficRouting.maxTrafficWeight: found '100'"),
    (edited("canary", dynamicStableScale="yes"), "canary.dynamicStableScale: found 'yes'"),
    (edited("canary", steps=experiment(weight=5, service="x")), "templates.0.service: found 'x'"),
    (edited("canary", steps=experiment(weight=True)), "templates.0.weight: found 'True'"),
    (edited("canary", steps=[{"setCanaryScale": 25}]), "steps.0.setCanaryScale: found '25'"),
    (edited("spec", replicas="3"), "spec.replicas: found '3'"),
    (edited("metadata", annotations={"a": 5}), "metadata.annotations.a: found '5'"),
]


@pytest.mark.parametrize(("made", "text"), WRONG)
@pytest.mark.parametrize("command", [("lint",), ("simulate", "--rollout")])
def test_types_that_the_definition_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], made: Json, text: str
) -> None:
    """A field of another type than the Rollout's definition gives it is an error, however it might be read."""
    file = tmp_path / "rollout.yaml"
    file.write_text(yaml.safe_dump(made))

    code = run([*command, str(file)])
    captured = capsys.readouterr()

    assert code == 1
    assert text in captured.out + captured.err


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (edited("spec", template={"spec": {"containers": [{"ports": [8080]}]}}), "ports.0: found '8080'"),
        (edited("metadata", annotations={"rollout.argoproj.io/revision": "x"}), "revision 'x' is no number"),
    ],
)
def test_what_cannot_be_played(tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Json, text: str) -> None:
    """What only the played controller reads is one line, too."""
    file = tmp_path / "rollout.yaml"
    file.write_text(yaml.safe_dump_all([made, route(rule("s100 c0"))]))

    code = run(["simulate", "--rollout", str(file)])
    captured = capsys.readouterr()

    assert (code, captured.err.count("\n")) == (1, 1)
    assert text in captured.err


@pytest.mark.parametrize("key", ["on", "1", "~"])
def test_keys_that_are_no_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str) -> None:
    """A key that YAML reads as something else than a text is an unknown key."""
    text = yaml.safe_dump(rollout())
    assert "httpRoute: web\n" in text
    indent = " " * (text.index("httpRoute") - text.rindex("\n", 0, text.index("httpRoute")) - 1)
    file = tmp_path / "rollout.yaml"
    file.write_text(text.replace("httpRoute: web\n", f"httpRoute: web\n{indent}{key}: x\n"))

    assert run(["lint", str(file)]) == 0
    assert "is no key that this plugin knows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Rollout\nmetadata: {}\nspec: &s\n  x: *s\n", "this contains itself"),
        ("kind: Rollout\nmetadata: {}\nspec: " + "[" * 200 + "]" * 200, "this is nested too deeply"),
        ("kind: Rollout\nmetadata: {}\nspec: " + "[" * 9000 + "]" * 9000, "nest"),
    ],
)
@pytest.mark.parametrize("command", [("lint",), ("simulate", "--rollout")])
def test_texts_without_an_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], text: str, problem: str
) -> None:
    """What contains itself, or is nested deeper than recursion goes, is refused when it is read."""
    file = tmp_path / "rollout.yaml"
    file.write_text(text)

    assert run([*command, str(file)]) == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"error: {file}")
    assert problem in complaint
    assert complaint.count("\n") == 1


def test_an_anchor_that_is_used_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An anchor beside what it names is YAML as any other."""
    file = tmp_path / "rollout.yaml"
    step = {"setWeight": 20}
    file.write_text(yaml.dump(rollout(steps=[step, step]), Dumper=yaml.SafeDumper))
    assert "*id001" in file.read_text()

    assert run(["lint", str(file)]) == 0
    assert "2 steps are in order" in capsys.readouterr().out


def test_standard_input_is_read_as_utf8(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the locale says: UTF-8 is read, and what is none is told."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: \xff"), encoding="ascii"))
    assert run(["lint", "-"]) == 1
    assert capsys.readouterr().err == "error: -: this is not UTF-8 text\n"

    text = yaml.safe_dump(edited("metadata", annotations={"by": "Jürgen"}), allow_unicode=True)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="ascii"))
    assert run(["lint", "-"]) == 0
