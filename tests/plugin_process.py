"""The plugin as a child process, with the stub service of `stub_plugin.py`; tests get it by the fixture `start_plugin`.

Everything that a test waits for has a deadline here, so no test sleeps.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollouts_gwapi_plugin.wire.goplugin.handshake import HandshakeLine, parse_handshake_line

# Two busy cores start Python slowly; what is waited for takes a fraction of it.
DEADLINE = 20.0
STUB = Path(__file__).with_name("stub_plugin.py")
HOST_ENVIRONMENT = {
    "ARGO_ROLLOUTS_RPC_PLUGIN": "trafficrouter",
    "PLUGIN_PROTOCOL_VERSIONS": "1",
    "PLUGIN_MIN_PORT": "10000",
    "PLUGIN_MAX_PORT": "25000",
}
_PAUSE = threading.Event()


def wait_until(condition: Callable[[], object], what: str, seconds: float = DEADLINE) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        _PAUSE.wait(0.005)


def plugin_environment(folder: Path, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the environment that a host gives, with changes; None takes a name out."""
    made: dict[str, str | None] = {**os.environ, **HOST_ENVIRONMENT, "TMPDIR": str(folder)}
    made |= {"STUB_CALLS": str(folder / "calls.jsonl"), **changes}
    return {name: value for name, value in made.items() if value is not None}


class PluginProcess:
    """A running plugin: its handshake line, its log, the calls that its service got, and its end."""

    def __init__(
        self, folder: Path, arguments: Sequence[str], changes: Mapping[str, str | None], command: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self.stderr_file = folder / "stderr.log"
        with self.stderr_file.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*(command or (sys.executable, str(STUB))), *arguments],
                env=plugin_environment(folder, changes),
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self.first_line = ""

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.process.pid

    def handshake(self) -> HandshakeLine:
        """Read the first line of standard output."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
        assert ready, f"no handshake line: {self.stderr}"
        self.first_line = self.process.stdout.readline().decode()
        return parse_handshake_line(self.first_line)

    def rest_of_stdout(self) -> bytes:
        """Read what follows the handshake line until the end."""
        assert self.process.stdout is not None
        return self.process.stdout.read()

    @property
    def stderr(self) -> str:
        """All that was written to standard error."""
        return self.stderr_file.read_text(encoding="utf-8")

    def log(self, part: str) -> list[dict[str, Any]]:
        """Return the log entries whose message contains a text."""
        entries = [json.loads(line) for line in self.stderr.splitlines() if line.startswith("{")]
        return [entry for entry in entries if part in entry["@message"]]

    def wait_log(self, part: str) -> dict[str, Any]:
        """Wait for such an entry."""
        wait_until(lambda: self.log(part), f"{part!r} in the log: {self.stderr}")
        return self.log(part)[0]

    def calls(self, event: str = "") -> list[dict[str, Any]]:
        """Return what the service noted."""
        file = self.folder / "calls.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [entry for entry in map(json.loads, lines) if event in {"", entry["event"]}]

    def wait_calls(self, event: str, count: int) -> None:
        """Wait until the service got that many calls."""
        wait_until(lambda: len(self.calls(event)) >= count, f"{count} times {event}: {self.calls(event)}")

    def wait(self, seconds: float = DEADLINE) -> int:
        """Wait for the end; return the exit code."""
        return self.process.wait(seconds)

    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def stop(self) -> None:
        """Leave nothing behind."""
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE)
        if self.process.stdout is not None:
            self.process.stdout.close()
