"""Lays out the tree that the launcher unpacks.

Layout, known to `packaging/launcher/exec.go`::

    bin/rollouts-gwapi             the dynamic loader; the kernel takes the process's name from it
    bin/python3.11
    lib/*.so.*                     C libraries, by soname
    lib/python3.11                 standard library, sourceless
    lib/python3.11/site-packages   dependencies and the plugin
    main.pyc                       builder/bootstrap.py

Two layers: `base` (everything foreign; made once a lock) and `plugin` (our own code). What must hold at the end, and is
checked: no source file, every library that a file needs is in the tree, no absolute library path.
"""

import os
import platform
import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

from builder import debian, elf, wheels
from builder.contents import DEBIAN, LIBRARY, STDLIB, STDLIB_LEFT_OUT
from builder.places import ARCHITECTURES, CACHE, PACKAGING, PYTHON, ROOT, Architecture, BuildError

SITE = f"{STDLIB}/site-packages"
LOADER = "bin/rollouts-gwapi"
COMPILER = PACKAGING / "builder" / "compile_tree.py"
BOOTSTRAP = PACKAGING / "builder" / "bootstrap.py"


def make_base(tree: Path, architecture: Architecture, *, strict: bool) -> None:
    """Lay out CPython, the C libraries and the dependencies."""
    place_interpreter(tree, architecture, strict=strict)
    for path in sorted(tree.joinpath(STDLIB).rglob("*")):
        name = str(path.relative_to(tree / STDLIB))
        if path.is_file() and any(fnmatchcase(name, pattern) for pattern in STDLIB_LEFT_OUT):
            path.unlink()
    for wheel in wheels.fetch(architecture):
        wheels.unpack(wheel, tree / SITE)
    for path in sorted(tree.joinpath(SITE).rglob("*.so*")):
        path.write_bytes(elf.keep_segments(path.read_bytes()))
    compile_sources(tree / STDLIB, "", "--no-docstrings", strict=strict)
    finish(tree)
    check_libraries(tree, architecture)


def make_plugin(tree: Path, *, strict: bool) -> None:
    """Lay out the plugin itself, from this work tree."""
    source, target = ROOT / "src" / "rollouts_gwapi_plugin", tree / SITE / "rollouts_gwapi_plugin"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", "*.pyi", "py.typed"))
    for description in sorted((ROOT / "examples").glob("*/demo.yaml")):
        example = description.parent
        shutil.copytree(example, target / "examples" / example.name, ignore=shutil.ignore_patterns("README.md"))
    compile_sources(tree / SITE, "", strict=strict)
    shutil.copy(BOOTSTRAP, tree / "main.py")
    compile_sources(tree, "rollouts-gwapi-plugin/", strict=strict)
    finish(tree)


def place_interpreter(tree: Path, architecture: Architecture, *, strict: bool) -> None:
    """Lay out Debian's files, uncompiled and whole."""
    for name, (_, file) in debian.fetch(architecture, strict=strict).items():
        debian.place(file, DEBIAN[name], architecture, tree)
    for library in sorted((tree / LIBRARY).glob("*.so*")):
        library.rename(library.with_name(elf.dynamic_tags(library, "DT_SONAME")[0]))
    (tree / LIBRARY / architecture.loader).rename(tree / LOADER)
    for path in (tree / "bin").iterdir():
        path.chmod(0o755)


def compile_sources(folder: Path, prefix: str, *flags: str, strict: bool) -> None:
    """Turn sources into bytecode by the carried interpreter, in this machine's build of it: bytecode has no machine."""
    interpreter = _runnable_interpreter(strict=strict)
    python = interpreter / "bin" / PYTHON
    subprocess.run(
        [
            str(interpreter / LOADER),
            "--library-path",
            str(interpreter / LIBRARY),
            "--argv0",
            str(python),
            str(python),
            "-B",
            "-s",
            "-S",
            "-P",
            str(COMPILER),
            str(folder),
            prefix,
            *flags,
        ],
        check=True,
        env={"PYTHONHASHSEED": "0", "PATH": os.environ["PATH"]},
    )


def _runnable_interpreter(*, strict: bool) -> Path:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
    if machine not in ARCHITECTURES:
        raise BuildError(f"bytecode is made on an amd64 or arm64 machine, and this is {platform.machine()}")
    architecture = ARCHITECTURES[machine]
    versions = [package.sha256[:8] for package, _ in debian.fetch(architecture, strict=strict).values()]
    place = CACHE / "interpreter" / "-".join([architecture.name, *sorted(versions)])
    if not place.exists():
        part = place.with_name(f"{place.name}.{os.getpid()}")
        place_interpreter(part, architecture, strict=strict)
        try:
            part.rename(place)
        except OSError:  # another build was first
            shutil.rmtree(part)
    return place


def finish(tree: Path) -> None:
    """Remove empty folders and set each file's mode to one of two."""
    for path in sorted(tree.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        else:
            path.chmod(0o755 if path.parent == tree / "bin" else 0o644)
    sources = list(tree.rglob("*.py"))
    if sources:
        raise BuildError(f"sources are left in the tree: {sources[0]}")


def check_libraries(tree: Path, architecture: Architecture) -> None:
    """Every needed library is carried, and none is looked for at an absolute place."""
    carried = {path.name for path in (tree / LIBRARY).iterdir()} | {architecture.loader}
    for path in sorted(tree.rglob("*")):
        if path.is_file() and elf.is_elf(path):
            lacking = set(elf.dynamic_tags(path, "DT_NEEDED")) - carried
            if lacking:
                raise BuildError(
                    f"{path.relative_to(tree)} needs {', '.join(sorted(lacking))}: carry it or drop the file"
                )
            absolute = [
                place
                for tag in ("DT_RUNPATH", "DT_RPATH")
                for place in elf.dynamic_tags(path, tag)
                if not place.startswith("$ORIGIN")
            ]
            if absolute:
                raise BuildError(f"{path.relative_to(tree)} looks for libraries in {absolute[0]}")
