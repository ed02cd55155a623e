"""Serve as a plugin: cookie, socket, handshake line, then one of the two transports, until the host is done.

The order is the contract with the host: nothing but the handshake line ever reaches its end of standard output, and it
comes before anything heavy is imported, since the host waits for it; connections that come meanwhile wait in the
socket's backlog. What must always hold: `run` returns an exit code and leaves no socket behind, whatever fails.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from rollouts_gwapi_plugin.errors import ConfigError, HandshakeError
from rollouts_gwapi_plugin.transport.flags import Flags, explanation, parse
from rollouts_gwapi_plugin.transport.lifetime import Lifetime
from rollouts_gwapi_plugin.transport.listener import Listener, listen, sweep, temporary_directory
from rollouts_gwapi_plugin.wire.goplugin.handshake import (
    APP_VERSIONS,
    GRPC,
    HandshakeLine,
    HostEnvironment,
    handshake_line,
)

if TYPE_CHECKING:
    import socket

    from rollouts_gwapi_plugin.service import Service
    from rollouts_gwapi_plugin.transport.calls import Calls
    from rollouts_gwapi_plugin.transport.tls import ServerIdentity

EXIT_FAILED = 1
# As Go's flag package.
EXIT_USAGE = 2
# After the running calls were answered: first for the host, to read its answers and close its connections (ours closing
# first could turn Quit's answer into an error there, and that into SIGKILL), and for Events that wait to be made; then
# for the last bytes of those left.
CLOSE_SECONDS = 0.25


class Server(Protocol):
    """What a transport gives: `serve` has one connection until it ends, `close` ends all."""

    def serve(self, connection: "socket.socket") -> None:
        """Serve one connection."""

    def close(self, seconds: float) -> None:
        """End all connections, with some time for what is on its way."""


def run(arguments: list[str]) -> int:
    """Serve until the host is done with us; return the exit code."""
    _hold_stderr()
    lifetime = Lifetime(os.getppid())
    try:
        flags = parse(arguments)
    except ConfigError as error:
        return _complain(f"{error}", EXIT_USAGE)
    except SystemExit as help_was_shown:
        return help_was_shown.code if isinstance(help_was_shown.code, int) else EXIT_FAILED
    try:
        environment = HostEnvironment.from_environ(os.environ)
        if not environment.cookie_ok:
            sys.stderr.write(explanation())
            return EXIT_FAILED
        return _Process(flags, environment, lifetime).run()
    except HandshakeError as error:
        return _complain(f"the plugin can't start: {error}", EXIT_FAILED)


def _complain(text: str, code: int) -> int:
    # The host reads the level from the brackets; the log is not set up yet.
    sys.stderr.write(f"[ERROR] {text}\n")
    return code


class _Process:
    """One run of the plugin, from the socket to its removal."""

    def __init__(self, flags: Flags, environment: HostEnvironment, lifetime: Lifetime) -> None:
        self._flags = flags
        self._environment = environment
        self._lifetime = lifetime
        self._identity: ServerIdentity | None = None

    def run(self) -> int:
        """Serve; return the exit code."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: self._lifetime.end_by_signal("SIGTERM"))
        stdout = _take_stdout()
        if self._environment.client_cert:
            from rollouts_gwapi_plugin.transport.tls import server_identity

            self._identity = server_identity(self._environment.client_cert)
        listener = self._listen()
        try:
            self._shake_hands(stdout, listener)
            return self._serve(listener)
        finally:
            listener.close()

    def _listen(self) -> Listener:
        environment = self._environment
        return listen(environment.socket_dir, environment.socket_group, environment.ports)

    def _shake_hands(self, stdout: int, listener: Listener) -> None:
        grpc = self._flags.transport == GRPC
        line = HandshakeLine(
            network=listener.network,
            address=listener.address,
            protocol=self._flags.transport,
            app_version=self._environment.app_version(),
            server_cert=self._identity.certificate if self._identity else b"",
            # A host that wants the streams of one connection shared refuses the plugin on this, and says why.
            multiplex_grpc=False if grpc and self._environment.multiplex_grpc else None,
        )
        try:
            # As the file system spells it: a folder's name need not be UTF-8.
            os.write(stdout, os.fsencode(handshake_line(line)))
        except OSError as error:
            raise HandshakeError(f"the host does not read the handshake line: {error}") from error

    def _serve(self, listener: Listener) -> int:
        from rollouts_gwapi_plugin import log

        log.configure(self._flags.log_format, self._flags.log_level)
        self._log_oddities(listener)
        from rollouts_gwapi_plugin.transport.calls import Calls
        from rollouts_gwapi_plugin.transport.front import Front
        from rollouts_gwapi_plugin.transport.lazy_service import LazyService

        service = LazyService(self._build_service)
        calls = Calls(service)
        server = self._make_server(calls)
        front = Front(listener.socket, server.serve)
        front.start()
        threading.Thread(target=self._after_start, args=(service.warm,), name="warm-up", daemon=True).start()
        ending = self._lifetime.wait()
        log.get_logger().info("the plugin ends", reason=ending.reason)
        front.close()
        calls.close()
        drained = self._lifetime.wait_drained(ending.drain, calls.wait_idle)
        closing = time.monotonic() + CLOSE_SECONDS
        service.close(CLOSE_SECONDS)
        front.join(max(0.0, closing - time.monotonic()))
        server.close(CLOSE_SECONDS if drained else 0.0)
        front.join(CLOSE_SECONDS)
        if not drained:
            log.get_logger().warning("calls were cut off", seconds=ending.drain)
            # Their threads would hold the interpreter; what they write is safe to be cut anywhere (decision D6).
            listener.close()
            os._exit(0)
        return 0

    def _make_server(self, calls: "Calls") -> Server:
        make_tls = self._identity.make_filter if self._identity else None
        if self._flags.transport == GRPC:
            from rollouts_gwapi_plugin.transport.grpc.server import GrpcServer

            return GrpcServer(calls, self._lifetime, self._environment.socket_dir, make_tls)
        from rollouts_gwapi_plugin.transport.netrpc.server import NetRpcServer

        return NetRpcServer(calls, self._lifetime, make_tls)

    def _build_service(self) -> "Service":
        from rollouts_gwapi_plugin import service

        return service.build(self._flags.service)

    def _after_start(self, warm: Callable[[], None]) -> None:
        warm()
        sweep(self._environment.socket_dir or temporary_directory())

    def _log_oddities(self, listener: Listener) -> None:
        from rollouts_gwapi_plugin.log import get_logger

        log = get_logger()
        log.info("the plugin serves", transport=self._flags.transport, network=listener.network, pid=os.getpid())
        wanted = self._environment.protocol_versions
        if wanted and not set(wanted) & set(APP_VERSIONS):
            log.error("the host speaks other protocol versions", host=list(wanted), plugin=list(APP_VERSIONS))
        if listener.why_not_unix:
            log.warning("listening on TCP, which any process of this machine can reach", cause=listener.why_not_unix)
        if self._flags.transport == GRPC and self._environment.multiplex_grpc:
            log.error("the host wants gRPC multiplexing, which this plugin does not serve; switch it off in the host")


def _hold_stderr() -> None:
    """Where standard error is closed, send it nowhere: what is opened next would get its number, and our log."""
    if sys.stderr is None:
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, 2)
        if nobody != 2:  # noqa: PLR2004 - the descriptor's number
            os.close(nobody)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _take_stdout() -> int:
    """Keep the host's end of standard output for the handshake line alone; stray prints go to standard error."""
    try:
        stdout = os.dup(1)
    except OSError as error:
        raise HandshakeError(f"standard output is closed, so no host can read the handshake line: {error}") from error
    os.dup2(2, 1)
    return stdout
