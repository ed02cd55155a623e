"""A wrong command line exits with 2 and says which option is wrong, also where a file has to be read to know it."""

from pathlib import Path

import pytest
import yaml
from tests.cli.linting import rollout

from rollouts_gwapi_plugin.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--call", "frobnicate"), "--call: 'frobnicate' is no call; there are set-weight=N"),
        (("--call", "set-weight=x"), "--call: 'set-weight=x' is no call"),
        (("--call", "set-weight=-1"), "--call: 'set-weight=-1' is no call"),
        (("--call", f"set-weight={'9' * 5000}"), "--call: 'set-weight=999"),
        (("--abort-after", "1"), "--abort-after: 1: the Rollout has 1 step, from 0"),
    ],
)
def test_simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str) -> None:
    """A call that is none, and a step that the Rollout has not, are wrong command lines."""
    file = tmp_path / "rollout.yaml"
    file.write_text(yaml.safe_dump(rollout(steps=[{"setWeight": 20}])))

    assert run(["simulate", "--rollout", str(file), *arguments]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["demo", "--example", "nope"], "--example: there is no example 'nope' to play; there are "),
        (["doctor", "--service-account", "a/b/c"], "--service-account: 'a/b/c' is no NS/NAME of a service account"),
        (["doctor", "--service-account", "a/"], "--service-account: 'a/' is no NS/NAME of a service account"),
    ],
)
def test_names_that_are_none(capsys: pytest.CaptureFixture[str], arguments: list[str], text: str) -> None:
    """A name that can't be one of what the option names is a wrong command line."""
    assert run(arguments) == 2
    assert text in capsys.readouterr().err
