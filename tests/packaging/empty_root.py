"""Run a program as the controller's container does: an empty read-only root, another user, no capabilities.

Takes a description as JSON (`Room`) and a command; builds the root on a tmpfs in a mount namespace of its own, so that
nothing is left when the process ends; enters it, drops everything, and becomes the command: same pid. It needs root,
and nothing but the standard library, since it is run as a program of its own.
"""

import ctypes
import json
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import TypedDict

CLONE_NEWNS = 0x00020000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
LAST_CAPABILITY = 40
DEVICES = ("null", "zero", "urandom", "random")

_libc = ctypes.CDLL(None, use_errno=True)


class Room(TypedDict, total=False):
    """The root: `files` are copied, `binds` stay writable (both inside -> outside), `tmpfs` is inside -> options."""

    root: str
    user: int
    files: dict[str, str]
    binds: dict[str, str]
    tmpfs: dict[str, str]
    proc: bool


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: Path | str, kind: str, flags: int = 0, options: str = "") -> None:
    _check(
        _libc.mount(source.encode(), str(target).encode(), kind.encode(), flags, options.encode()), f"mount {target}"
    )


def furnish(room: Room) -> None:
    """Make the root and enter it."""
    _check(_libc.unshare(CLONE_NEWNS), "unshare")
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    root = Path(room["root"])
    _mount("tmpfs", root, "tmpfs", 0, "mode=755")
    for inside, outside in room.get("files", {}).items():
        target = root / inside.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(outside, target)
    (root / "dev").mkdir()
    for device in DEVICES:
        (root / "dev" / device).touch()
        _mount(f"/dev/{device}", root / "dev" / device, "", MS_BIND)
    for inside, outside in room.get("binds", {}).items():
        (root / inside.lstrip("/")).mkdir(parents=True, exist_ok=True)
        _mount(outside, root / inside.lstrip("/"), "", MS_BIND)
    for inside, options in room.get("tmpfs", {}).items():
        (root / inside.lstrip("/")).mkdir(parents=True, exist_ok=True)
        words = options.split(",")
        flags = (8 if "noexec" in words else 0) | (MS_RDONLY if "ro" in words else 0)
        kept = ",".join(word for word in words if word not in {"noexec", "ro"})
        _mount("tmpfs", root / inside.lstrip("/"), "tmpfs", flags, kept)
    if room.get("proc", True):
        (root / "proc").mkdir()
        _mount("/proc", root / "proc", "", MS_BIND | MS_REC)
    _mount("none", root, "", MS_REMOUNT | MS_RDONLY)
    os.chroot(root)
    os.chdir("/")


def drop(user: int) -> None:
    """Be that user, with no capability and no way to get one."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for capability in range(LAST_CAPABILITY + 1):
        _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def main() -> None:
    """Enter the room and become the command."""
    room: Room = json.loads(sys.argv[1])
    furnish(room)
    drop(room.get("user", 999))
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - the command of the test


if __name__ == "__main__":
    main()
