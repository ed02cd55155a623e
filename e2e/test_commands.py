"""Commands that fail or hang: each is told with what it said."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from e2e.cluster import cli, network, process, tools
from e2e.cluster.cluster import Cluster
from e2e.cluster.process import CommandFailed
from e2e.cluster.settings import Settings
from e2e.cluster.tools import Tools

pytestmark = pytest.mark.e2e_short

HANGING: list[str | Path] = ["tail", "--follow", "/dev/null"]
FAILING: list[str | Path] = ["sh", "-c", "echo why >&2; exit 3"]


def test_commands_say_why_they_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that fails or hangs is told with its error output, or with how long it was waited for."""
    assert process.run(["cat"], text="read back") == "read back"
    assert process.run(["printenv"], environment={"PATH": "/usr/bin:/bin"}) == "PATH=/usr/bin:/bin\n"
    with pytest.raises(CommandFailed, match=r"exit 3: why$"):
        process.run(FAILING)
    monkeypatch.setattr(process, "RUN_SECONDS", 0.1)
    with pytest.raises(CommandFailed, match=r"tail --follow /dev/null: no end after 0\.1 s"):
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
