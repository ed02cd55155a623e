"""What the packaging tests share: launchers around a small tree, the real executable, and rooms to run them in."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.packaging.rooms import HERE, USER, Launchers, Space, needs_go, needs_root

from builder import payload
from builder.executable import Options, make_executable, make_launcher
from builder.places import ARCHITECTURES, ROOT

# Cold, the executable takes a minute of compression and the compiler another; both are kept between runs.
BUILD_SECONDS = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests here time for the first build."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(BUILD_SECONDS))
            item.add_marker("go")


@pytest.fixture(scope="session")
def launchers(tmp_path_factory: pytest.TempPathFactory) -> Launchers:
    """Build them once."""
    needs_go()
    folder = tmp_path_factory.mktemp("launchers")
    probe = folder / "probe"
    subprocess.run(
        ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(probe), "."],
        cwd=HERE / "probe",
        env={**os.environ, "CGO_ENABLED": "0"},
        check=True,
    )
    made = []
    for version in ("first", "second"):
        tree = folder / f"tree-{version}"
        (tree / "bin").mkdir(parents=True)
        (tree / "lib").mkdir()
        shutil.copy(probe, tree / "bin" / "rollouts-gwapi")
        (tree / "version").write_text(version)
        noise = random.Random(version)  # noqa: S311 - bytes that zstd can't shrink
        for number in range(64):
            (tree / "lib" / f"ballast-{number}").write_bytes(noise.randbytes(512 * 1024))
        made.append(folder / f"launcher-{version}")
        make_launcher(made[-1], ARCHITECTURES["amd64"], [payload.pack(tree, level=1, last=True)])
    return Launchers(*made)


@pytest.fixture(scope="session")
def executable() -> Path:
    """Build the real executable, from layers that are kept between runs."""
    needs_go()
    target = ROOT / "build" / "test" / "rollouts-gwapi-plugin"
    make_executable(target, ARCHITECTURES["amd64"], Options())
    return target


@pytest.fixture
def plugin_bin(tmp_path: Path) -> Path:
    """Give a directory of the controller's user, as plugin-bin is."""
    folder = tmp_path / "plugin-bin"
    folder.mkdir()
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, USER, USER)
    return folder


@pytest.fixture
def space(tmp_path: Path, plugin_bin: Path) -> Space:
    """Give a root with plugin-bin and nothing else that can be written to."""
    needs_root()
    return Space(tmp_path, {"binds": {"/plugin-bin": str(plugin_bin)}, "tmpfs": {}, "files": {}})


@pytest.fixture
def running() -> Iterator[list["subprocess.Popen[str]"]]:
    """Collect processes; those that still run at the end are killed."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()
