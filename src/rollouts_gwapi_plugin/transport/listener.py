"""The socket that the host connects to: a unix socket where one can be made, else TCP on this machine.

`listen` returns a socket that already listens, so the host may connect before anything else is imported. A unix socket
is open to our own user alone, or to the group that the host names (PLUGIN_UNIX_SOCKET_GROUP). A plugin that was killed
leaves its socket behind; `sweep` removes those that nobody listens on.
"""

import contextlib
import os
import shutil
import socket
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rollouts_gwapi_plugin.errors import HandshakeError, cut, shown

# Short, since a socket's path has 107 bytes at most, and the host's folder has taken some.
PREFIX = "rollouts-gwapi-"
MAX_PATH = 107
# The one socket in a private folder (gRPC behind the front, decision D2).
PRIVATE_SOCKET = "grpc.sock"
# Where a path is always short enough.
SHORT_DIRECTORY = "/tmp"  # noqa: S108 - the names in it are random, and made by bind or mkdtemp, which take no existing one
# Between bind and listen a socket refuses connections, as a stale one does; a younger one is left alone.
STALE_AFTER = 60.0
# Connections that come before we accept: a host opens one or two, but a full backlog is an error to it, not a wait.
BACKLOG = 128


@dataclass(frozen=True)
class Listener:
    """A listening socket, and what the handshake line says of it; `why_not_unix` tells why it is TCP."""

    socket: socket.socket
    network: str
    address: str
    why_not_unix: str = ""

    def close(self) -> None:
        """Stop listening and remove the socket's file."""
        # Without the shutdown a thread that waits in accept would go on waiting.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        if self.network == "unix":
            Path(self.address).unlink(missing_ok=True)


def temporary_directory() -> str:
    """Where sockets go unless the host names a folder: as in Go, without the imports of `tempfile`."""
    return os.environ.get("TMPDIR") or SHORT_DIRECTORY


def listen(directory: str, group: str, ports: Callable[[], range]) -> Listener:
    """Listen on a unix socket in the directory (empty: the temporary one), else on the first free port.

    Raises:
        HandshakeError: The group is unknown or can't be given the socket, or there is no way to listen at all, also
            since the ports, which are asked for only then, can't be used.

    """
    try:
        return _listen_unix(directory or temporary_directory(), group)
    except OSError as error:
        return _listen_tcp(ports(), f"no unix socket in {directory or temporary_directory()}: {error}")


def _listen_unix(directory: str, group: str) -> Listener:
    path = f"{directory}/{PREFIX}{os.urandom(4).hex()}"
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Nobody may connect before the mode and the group are right.
    umask = os.umask(0o177)
    try:
        server.bind(path)
    except OSError:
        server.close()
        raise
    finally:
        os.umask(umask)
    listener = Listener(server, "unix", path)
    try:
        if group:
            _give_to_group(path, group)
        server.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _give_to_group(path: str, group: str) -> None:
    try:
        shutil.chown(path, group=int(group) if group.isascii() and group.isdecimal() else group)
        Path(path).chmod(0o660)
    except (LookupError, OSError, OverflowError, ValueError) as error:
        raise HandshakeError(
            f"the socket {path} can't be given to the group {shown(group)} of PLUGIN_UNIX_SOCKET_GROUP:"
            f" {cut(str(error))}; name a group that exists here and that this user is in"
        ) from error


def _listen_tcp(ports: range, why_not_unix: str) -> Listener:
    last: OSError | None = None
    for port in ports:
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            server.bind(("127.0.0.1", port))
            server.listen(BACKLOG)
        except OSError as error:
            server.close()
            last = error
            continue
        return Listener(server, "tcp", f"127.0.0.1:{server.getsockname()[1]}", why_not_unix)
    raise HandshakeError(
        f"can't listen: {why_not_unix}; and no port from {ports.start} to {ports.stop - 1} of 127.0.0.1 is free:"
        f" {last or 'the range is empty'}"
    ) from last


def sweep(directory: str) -> int:
    """Remove sockets and private folders of ours in the directory that nobody listens on; return how many."""
    removed = 0
    with contextlib.suppress(OSError):
        for place in Path(directory).glob(f"{PREFIX}*"):
            file = place / PRIVATE_SOCKET if place.is_dir() and not place.is_symlink() else place
            if _is_stale(file):
                with contextlib.suppress(OSError):
                    file.unlink()
                    if file != place:
                        place.rmdir()
                    removed += 1
    return removed


def _is_stale(file: Path) -> bool:
    try:
        status = file.lstat()
    except OSError:
        return False
    young = time.time() - status.st_mtime < STALE_AFTER
    if young or not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(file))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
