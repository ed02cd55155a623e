"""Makes the executable: layers -> payload -> launcher with the payload in it.

`make_executable` gives the same bytes for the same commit and locks. Layers of foreign code are kept in the cache, by a
key over everything that goes into them, so that a warm build takes seconds.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from builder import debian, payload, tree, wheels
from builder.payload import Layer
from builder.places import CACHE, PACKAGING, Architecture, BuildError

LAUNCHER = PACKAGING / "launcher"


@dataclass(frozen=True)
class Options:
    """How to build; the defaults are those of a developer's build."""

    level: int = payload.LEVEL_RELEASE
    strict: bool = False
    cached: bool = True


@dataclass(frozen=True)
class Figures:
    """What the build reports."""

    architecture: str
    sha256: str
    file_bytes: int
    unpacked_bytes: int
    unpacked_files: int


def make_executable(target: Path, architecture: Architecture, options: Options) -> Figures:
    """Build one architecture's executable at `target`."""
    layers = [_base_layer(architecture, options), _plugin_layer(options)]
    make_launcher(target, architecture, layers)
    content = target.read_bytes()
    return Figures(
        architecture.name,
        hashlib.sha256(content).hexdigest(),
        len(content),
        sum(layer.size_on_disk for layer in layers),
        sum(len(layer.files) for layer in layers),
    )


def make_launcher(target: Path, architecture: Architecture, layers: list[Layer]) -> None:
    """Compile the launcher around the payload."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "launcher"
        shutil.copytree(LAUNCHER, source, ignore=shutil.ignore_patterns("*_test.go"))
        (source / "payload" / "tree.tar.zst").write_bytes(b"".join(layer.packed for layer in layers))
        (source / "payload" / "identity").write_text(payload.identity(layers))
        (source / "payload" / "files").write_text(payload.listing(layers))
        environment = {
            **os.environ,
            "CGO_ENABLED": "0",
            "GOOS": "linux",
            "GOARCH": architecture.name,
            "GOFLAGS": "-mod=readonly",
            "GOAMD64": "v1",
            "GOARM64": "v8.0",
            "GOTOOLCHAIN": "local",
        }
        try:
            subprocess.run(
                ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", str(target), "."],
                cwd=source,
                env=environment,
                check=True,
            )
        except FileNotFoundError as error:
            raise BuildError("the Go toolchain is needed to build the launcher") from error
    target.chmod(0o755)


def _plugin_layer(options: Options) -> Layer:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "tree"
        folder.mkdir()
        tree.make_plugin(folder, strict=options.strict)
        return payload.pack(folder, level=options.level, last=True)


def _base_layer(architecture: Architecture, options: Options) -> Layer:
    stored = CACHE / "base" / f"{architecture.name}-{_base_key(architecture, options)}"
    figures, packed = stored.with_suffix(".json"), stored.with_suffix(".tar.zst")
    if options.cached and figures.exists():
        return Layer(packed=packed.read_bytes(), **json.loads(figures.read_text()))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "tree"
        folder.mkdir()
        tree.make_base(folder, architecture, strict=options.strict)
        layer = payload.pack(folder, level=options.level, last=False)
    if options.cached:
        stored.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes(layer.packed)
        sizes = asdict(layer)
        del sizes["packed"]
        figures.write_text(json.dumps(sizes))
    return layer


def _base_key(architecture: Architecture, options: Options) -> str:
    digest = hashlib.sha256(f"{options.level}\n".encode())
    digest.update("".join(_inputs(architecture, options)).encode())
    return digest.hexdigest()[:24]


def _inputs(architecture: Architecture, options: Options) -> Iterable[str]:
    for package, _ in debian.fetch(architecture, strict=options.strict).values():
        yield f"{package.line}\n"
    for wheel in wheels.fetch(architecture):
        yield f"{wheel.name} {wheel.sha256}\n"
    for source in sorted((PACKAGING / "builder").glob("*.py")):
        if source.name in {
            "contents.py",
            "tree.py",
            "payload.py",
            "elf.py",
            "compile_tree.py",
            "wheels.py",
            "debian.py",
        }:
            yield source.read_text()
