"""Log lines: what the host understands, and what happens when the host is gone."""

import os
from collections.abc import Iterator

import pytest
import structlog

from rollouts_gwapi_plugin import log


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Leave structlog as it was."""
    yield
    structlog.reset_defaults()


def test_reader_is_gone() -> None:
    """Logging to a pipe that nobody reads any more raises nothing."""
    reader, writer = os.pipe()
    stream = os.fdopen(writer, "w")
    log.configure(stream=stream)
    os.close(reader)
    for _ in range(3):
        log.get_logger().info("nobody hears this")

    with pytest.raises(BrokenPipeError):
        stream.close()
