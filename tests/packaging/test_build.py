"""The build: equal bytes from equal sources, nothing undecided, both architectures."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.packaging.rooms import DEADLINE, needs_go, needs_root

from builder import contents, debian, elf, wheels
from builder.executable import Options, make_executable
from builder.places import ARCHITECTURES, PACKAGING, ROOT, Architecture, BuildError

BUILD = """
import sys
from pathlib import Path
from builder.executable import Options, make_executable
from builder.places import ARCHITECTURES
print(make_executable(Path(sys.argv[1]), ARCHITECTURES["amd64"], Options(level=1, cached=False)).sha256)
"""
BINFMT = Path("/proc/sys/fs/binfmt_misc")
# The kernel hands executables of this head to qemu: ELF, 64 bits, little-endian, for AArch64.
AARCH64_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
AARCH64_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"


def test_reproducible(tmp_path: Path) -> None:
    """Two builds from nothing, at other places with other environments, give the same bytes."""
    needs_go()
    digests = []
    for number, (zone, umask) in enumerate((("UTC", 0o022), ("Asia/Tokyo", 0o077))):
        scratch = tmp_path / ("scratch" if number == 0 else "another/place")
        scratch.mkdir(parents=True)
        digests.append(
            subprocess.run(
                [sys.executable, "-c", BUILD, str(scratch / f"executable-{number}")],
                check=True, stdout=subprocess.PIPE, text=True, umask=umask, cwd=scratch,
                env={**os.environ, "TZ": zone, "TMPDIR": str(scratch), "PYTHONPATH": str(PACKAGING),
                     "PYTHONHASHSEED": str(number)},
            ).stdout
        )  # fmt: skip

    assert digests[0] == digests[1]


def test_every_dependency_is_decided() -> None:
    """What the project needs at run time is carried."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}

    assert needed <= set(contents.CARRIED)
    assert not set(contents.CARRIED) & set(contents.LEFT_OUT)


def test_an_undecided_requirement_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """A requirement in neither table is named in the error."""
    monkeypatch.setattr(wheels, "LEFT_OUT", {})
    with pytest.raises(BuildError, match=r"aiohttp.*required, and neither carried nor left out"):
        wheels.fetch(ARCHITECTURES["amd64"])


def test_the_lock_has_both_architectures() -> None:
    """Each Debian package is pinned for each architecture, by a whole digest."""
    pinned = debian.read_lock()

    assert {(package.architecture, package.name) for package in pinned} == {
        (architecture, name) for architecture in ARCHITECTURES for name in contents.DEBIAN
    }
    assert all(len(package.sha256) == 64 for package in pinned)


def test_a_changed_package_stops_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Debian package whose bytes are not the pinned ones is refused, also in a build for trial."""
    found = {
        package.name: replace(package, sha256="0" * 64)
        for package in debian.read_lock()
        if package.architecture == "amd64"
    }
    monkeypatch.setattr(debian, "CACHE", tmp_path)
    monkeypatch.setattr(debian, "_download", lambda *_: found)

    with pytest.raises(BuildError, match="are not the pinned ones"):
        debian.fetch(ARCHITECTURES["amd64"], strict=False)


@pytest.mark.parametrize("strict", [True, False])
def test_a_package_that_left_the_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, strict: bool) -> None:
    """A build for trial takes the newest package where the pinned one is gone; a release stops and says how to pin."""

    def download(_: Architecture, wanted: list[tuple[str, str]]) -> dict[str, debian.DebianPackage]:
        if any(version for _, version in wanted):
            raise BuildError("Version 'x' for 'libssl3' was not found")
        return {name: debian.DebianPackage("amd64", name, "newest", "1" * 64) for name, _ in wanted}

    monkeypatch.setattr(debian, "CACHE", tmp_path)
    monkeypatch.setattr(debian, "_download", download)

    if strict:
        with pytest.raises(BuildError, match="make binary-lock"):
            debian.fetch(ARCHITECTURES["amd64"], strict=True)
    else:
        taken = debian.fetch(ARCHITECTURES["amd64"], strict=False)
        assert {"newest"} == {package.version for package, _ in taken.values()}


def test_stripped_files_still_load(tmp_path: Path) -> None:
    """A library without its section table loads, and says what it needs as before."""
    source = next(Path(sys.prefix).rglob("_cffi_backend*.so"))
    stripped = tmp_path / source.name
    stripped.write_bytes(elf.keep_segments(source.read_bytes()))

    loaded = subprocess.run([sys.executable, "-c", "import _cffi_backend as it; print(it.__file__)"],
        check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})  # fmt: skip

    assert str(stripped) == loaded.stdout.strip()
    assert elf.dynamic_tags(source, "DT_NEEDED") == elf.dynamic_tags(stripped, "DT_NEEDED")
    assert stripped.stat().st_size < source.stat().st_size


@pytest.fixture
def emulation() -> Iterator[None]:
    """Let the kernel run AArch64 programs by qemu."""
    needs_root()
    qemu = shutil.which("qemu-aarch64-static")
    if qemu is None:
        pytest.skip("an arm64 program needs an arm64 machine or qemu-aarch64-static (Debian's qemu-user-static)")
    if not (BINFMT / "register").exists():
        mounted = subprocess.run(["mount", "-t", "binfmt_misc", "none", str(BINFMT)], check=False, capture_output=True)
        if mounted.returncode:
            pytest.skip("this kernel has no binfmt_misc, which hands arm64 programs to qemu")
    entry = BINFMT / "rollouts-gwapi-test"
    if not entry.exists():
        (BINFMT / "register").write_text(f":{entry.name}:M::{AARCH64_MAGIC}:{AARCH64_MASK}:{qemu}:FP\n")
    yield
    entry.write_text("-1")


@pytest.mark.usefixtures("emulation")
def test_arm64(tmp_path: Path) -> None:
    """The arm64 executable unpacks and runs: a command, and the start as a plugin up to the handshake line."""
    program = tmp_path / "gatewayAPI"
    make_executable(program, ARCHITECTURES["arm64"], Options())

    done = subprocess.run([program, "version"], check=False, capture_output=True, text=True, timeout=DEADLINE * 4)
    assert (0, "0.1.0\n") == (done.returncode, done.stdout), done.stderr

    host = {**os.environ, "ARGO_ROLLOUTS_RPC_PLUGIN": "trafficrouter", "PLUGIN_PROTOCOL_VERSIONS": "1"}
    with subprocess.Popen([program, "serve"], env=host, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"1|1|unix|")
        finally:
            process.kill()
