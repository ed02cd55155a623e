"""Whether a command line means serving or a command, and that serving imports no command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.cli.linting import rollout

from rollouts_gwapi_plugin import __version__, serve
from rollouts_gwapi_plugin.cli import main as cli

COOKIE = "ARGO_ROLLOUTS_RPC_PLUGIN"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Collect the arguments with which `serve` is called, instead of serving."""
    calls: list[list[str]] = []

    def run(arguments: list[str]) -> int:
        calls.append(arguments)
        return 7

    monkeypatch.setattr(serve, "run", run)
    monkeypatch.delenv(COOKIE, raising=False)
    return calls


@pytest.mark.parametrize(
    ("arguments", "cookie", "passed"),
    [
        ([], False, []),
        ([], True, []),
        (["serve"], False, []),
        (["serve", "--help"], False, ["--help"]),
        (["serve", "--plugin-name", "serve"], True, ["--plugin-name", "serve"]),
        (["-kubeClientQPS=40"], True, ["-kubeClientQPS=40"]),
        (["--kubeClientQPS", "40", "-logformat", "text"], True, ["--kubeClientQPS", "40", "-logformat", "text"]),
    ],
)
def test_what_serves(
    served: list[list[str]], monkeypatch: pytest.MonkeyPatch, *, arguments: list[str], cookie: bool, passed: list[str]
) -> None:
    """Without arguments, with `serve`, and with flags under the cookie it serves, with the flags that were given."""
    if cookie:
        monkeypatch.setenv(COOKIE, "trafficrouter")

    assert cli.run(arguments) == 7
    assert served == [passed]


@pytest.mark.parametrize(("arguments", "printed"), [(["version"], __version__), (["--help"], "Commands:")])
def test_what_does_not(
    served: list[list[str]], capsys: pytest.CaptureFixture[str], arguments: list[str], printed: str
) -> None:
    """Commands and `--help` without the cookie are for people."""
    assert cli.run(arguments) == 0
    assert printed in capsys.readouterr().out
    assert served == []


def test_a_command_runs_under_the_cookie_too(
    served: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shell inside the controller's environment can still run commands."""
    monkeypatch.setenv(COOKIE, "trafficrouter")

    assert cli.run(["version"]) == 0
    assert __version__ in capsys.readouterr().out
    assert served == []


def test_an_unknown_command_is_told(served: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is click's, and the name is in the message."""
    assert cli.run(["frobnicate"]) == 2
    assert "frobnicate" in capsys.readouterr().err
    assert served == []


def test_the_module_can_be_run() -> None:
    """`python -m rollouts_gwapi_plugin` is the same program."""
    command = [sys.executable, "-m", "rollouts_gwapi_plugin", "version"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)

    assert done.stdout == f"{__version__}\n"


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    """Signs that the output has no bytes for are escaped; the command does its work."""
    file = tmp_path / "länge.yaml"
    file.write_text(yaml.safe_dump(rollout()))
    command = [sys.executable, "-m", "rollouts_gwapi_plugin", "lint", str(file)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "l\\xe4nge.yaml" in done.stdout
