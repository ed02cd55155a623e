"""Waiting for a condition until a deadline: the only way in which these tests wait.

`until` looks again and again, first quickly, then every `PAUSE_LONGEST` seconds; at the deadline it raises
`TimeoutError` with what was waited for and what was seen last.
"""

import time
from collections.abc import Callable
from typing import TypeVar

PAUSE_FIRST = 0.02
PAUSE_LONGEST = 0.25

T = TypeVar("T")


class NotYet(Exception):  # noqa: N818 - not an error: what a look found instead of what is waited for
    """Raised by a look to say what was seen instead."""


def until(look: Callable[[], T], what: str, *, seconds: float, pause: float = PAUSE_LONGEST) -> T:
    """Return the first true result of `look`; a `NotYet` that it raises is a no with a reason."""
    deadline = time.monotonic() + seconds
    interval = PAUSE_FIRST
    seen = ""
    while True:
        try:
            found = look()
        except NotYet as reason:
            seen = f": {reason}"
        else:
            if found:
                return found
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s{seen}")
        time.sleep(interval)
        interval = min(interval * 1.5, pause)
