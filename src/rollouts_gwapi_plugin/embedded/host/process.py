"""A plugin as a child process, started and ended as go-plugin's client does it.

Takes a command; gives the environment and reads the handshake line that the plugin answers on standard output.
Standard error is the plugin's log: its last lines are kept, each is also handed to a callback. Ending asks the plugin
to quit, waits `QUIT_SECONDS`, then kills it.
"""

import os
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.controller import Plugin, Reply
from rollouts_gwapi_plugin.errors import HandshakeError
from rollouts_gwapi_plugin.wire.goplugin.handshake import (
    COOKIE_NAME,
    COOKIE_VALUE,
    GRPC,
    MAX_LINE,
    NETRPC,
    HandshakeLine,
    parse_handshake_line,
)

# go-plugin's own StartTimeout.
START_SECONDS = 60.0
# As long as go-plugin waits after Quit, before it kills.
QUIT_SECONDS = 2.0
# Enough to see why a plugin failed; a chatty one must not grow this process.
KEPT_LOG_LINES = 200
HOST_ENVIRONMENT = {
    COOKIE_NAME: COOKIE_VALUE,
    "PLUGIN_PROTOCOL_VERSIONS": "1",
    "PLUGIN_MIN_PORT": "10000",
    "PLUGIN_MAX_PORT": "25000",
}


class Client(Plugin, Protocol):
    """The connection to a plugin."""

    def quit(self) -> None:
        """Ask the plugin to end, and close the connection."""


class PluginProcess:
    """The process and its handshake line."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        on_log: Callable[[str], None] | None = None,
        seconds: float = START_SECONDS,
    ) -> None:
        self.log: deque[str] = deque(maxlen=KEPT_LOG_LINES)
        self._on_log = on_log
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the caller's
                command,
                env={**os.environ, **environment, **HOST_ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise HandshakeError(f"the plugin {command[0]} can't be started: {error}") from error
        self._threads = [threading.Thread(target=self._read_log, name="plugin-log", daemon=True)]
        self._threads[0].start()
        try:
            self.line = self._read_line(seconds)
        except HandshakeError:
            self.end(0)
            raise
        self._threads.append(threading.Thread(target=self._drain, name="plugin-output", daemon=True))
        self._threads[1].start()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, None while it runs."""
        return self._process.poll()

    def end(self, seconds: float = QUIT_SECONDS) -> bool:
        """Wait for the end, then kill; return whether it ended by itself."""
        try:
            self._process.wait(seconds)
            by_itself = True
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            by_itself = False
        for thread in self._threads:
            # A child of the plugin may have inherited the pipe; it must not hold us.
            thread.join(QUIT_SECONDS)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        return by_itself

    def _read_line(self, seconds: float) -> HandshakeLine:
        stdout = self._process.stdout
        deadline, received = time.monotonic() + seconds, b""
        while stdout is not None and b"\n" not in received and len(received) <= MAX_LINE:
            ready, _, _ = select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise HandshakeError(f"the plugin wrote no handshake line in {seconds:g} s{self._last_words()}")
            part = os.read(stdout.fileno(), MAX_LINE)
            if not part:
                raise HandshakeError(f"the plugin ended without a handshake line{self._last_words()}")
            received += part
        return parse_handshake_line(received.partition(b"\n")[0].decode("utf-8", "replace"))

    def _last_words(self) -> str:
        self._threads[0].join(QUIT_SECONDS)
        return f"; it said: {' '.join(self.log)[-2000:]}" if self.log else ""

    def _read_log(self) -> None:
        for raw in self._process.stderr or ():
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self.log.append(line)
            if self._on_log is not None:
                self._on_log(line)

    def _drain(self) -> None:
        for _ in self._process.stdout or ():
            pass


class ChildPlugin:
    """A plugin that runs while the context is open, with the controller's first calls made."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        on_log: Callable[[str], None] | None = None,
        seconds: float = START_SECONDS,
    ) -> None:
        began = time.monotonic()
        self.process = PluginProcess(command, environment or {}, on_log=on_log, seconds=seconds)
        self.start_seconds = time.monotonic() - began
        self.ended_by_itself: bool | None = None
        try:
            self._client = connect(self.process.line)
            self.init_reply = self.call(Call("InitPlugin", {}))
            self.ping()
        except BaseException:
            self.process.end(0)
            raise

    def ping(self) -> None:
        """Ask whether it is alive."""
        self._client.ping()

    def call(self, call: Call) -> Reply:
        """Send a call and return its answer."""
        return self._client.call(call)

    def close(self) -> None:
        """Quit, and wait for the end."""
        try:
            self._client.quit()
        finally:
            self.ended_by_itself = self.process.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(line: HandshakeLine) -> Client:
    """Return the connection that a handshake line asks for."""
    if line.network == "unix" and not Path(line.address).exists():
        raise HandshakeError(f"the plugin says that it listens on {line.address}, where nothing is")
    if line.protocol == NETRPC:
        from rollouts_gwapi_plugin.embedded.host.netrpc import NetRpcClient  # noqa: PLC0415 - only the chosen one

        return NetRpcClient(line)
    if line.protocol == GRPC:
        # The gRPC libraries take half a second to import.
        from rollouts_gwapi_plugin.embedded.host.grpc import GrpcClient  # noqa: PLC0415

        return GrpcClient(line)
    raise HandshakeError(f"the plugin speaks {line.protocol!r}")
