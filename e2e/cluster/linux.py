"""The few Linux calls that Python 3.11 lacks: namespaces, mounts, capabilities. Each raises OSError as `os` does."""

import ctypes
import os
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
# A capability set is 64 bits wide.
_MOST_CAPABILITIES = 64

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def enter_namespace(path: Path, kind: int) -> None:
    """Move the calling thread into the namespace that the file stands for."""
    with path.open("rb") as namespace:
        _checked(_libc.setns(namespace.fileno(), kind), str(path))


def unshare(kinds: int) -> None:
    """Give the calling process new namespaces of these kinds; a new pid namespace holds for its next children."""
    _checked(_libc.unshare(kinds), "unshare")


def mount(source: str, target: Path, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system, or change a mount: the system call as it is."""
    result = _libc.mount(
        source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode() or None
    )
    _checked(result, str(target))


def bind(source: Path, target: Path, *, read_only: bool) -> None:
    """Show the source at the target, which must exist; no set-uid programs and no devices count there."""
    mount(str(source), target, "", MS_BIND)
    if read_only:
        # The flags of a bind mount are taken only by a second call.
        mount("", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID)


def drop_privileges(uid: int, gid: int) -> None:
    """Become uid and gid without any capability, and without a way to get one back."""
    for capability in range(_MOST_CAPABILITIES):
        # 0: it is not in the set; -1: there is no such capability.
        if _libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) == 1:
            _checked(_libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0), f"capability {capability}")
    _checked(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient capabilities")
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def die_with_parent(signal_number: int) -> None:
    """Have the signal sent to this process when its parent ends; set after the change of user, which clears it."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "pdeathsig")
