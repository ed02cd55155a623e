"""A process confined as a container is, and a supervisor that starts it again as a kubelet does. Standard library only.

`python -m e2e.cluster.container supervise SPEC` runs `… run SPEC` in a loop and notes each end in the spec's `exits`
file; SIGTERM ends loop and container. `run` makes the container: own mount, pid, IPC and UTS namespaces, a root of its
own (an empty tmpfs with the spec's binds), no capability, no way to get one; its command is pid 1, and with it all of
its children end. The network namespace is the caller's.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

from e2e.cluster import linux

# Between two starts of a container that ends: the first wait, and the longest.
BACKOFF_FIRST = 0.3
BACKOFF_LONGEST = 5.0
_DEVICES = ("null", "zero", "full", "random", "urandom")


@dataclass(frozen=True)
class Bind:
    """A file or folder of the machine that the container sees."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class Spec:
    """What to run, as whom, and in what root."""

    command: list[str]
    root: str  # an empty folder of the machine, the mount point
    notes: str  # a folder: `exits` (a line an end), `pid` (of the command, as the machine sees it)
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    binds: list[Bind] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    scratch: list[str] = field(default_factory=lambda: ["/tmp"])  # noqa: S108 - the container's own, a tmpfs
    hostname: str = "container"
    uid: int = 0
    gid: int = 0
    drop: bool = True

    def save(self, path: Path) -> None:
        """Write the spec where `load` reads it."""
        path.write_text(json.dumps(asdict(self), indent=1))


def load(path: Path) -> Spec:
    """Read a saved spec."""
    data = json.loads(path.read_text())
    return Spec(**{**data, "binds": [Bind(**bind) for bind in data["binds"]]})


@dataclass(frozen=True)
class Exit:
    """One end of the container: exit code, or minus the signal; seconds since the epoch."""

    code: int
    at: float


def exits(notes: Path) -> list[Exit]:
    """All ends so far."""
    path = notes / "exits"
    return [Exit(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def supervise(path: Path) -> int:
    """Run the container again and again until SIGTERM."""
    notes = Path(load(path).notes)
    stopping = False
    running: subprocess.Popen[bytes] | None = None

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        if running is not None:
            running.terminate()

    signal.signal(signal.SIGTERM, stop)
    backoff = BACKOFF_FIRST
    while not stopping:
        began = time.monotonic()
        running = subprocess.Popen([sys.executable, "-m", __spec__.name, "run", str(path)])
        code = running.wait()
        with (notes / "exits").open("a") as log:
            log.write(json.dumps(asdict(Exit(code, time.time()))) + "\n")
        backoff = BACKOFF_FIRST if time.monotonic() - began > BACKOFF_LONGEST else min(backoff * 2, BACKOFF_LONGEST)
        if not stopping:
            # SIGTERM must end the wait, so it is waited for by name.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            stopping = signal.sigtimedwait({signal.SIGTERM}, backoff) is not None
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return 0


def run(path: Path) -> int:
    """Run the container once; return its exit code, or 128 plus the signal that ended it."""
    spec = load(path)
    linux.die_with_parent(signal.SIGKILL)
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS)
    child = os.fork()
    if child == 0:
        _become(spec)
    (Path(spec.notes) / "pid").write_text(str(child))
    signal.signal(signal.SIGTERM, lambda _number, _frame: os.kill(child, signal.SIGTERM))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become(spec: Spec) -> NoReturn:
    """Turn this process into the container's command."""
    try:
        socket.sethostname(spec.hostname)
        _make_root(spec)
        os.chroot(spec.root)
        os.chdir(spec.folder)
        if spec.drop:
            linux.drop_privileges(spec.uid, spec.gid)
        linux.die_with_parent(signal.SIGKILL)
        os.execve(spec.command[0], spec.command, spec.environment)  # noqa: S606 - it is what a container runtime does
    except OSError as error:
        print(f"container: {error}", file=sys.stderr, flush=True)  # noqa: T201 - there is no logger yet
    finally:
        # Whatever happened, this must not go on as a second supervisor.
        os._exit(127)


def _make_root(spec: Spec) -> None:
    root = Path(spec.root)
    linux.mount("none", Path("/"), "", linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID, "mode=755")
    (root / "dev").mkdir()
    for device in _DEVICES:
        (root / "dev" / device).touch()
        linux.bind(Path("/dev") / device, root / "dev" / device, read_only=False)
    links = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
    for name, target in links.items():
        (root / "dev" / name).symlink_to(f"/proc/self/{target}")
    (root / "proc").mkdir()
    linux.mount("proc", root / "proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    (root / spec.folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for folder in (*spec.scratch, "/dev/shm"):  # noqa: S108 - the container's own
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        linux.mount("tmpfs", root / folder.lstrip("/"), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777")
    _fill_root(root, spec.files, spec.binds)
    linux.mount("", root, "", linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID)


def _fill_root(root: Path, files: Mapping[str, str], binds: list[Bind]) -> None:
    for name, text in files.items():
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for bind in binds:
        source, target = Path(bind.source), root / bind.target.lstrip("/")
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        linux.bind(source, target, read_only=bind.read_only)


def main(arguments: list[str]) -> int:
    """Run one of the two commands."""
    action, path = arguments
    return {"supervise": supervise, "run": run}[action](Path(path))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
