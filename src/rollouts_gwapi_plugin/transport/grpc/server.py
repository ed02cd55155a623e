"""The gRPC server: on a private socket, with the front before it.

The front (one listening socket for both transports) takes off TLS and counts sessions; the server itself listens in a
folder that only our user may enter (decision D2). What must always hold: nobody but the front can reach the server.
"""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from rollouts_gwapi_plugin.errors import HandshakeError
from rollouts_gwapi_plugin.transport.calls import MAX_CALLS, Calls
from rollouts_gwapi_plugin.transport.front import MAX_CONNECTIONS
from rollouts_gwapi_plugin.transport.grpc import plugin_services, servicer
from rollouts_gwapi_plugin.transport.lifetime import Lifetime
from rollouts_gwapi_plugin.transport.listener import (
    MAX_PATH,
    PREFIX,
    PRIVATE_SOCKET,
    SHORT_DIRECTORY,
    temporary_directory,
)
from rollouts_gwapi_plugin.transport.pump import Pump
from rollouts_gwapi_plugin.transport.tls import TlsFilter

# A Rollout is at most the 1.5 MiB that etcd takes, plus what the controller adds; the default of 4 MiB is near to that.
MAX_MESSAGE = 16 * 1024 * 1024
# Health, reflection and Shutdown must find a thread while all calls run and each connection holds a broker's stream.
SPARE_THREADS = 16
# What an HTTP/2 client sends first; whoever sends something else is no host.
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class GrpcServer:
    """Serves the calls and go-plugin's own services to the connections that `serve` gets."""

    def __init__(
        self, calls: Calls, lifetime: Lifetime, directory: str, make_tls: Callable[[], TlsFilter] | None
    ) -> None:
        self._lifetime = lifetime
        self._make_tls = make_tls
        self._folder = _private_folder(directory)
        self._address = str(self._folder / PRIVATE_SOCKET)
        self._server = grpc.server(
            ThreadPoolExecutor(MAX_CALLS + MAX_CONNECTIONS + SPARE_THREADS, thread_name_prefix="grpc"),
            options=[("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.so_reuseport", 0)],
        )
        servicer.register(self._server, calls)
        plugin_services.register(self._server, lambda: lifetime.end("the host called Shutdown"))
        try:
            self._server.add_insecure_port(f"unix:{self._address}")
        except RuntimeError as error:
            self._remove_folder()
            raise HandshakeError(f"gRPC can't listen on {self._address}: {error}") from error
        self._server.start()

    def serve(self, connection: socket.socket) -> None:
        """Carry one connection of the host until it ends."""
        counted = False

        def open_inner(first: bytes) -> socket.socket:
            nonlocal counted
            inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                inner.connect(self._address)
            except OSError:
                inner.close()
                raise
            if HTTP2_PREFACE.startswith(first[: len(HTTP2_PREFACE)]):
                counted = True
                self._lifetime.session_opened()
            return inner

        try:
            Pump(connection, open_inner, self._make_tls() if self._make_tls else None).run()
        finally:
            if counted:
                self._lifetime.session_closed()

    def close(self, seconds: float) -> None:
        """Stop, with some time for answers on their way; remove the private socket."""
        self._server.stop(seconds).wait(seconds)
        self._remove_folder()

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _private_folder(directory: str) -> Path:
    """Make a folder with mode 0700, in the host's folder for sockets or in another with a path that is short enough."""
    problems = []
    for parent in filter(None, dict.fromkeys((directory, temporary_directory(), SHORT_DIRECTORY))):
        try:
            # gRPC takes an address in UTF-8 only.
            parent.encode()
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        except (OSError, UnicodeEncodeError) as error:
            problems.append(str(error))
            continue
        if len(os.fsencode(folder / PRIVATE_SOCKET)) <= MAX_PATH:
            return folder
        folder.rmdir()
        problems.append(f"{parent} is too long for the path of a socket")
    raise HandshakeError(
        f"no private folder for the gRPC socket: {'; '.join(problems)}; set PLUGIN_UNIX_SOCKET_DIR or TMPDIR to a"
        " writable one with a short path"
    )
