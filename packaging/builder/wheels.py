"""Wheels of one architecture, as requirements.lock pins them.

Only what `contents.CARRIED` names is downloaded; a requirement of it that is in neither table of `contents` stops the
build. Files are kept by digest and checked at each use.
"""

import hashlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from builder.contents import ALWAYS_DROPPED, CARRIED, LEFT_OUT
from builder.places import CACHE, ROOT, Architecture, BuildError

LOCK = ROOT / "requirements.lock"
# Markers are judged for the interpreter that is carried, not for the one that builds.
TARGET = {
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "python_version": "3.11",
    "python_full_version": "3.11.2",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "extra": "",
}


@dataclass(frozen=True)
class Pin:
    """A locked distribution."""

    name: str
    version: str
    sha256: frozenset[str]

    @property
    def requirement(self) -> str:
        """In pip's form, with its digests."""
        return " ".join(
            [f"{self.name}=={self.version}", *(f"--hash=sha256:{digest}" for digest in sorted(self.sha256))]
        )


@dataclass(frozen=True)
class Wheel:
    """A downloaded wheel, its digest checked."""

    name: str
    version: str
    path: Path
    sha256: str


def read_lock() -> dict[str, Pin]:
    """Name -> pin, from requirements.lock."""
    pins: dict[str, Pin] = {}
    for block in re.split(r"\n(?=\S)", LOCK.read_text()):
        head = re.match(r"([A-Za-z0-9._-]+)==(\S+)", block)
        if head:
            name = canonicalize_name(head[1])
            pins[name] = Pin(name, head[2], frozenset(re.findall(r"sha256:([0-9a-f]{64})", block)))
    return pins


def fetch(architecture: Architecture) -> list[Wheel]:
    """Find all carried wheels, and download what is not there yet."""
    pins = read_lock()
    absent = sorted(set(CARRIED) - set(pins))
    if absent:
        raise BuildError(f"contents.py carries {', '.join(absent)}, which requirements.lock does not pin")
    folder = CACHE / "wheels" / architecture.name
    folder.mkdir(parents=True, exist_ok=True)
    found = dict(_stored(folder, pins))
    missing = [pins[name] for name in CARRIED if name not in found]
    if missing:
        _download(folder, missing, architecture)
        found = dict(_stored(folder, pins))
    check_requirements([found[name] for name in CARRIED])
    return [found[name] for name in CARRIED]


def _stored(folder: Path, pins: dict[str, Pin]) -> Iterator[tuple[str, Wheel]]:
    for path in sorted(folder.glob("*.whl")):
        name, version = canonicalize_name(path.name.split("-")[0]), path.name.split("-")[1]
        pin = pins.get(name)
        if pin is not None and pin.version == version:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest in pin.sha256:
                yield name, Wheel(name, version, path, digest)


def _download(folder: Path, pins: list[Pin], architecture: Architecture) -> None:
    subset = folder / "subset.txt"
    subset.write_text("".join(f"{pin.requirement}\n" for pin in pins))
    platforms = [word for platform in architecture.wheel_platforms for word in ("--platform", platform)]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--only-binary=:all:",
            "--python-version=3.11",
            "--implementation=cp",
            "--abi=cp311",
            "--abi=abi3",
            "--abi=none",
            *platforms,
            "--dest",
            str(folder),
            "--requirement",
            str(subset),
        ],
        check=True,
    )


def check_requirements(wheels: list[Wheel]) -> None:
    """Stop at a requirement of the project or of a carried distribution that nobody decided on."""
    wanted = {
        canonicalize_name(requirement.name)
        for wheel in wheels
        for text in _metadata(wheel).get("requires_dist", [])
        if (requirement := Requirement(text)).marker is None or requirement.marker.evaluate(TARGET)
    }
    undecided = sorted(wanted - set(CARRIED) - set(LEFT_OUT))
    if undecided:
        raise BuildError(f"{', '.join(undecided)}: required, and neither carried nor left out in contents.py")


def _metadata(wheel: Wheel) -> dict[str, list[str]]:
    with zipfile.ZipFile(wheel.path) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        raw, _ = parse_email(archive.read(name))
    return {
        "requires_dist": raw.get("requires_dist", []),
        "license": [raw.get("license_expression") or raw.get("license") or ""],
    }


def licence_name(wheel: Wheel) -> str:
    """Name the licence, as the distribution does, in one line."""
    return _metadata(wheel)["license"][0].splitlines()[0] if _metadata(wheel)["license"][0] else ""


def licence_texts(wheel: Wheel) -> Iterator[tuple[str, str]]:
    """File name and text of each licence file."""
    with zipfile.ZipFile(wheel.path) as archive:
        for name in sorted(archive.namelist()):
            if ".dist-info/" in name and re.search(
                r"(?i)(licen[cs]e|notice|copying)", name.rpartition(".dist-info/")[2]
            ):
                yield name.rpartition("/")[2], archive.read(name).decode(errors="replace")


def unpack(wheel: Wheel, site: Path) -> None:
    """Put the wheel's files into the folder, without what `contents` drops."""
    dropped = (*ALWAYS_DROPPED, *CARRIED[wheel.name].drop)
    with zipfile.ZipFile(wheel.path) as archive:
        for name in archive.namelist():
            if not name.endswith("/") and not any(fnmatchcase(name, pattern) for pattern in dropped):
                target = site / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
