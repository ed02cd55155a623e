"""Debian's packages of one architecture: CPython and the C libraries below it.

`packaging/debian.lock` pins each by version and digest. Packages come through apt, with a state directory of its own,
so that the machine's set of architectures and packages is not touched; the sources are the machine's. The archive
keeps only the newest build of a package: where a pinned one is gone, a build for trial takes the newest and says so,
and a release stops.
"""

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import click

from builder.contents import DEBIAN
from builder.places import ARCHITECTURES, CACHE, PACKAGING, Architecture, BuildError

LOCK = PACKAGING / "debian.lock"


@dataclass(frozen=True)
class DebianPackage:
    """A pinned package."""

    architecture: str
    name: str
    version: str
    sha256: str

    @property
    def line(self) -> str:
        """As it stands in the lock."""
        return f"{self.architecture} {self.name} {self.version} {self.sha256}"


def read_lock() -> list[DebianPackage]:
    """All pinned packages."""
    lines = LOCK.read_text().splitlines()
    return [DebianPackage(*line.split()) for line in lines if line and not line.startswith("#")]


def write_lock() -> None:
    """Pin the newest version of each package, for all architectures."""
    pinned = [
        package
        for architecture in ARCHITECTURES.values()
        for package in _download(architecture, [(name, "") for name in DEBIAN]).values()
    ]
    head = "# Made by `make binary-lock`. Architecture, package, version, SHA-256 of the .deb file.\n"
    LOCK.write_text(head + "".join(f"{package.line}\n" for package in pinned))


def fetch(architecture: Architecture, *, strict: bool) -> dict[str, tuple[DebianPackage, Path]]:
    """Name -> the package that is carried, and its file. `strict` refuses what is not pinned."""
    pinned = {package.name: package for package in read_lock() if package.architecture == architecture.name}
    if set(pinned) != set(DEBIAN):
        raise BuildError(
            "packaging/debian.lock does not list the packages of packaging/builder/contents.py: run `make binary-lock`"
        )
    missing = [package for package in pinned.values() if not _stored(package).exists()]
    found = dict(pinned)
    if missing:
        try:
            found.update(_download(architecture, [(package.name, package.version) for package in missing]))
        except BuildError as error:
            if strict:
                raise BuildError(
                    f"{error}. If a package was updated, pin the newest ones: `make binary-lock`"
                ) from error
            click.echo("warning: a pinned Debian package is gone from the archive; taking the newest ones", err=True)
            found.update(_download(architecture, [(package.name, "") for package in missing]))
    changed = [
        package.name
        for package in missing
        if found[package.name].version == package.version and found[package.name].sha256 != package.sha256
    ]
    if changed:
        raise BuildError(f"the archive's files of {', '.join(changed)} are not the pinned ones (SHA-256 differs)")
    return {name: (package, _stored(package)) for name, package in found.items()}


def _stored(package: DebianPackage) -> Path:
    return CACHE / "debian" / package.sha256 / f"{package.name}.deb"


def _download(architecture: Architecture, wanted: Iterable[tuple[str, str]]) -> dict[str, DebianPackage]:
    state = CACHE / "apt" / architecture.name
    for folder in ("lists/partial", "cache/archives/partial", "new"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / "apt.conf").write_text(
        f'APT::Architecture "{architecture.name}";\nAPT::Architectures {{ "{architecture.name}"; }};\n'
        f'Dir::State "{state}";\nDir::State::status "{state}/status";\nDir::Cache "{state}/cache";\n'
        # The lists of languages are megabytes that nobody reads; root may lack a user `_apt` to drop to.
        'Acquire::Languages "none";\nAPT::Sandbox::User "root";\n'
    )
    names = [f"{name}={version}" if version else name for name, version in wanted]
    with suppress(BuildError):  # one of the machine's sources may be away that has none of these packages
        _apt(state, ["-qq", "update"])
    _apt(state, ["-qq", "download", *names])
    found = {}
    for file in sorted((state / "new").glob("*.deb")):
        name, version, _ = unquote(file.stem).split("_")
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        package = DebianPackage(architecture.name, name, version, sha256)
        _stored(package).parent.mkdir(parents=True, exist_ok=True)
        file.replace(_stored(package))
        found[name] = package
    return found


def _apt(state: Path, arguments: list[str]) -> None:
    environment = {**os.environ, "APT_CONFIG": str(state / "apt.conf")}
    try:
        subprocess.run(["apt-get", *arguments], cwd=state / "new", env=environment, check=True, capture_output=True)
    except FileNotFoundError as error:
        raise BuildError("apt-get is needed to download Debian's CPython: build on Debian 12") from error
    except subprocess.CalledProcessError as error:
        raise BuildError(f"apt-get {' '.join(arguments)}: {error.stderr.decode().strip()}") from error


def place(package: Path, rules: Mapping[str, str], architecture: Architecture, tree: Path) -> None:
    """Copy the regular files that the rules name into the tree; a pattern's part before `**` is not repeated there."""
    files = regular_files(package)
    for pattern, folder in rules.items():
        wanted = pattern.format(triplet=architecture.triplet, loader=architecture.loader)
        base = PurePosixPath(wanted.removesuffix("**")) if wanted.endswith("/**") else None
        for name, content in files.items():
            if fnmatchcase(name, wanted):
                path = PurePosixPath(name)
                target = tree / folder / (path.relative_to(base) if base else path.name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def copyright_text(package: Path, name: str) -> str:
    """Read the package's licence, as Debian ships it; empty where another package's is meant."""
    return regular_files(package).get(f"usr/share/doc/{name}/copyright", b"").decode(errors="replace")


def regular_files(package: Path) -> dict[str, bytes]:
    """Path -> content of each file in a package; links are left out, since libraries are named by their soname."""
    unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(package)], check=True, capture_output=True)
    with tarfile.open(fileobj=BytesIO(unpacked.stdout)) as archive:
        return {
            str(PurePosixPath(member.name)): content.read()
            for member in archive.getmembers()
            if member.isreg() and (content := archive.extractfile(member)) is not None
        }
