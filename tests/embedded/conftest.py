"""What tests of the embedded cluster share."""

import threading
import time
from collections.abc import Callable

import pytest

Until = Callable[[Callable[[], object]], None]
_PAUSE = threading.Event()


@pytest.fixture
def until() -> Until:
    """Return a function that waits, with a deadline, until a condition holds."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true in 20 s"
            _PAUSE.wait(0.005)

    return wait
