"""When the process ends, and how long running calls may still take.

Four things end it: the host asks (Quit, Shutdown), SIGTERM, the last connection that carried a session closed, or the
parent is gone (decision D4). The main thread waits here; all others only report. The parent is watched by its pid:
PDEATHSIG would fire when the thread of the host that forked us ends, which in Go may be any time.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

# How often the main thread looks at its parent: with the drain after it this stays well below the 2 s of D4.
POLL = 0.25
# A host may close its only connection and open another at once; only then is it gone.
LINGER = 0.5
# What running calls get after the host has gone or asked us to end: go-plugin kills 2 s after Quit's answer, and a
# throttled process needs some of that to end.
DRAIN_AFTER_HOST = 0.75
# What running calls get after SIGTERM, when the host is still there to read the answers: a call's own deadline is
# longer, but a supervisor's patience is 30 s at most.
DRAIN_AFTER_SIGTERM = 10.0


@dataclass(frozen=True)
class Ending:
    """Why the process ends, and how many seconds running calls still get."""

    reason: str
    drain: float


class Lifetime:
    """Counts sessions, takes requests to end, and watches the parent."""

    def __init__(self, parent: int, parent_now: Callable[[], int] = os.getppid) -> None:
        self._parent = parent
        self._parent_now = parent_now
        self._sessions = 0
        self._last_closed: float | None = None
        self._ending: Ending | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def session_opened(self) -> None:
        """Note a connection over which the host has begun to talk."""
        with self._lock:
            self._sessions += 1

    def session_closed(self) -> None:
        """Note the end of such a connection."""
        with self._lock:
            self._sessions -= 1
            self._last_closed = time.monotonic()

    def end(self, reason: str, drain: float = DRAIN_AFTER_HOST) -> None:
        """Ask for the end; the first reason stays."""
        self.end_by_signal(reason, drain)
        self._ended.set()

    def end_by_signal(self, reason: str, drain: float = DRAIN_AFTER_SIGTERM) -> None:
        """Ask for the end from a signal handler: it takes no lock, which the main thread may hold; `wait` sees it."""
        if self._ending is None:
            self._ending = Ending(reason, drain)

    @property
    def host_gone(self) -> str:
        """Why nobody is left to serve; empty while somebody is."""
        parent = self._parent_now()
        if parent != self._parent:
            return f"the host (pid {self._parent}) is gone"
        with self._lock:
            closed = self._last_closed if self._sessions == 0 else None
        if closed is not None and time.monotonic() - closed >= LINGER:
            return "the host has closed its last connection"
        return ""

    def wait(self) -> Ending:
        """Wait for the end."""
        while self._ending is None:
            if gone := self.host_gone:
                self.end(gone)
            self._ended.wait(POLL)
        return self._ending

    def wait_drained(self, seconds: float, wait_idle: Callable[[float], bool]) -> bool:
        """Wait until `wait_idle` says so; a host that goes meanwhile cuts the time to `DRAIN_AFTER_HOST`."""
        deadline = time.monotonic() + seconds
        cut = False
        while not wait_idle(min(POLL, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            if not cut and self.host_gone:
                cut, deadline = True, min(deadline, time.monotonic() + DRAIN_AFTER_HOST)
        return True
