"""`install DIR`, as an init container runs it."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.packaging.rooms import DEADLINE, USER, Launchers, Space, install

EXIT_NO_DIRECTORY = 73
NAME = "rollouts-gwapi-plugin"


def run(program: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the launcher's command."""
    return subprocess.run(
        [program, "install", *arguments], check=False, capture_output=True, text=True, timeout=DEADLINE
    )


def test_copies_itself(launchers: Launchers, tmp_path: Path) -> None:
    """The copy is equal, executable, and alone in the directory; its SHA-256 is printed as sha256sum prints it."""
    done = run(launchers.first, str(tmp_path))

    digest = hashlib.sha256(launchers.first.read_bytes()).hexdigest()
    assert (0, f"{digest}  {tmp_path}/{NAME}\n") == (done.returncode, done.stdout), done.stderr
    assert [NAME] == [path.name for path in tmp_path.iterdir()]
    assert launchers.first.read_bytes() == (tmp_path / NAME).read_bytes()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o755


def test_does_nothing_twice(launchers: Launchers, tmp_path: Path) -> None:
    """An equal file that is already there is left alone, and that is told."""
    run(launchers.first, str(tmp_path))
    before = (tmp_path / NAME).stat()

    done = run(launchers.first, str(tmp_path))

    after = (tmp_path / NAME).stat()
    assert done.stdout.endswith(" (already there)\n")
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_replaces_another_version(launchers: Launchers, tmp_path: Path) -> None:
    """Another version is replaced by a new file, so that a process which runs from the old one goes on."""
    run(launchers.first, str(tmp_path))
    before = (tmp_path / NAME).stat().st_ino

    done = run(launchers.second, str(tmp_path))

    assert 0 == done.returncode
    assert before != (tmp_path / NAME).stat().st_ino
    assert launchers.second.read_bytes() == (tmp_path / NAME).read_bytes()


def test_mends_a_file_that_cannot_be_executed(launchers: Launchers, tmp_path: Path) -> None:
    """An equal file without its executable bits is not taken for installed."""
    run(launchers.first, str(tmp_path))
    (tmp_path / NAME).chmod(0o644)

    run(launchers.first, str(tmp_path))

    assert os.access(tmp_path / NAME, os.X_OK)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o755


def test_says_what_it_cannot_write(launchers: Launchers, tmp_path: Path) -> None:
    """A directory that is missing is named, nothing is left, and the exit code is 73."""
    done = run(launchers.first, str(tmp_path / "missing"))

    assert EXIT_NO_DIRECTORY == done.returncode
    assert f"{tmp_path}/missing/{NAME} can't be written: " in done.stderr
    assert [] == list(tmp_path.iterdir())


def test_full_volume(launchers: Launchers, space: Space) -> None:
    """On a volume without room nothing is left behind and the cause is told."""
    space.description["files"] = {"/plugin": str(launchers.first)}
    space.description["tmpfs"] = {"/shared": "size=4m,mode=1777"}

    done = space.run("/plugin", "install", "/shared")

    assert EXIT_NO_DIRECTORY == done.returncode
    assert "no space left on device" in done.stderr


def test_needs_only_the_volume(launchers: Launchers, space: Space, plugin_bin: Path) -> None:
    """In an empty read-only root, without /proc, the shared volume is all that is written to."""
    space.description["files"] = {"/plugin": str(launchers.first)}
    space.description["proc"] = False

    done = space.run("/plugin", "install", "/plugin-bin")

    assert 0 == done.returncode, done.stderr
    assert [NAME] == [path.name for path in plugin_bin.iterdir()]
    assert USER == (plugin_bin / NAME).stat().st_uid


def test_of_the_real_executable(executable: Path, tmp_path: Path) -> None:
    """What the launcher does not take itself comes back to it from the command line in the tree."""
    program = install(executable, tmp_path)
    (tmp_path / "-strange").mkdir()

    explained = run(program, "--help")
    done = subprocess.run(
        [program, "install", "--", "-strange"], check=False, capture_output=True, text=True, cwd=tmp_path
    )

    assert "Copy this executable to DIRECTORY/rollouts-gwapi-plugin" in explained.stdout
    assert f"{tmp_path}/-strange/{NAME}" in done.stdout, done.stderr


def test_of_a_python_installation(tmp_path: Path) -> None:
    """A pip installation has no file to copy, and says what to take."""
    done = subprocess.run(
        [sys.executable, "-m", "rollouts_gwapi_plugin", "install", str(tmp_path)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip

    assert 1 == done.returncode
    assert "only the released executable can copy itself" in done.stderr


def test_an_empty_name_is_no_directory(launchers: Launchers, tmp_path: Path) -> None:
    """An unset variable in a manifest does not install into the current folder."""
    done = subprocess.run(
        [launchers.first, "install", ""],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )

    assert (EXIT_NO_DIRECTORY, "") == (done.returncode, done.stdout)
    assert "install needs the directory" in done.stderr
    assert [] == list(tmp_path.iterdir())
