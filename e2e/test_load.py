"""The generator's process: traffic that was not made is noticed, however it ended."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.load.cohort import Cohort
from e2e.load.traffic import GeneratorFailed, Load
from e2e.waiting import until

pytestmark = pytest.mark.e2e_short

SECONDS = 60.0


@pytest.fixture
def refused() -> Iterator[Cohort]:
    """Give a cohort at a port that nobody listens at."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield Cohort(name="plain", port=bound.getsockname()[1])


def _some(load: Load) -> bool:
    load.traffic.refresh()
    return bool(load.traffic.records)


def _kill_once_at_work(load: Load) -> None:
    until(lambda: _some(load), "records", seconds=SECONDS)
    load.process.kill()
    load.process.wait()


def test_lost_requests_are_no_failure_of_the_generator(refused: Cohort, tmp_path: Path) -> None:
    """A request that nobody answers is a record with the reason; the generator goes on and ends in order."""
    load = Load([refused], tmp_path)

    with load as traffic:
        until(lambda: _some(load), "records", seconds=SECONDS)

    assert traffic.records == traffic.losses()
    assert all("refused" in record.error for record in traffic.records)
    assert load.process.returncode == 0


def test_a_generator_that_died_is_noticed(refused: Cohort, tmp_path: Path) -> None:
    """A generator that was killed fails the run, though each of its records is in order."""
    load = Load([refused], tmp_path)

    with pytest.raises(GeneratorFailed, match="ended by itself with code -9"), load:
        _kill_once_at_work(load)


def test_a_client_that_breaks_is_noticed(refused: Cohort, tmp_path: Path) -> None:
    """What a client raises beside a loss fails the run; the other cohorts' traffic goes on until then."""
    broken = Cohort(name="broken", port=refused.port, headers={"X-Two-Lines": "one\ntwo"})
    load = Load([broken, refused], tmp_path)

    with pytest.raises(GeneratorFailed, match="ended with code 1"), load:
        until(lambda: _some(load), "records", seconds=SECONDS)

    assert {record.cohort for record in load.traffic.records} == {"plain"}
