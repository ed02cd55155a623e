"""The client's own request limit: so many requests a second, and a burst (decision D20).

A token bucket that goes below zero: a caller takes its token at once and learns how long it must wait for it. So the
waits are first come, first served, whatever the order in which threads wake up; and a caller whose wait would be
longer than its deadline takes no token and fails at once instead of sleeping for nothing.
"""

import threading

from rollouts_gwapi_plugin.errors import Unavailable
from rollouts_gwapi_plugin.kube.deadline import REAL_TIME, Deadline, Timing


class Limiter:
    """Thread-safe token bucket; a `qps` of 0 or less means no limit."""

    def __init__(self, qps: float, burst: int, *, timing: Timing = REAL_TIME) -> None:
        self._qps = qps
        self._burst = max(1, burst)
        self._timing = timing
        self._lock = threading.Lock()
        self._tokens = float(self._burst)
        self._filled_at = timing.clock()

    @property
    def setting(self) -> str:
        """The limit as the user sets it."""
        return f"kubeClientQPS={self._qps:g}, kubeClientBurst={self._burst}"

    def wait(self, tried: str, deadline: Deadline) -> float:
        """Wait for a request's turn and return the seconds waited.

        Raises:
            Unavailable: The turn would come after the deadline.
        """
        if self._qps <= 0:
            return 0.0
        seconds = self._take(deadline.remaining())
        if seconds is None:
            raise Unavailable(
                f"{tried}: not sent, since this client's request limit ({self.setting}) leaves no turn in the "
                f"{deadline.remaining():.1f} s that are left; raise the limit in the plugin's args"
            )
        if seconds > 0:
            self._timing.sleep(seconds)
        return seconds

    def _take(self, longest: float) -> float | None:
        """Take a token; return the wait until it exists, or None (and take nothing) where that is too long."""
        with self._lock:
            now = self._timing.clock()
            self._tokens = min(float(self._burst), self._tokens + (now - self._filled_at) * self._qps)
            self._filled_at = now
            seconds = max(0.0, (1.0 - self._tokens) / self._qps)
            if seconds > longest:
                return None
            self._tokens -= 1.0
            return seconds
