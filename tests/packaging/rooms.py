"""Rooms to run executables in, and small things that the packaging tests share."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
DEADLINE = 30.0
# The controller's user.
USER = 999
TMP = "/tmp"  # noqa: S108 - in an empty root
_PAUSE = threading.Event()


def wait_until(condition: Callable[[], object], what: str, seconds: float = DEADLINE) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        _PAUSE.wait(0.001)


def needs_go() -> None:
    """Skip where there is no Go."""
    if shutil.which("go") is None:
        pytest.skip("the launcher is written in Go, and there is no `go` on PATH")


def needs_root() -> None:
    """Skip where no mount namespace can be made."""
    if os.geteuid() != 0:
        pytest.skip("an empty root with another user needs root for mount namespaces and chroot")


@dataclass
class Launchers:
    """Two versions of a launcher around the probe; their trees hold enough to be caught while unpacking."""

    first: Path
    second: Path


def cpu_seconds(pid: int) -> float:
    """Give the CPU time that a process has used, all its threads, since it was made."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mebibytes(pid: int) -> float:
    """Give a process's resident memory."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


def install(source: Path, folder: Path, name: str = "plugin") -> Path:
    """Copy an executable as the controller does."""
    target = folder / name
    shutil.copy(source, target)
    target.chmod(0o755)
    return target


def cache_of(folder: Path, user: int | None = None) -> Path:
    """Name the launcher's directory below a candidate."""
    return folder / f".rollouts-gwapi-plugin-{os.geteuid() if user is None else user}"


def trees(folder: Path) -> list[str]:
    """List the trees in a launcher's directory, unfinished ones too."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.exists() else []


@dataclass
class Space:
    """An empty root, and how to run something in it."""

    folder: Path
    description: dict[str, Any] = field(default_factory=dict)

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Give the command line that enters the root and runs the arguments."""
        root = self.folder / "root"
        root.mkdir(exist_ok=True)
        room = {"root": str(root), "user": USER, **self.description}
        return [sys.executable, "-I", str(HERE / "empty_root.py"), json.dumps(room), *arguments]

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """Run to the end."""
        return subprocess.run(
            self.command(arguments),
            env={"PATH": "/", **(environment or {})},
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE * 4,
        )
