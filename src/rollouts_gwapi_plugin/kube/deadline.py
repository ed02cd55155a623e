"""How long a call may take, as one value that is handed down, and the clock that everything in `kube` uses.

A `Deadline` is a moment, not a duration: passing it on never grants more time. Whoever waits or sends asks it for what
remains; nothing is sent once it is over.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rollouts_gwapi_plugin.errors import Unavailable


def _random() -> float:
    return random.random()  # noqa: S311 - spreads retries; nothing secret depends on it


@dataclass(frozen=True)
class Timing:
    """The clock, the sleep and the jitter, so that a test can replace all three."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = _random

    def spread(self, seconds: float) -> float:
        """Return between half of `seconds` and all of it, so that many callers do not come back at once."""
        return seconds * (0.5 + 0.5 * self.jitter())


REAL_TIME = Timing()


@dataclass(frozen=True)
class Deadline:
    """The moment at which a call must be over."""

    at: float
    limit: float
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    @classmethod
    def after(cls, seconds: float, *, timing: Timing = REAL_TIME) -> "Deadline":
        """Return the deadline that is `seconds` from now."""
        return cls(timing.clock() + seconds, seconds, timing.clock)

    def within(self, seconds: float) -> "Deadline":
        """Return the deadline `seconds` from now, or this one where it is earlier."""
        at = self.clock() + seconds
        return self if at >= self.at else Deadline(at, seconds, self.clock)

    def remaining(self) -> float:
        """Return the seconds left, never less than 0."""
        return max(0.0, self.at - self.clock())

    @property
    def expired(self) -> bool:
        """Whether nothing is left."""
        return self.clock() >= self.at

    def check(self, tried: str, found: str = "") -> None:
        """Do nothing while there is time.

        Args:
            tried: What is about to be done, for the message.
            found: What the last try met, for the message.

        Raises:
            Unavailable: There is no time left.
        """
        if self.expired:
            last = f"; the last try: {found}" if found else ""
            raise Unavailable(f"{tried}: no time left of the {self.limit:g} s that this call has{last}")
