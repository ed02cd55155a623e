"""Commands that fail or hang, of a case's target and of the cluster: each is told with what it said."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from e2e.cluster import cli, network, process, tools
from e2e.cluster.cluster import Cluster
from e2e.cluster.settings import Settings
from e2e.cluster.tools import Tools
from e2e.runner import target
from e2e.runner.target import CommandFailed, run_command

pytestmark = pytest.mark.e2e_short

HANGING: list[str | Path] = ["tail", "--follow", "/dev/null"]
FAILING: list[str | Path] = ["sh", "-c", "echo why >&2; exit 3"]


def test_a_hanging_command_fails_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command of a case that does not end is a finding, with how long it was waited for."""
    monkeypatch.setattr(target, "_COMMAND_SECONDS", 0.1)

    with pytest.raises(CommandFailed, match=r"tail --follow /dev/null: no end after 0\.1 s"):
        run_command([str(part) for part in HANGING], {"PATH": "/usr/bin:/bin"})


def test_the_clusters_commands_say_why_they_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command of the cluster that fails or hangs is a RuntimeError with its error output, or with the time."""
    assert process.run(["cat"], text="read back") == "read back"
    with pytest.raises(RuntimeError, match=r"exit 3: why$"):
        process.run(FAILING)
    monkeypatch.setattr(process, "RUN_SECONDS", 0.1)
    with pytest.raises(RuntimeError, match=r"tail --follow /dev/null: no end after 0\.1 s"):
        process.run(HANGING)


def test_up_says_why_it_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command that fails while the cluster starts ends `up` with a line, not with a traceback."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tools, "missing_reason", lambda: "")
    monkeypatch.setattr(cli, "open_cluster", lambda settings, *_, **__: Cluster(settings, Tools()))

    def create(_settings: Settings) -> None:
        process.run(FAILING)

    monkeypatch.setattr(network, "create", create)

    result = CliRunner().invoke(cli.main, ["--name", "never-up", "up"])

    assert result.exit_code == 1
    assert result.output == "Error: sh -c echo why >&2; exit 3: why\n"


def test_what_is_down_can_not_be_restarted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`restart` of a cluster that is not up says so."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tools, "missing_reason", lambda: "")
    monkeypatch.setattr(cli, "open_cluster", lambda settings, *_, **__: Cluster(settings, Tools()))

    result = CliRunner().invoke(cli.main, ["--name", "never-up", "restart", "apiserver"])

    assert (result.exit_code, result.output) == (1, "Error: cluster 'never-up' is down\n")
