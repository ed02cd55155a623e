"""The request limit: burst, rate, order, deadline."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import Unavailable
from rollouts_gwapi_plugin.kube.deadline import Deadline, Timing
from rollouts_gwapi_plugin.kube.limiter import Limiter


def test_burst_passes_at_once_then_the_rate_holds(fake_time: Any) -> None:
    """A burst waits for nothing; after it each request waits for one period."""
    limiter = Limiter(10, 3, timing=fake_time.timing)
    waits = [limiter.wait("get", fake_time.deadline(60)) for _ in range(5)]

    assert [0, 0, 0, pytest.approx(0.1), pytest.approx(0.1)] == waits


def test_bucket_fills_to_the_burst_only(fake_time: Any) -> None:
    """After a long rest no more than the burst passes at once."""
    limiter = Limiter(10, 2, timing=fake_time.timing)
    fake_time.sleep(3600)
    waits = [limiter.wait("get", fake_time.deadline(60)) for _ in range(3)]

    assert [0, 0, pytest.approx(0.1)] == waits


def test_no_turn_before_the_deadline_fails_at_once(fake_time: Any) -> None:
    """A request whose turn is too late is refused without sleeping, names the flags, and takes nobody's turn."""
    limiter = Limiter(0.1, 1, timing=fake_time.timing)
    limiter.wait("get", fake_time.deadline(60))
    with pytest.raises(Unavailable, match=r"list HTTPRoute.*kubeClientQPS=0.1, kubeClientBurst=1.*2\.0 s"):
        limiter.wait("list HTTPRoute", fake_time.deadline(2))
    slept = list(fake_time.sleeps)

    assert not slept
    assert limiter.wait("get", fake_time.deadline(60)) == pytest.approx(10.0)


def test_negative_rate_means_no_limit(fake_time: Any) -> None:
    """With a negative rate nothing waits."""
    limiter = Limiter(-1, 0, timing=fake_time.timing)

    assert {0.0} == {limiter.wait("get", fake_time.deadline(1)) for _ in range(1000)}


def test_waits_are_first_come_first_served() -> None:
    """Threads that come one after the other get turns in that order, each one period later."""
    turns: list[float] = []
    lock = threading.Lock()
    asleep = threading.Semaphore(0)
    wake = threading.Event()

    def sleep(seconds: float) -> None:
        with lock:
            turns.append(seconds)
        asleep.release()
        wake.wait(10)

    limiter = Limiter(2, 1, timing=Timing(clock=lambda: 0.0, sleep=sleep))
    deadline = Deadline.after(60, timing=Timing(clock=lambda: 0.0))
    limiter.wait("first", deadline)
    threads = [threading.Thread(target=limiter.wait, args=("next", deadline)) for _ in range(5)]
    for thread in threads:
        thread.start()
        assert asleep.acquire(timeout=10)
    wake.set()
    for thread in threads:
        thread.join(10)

    assert turns == [0.5, 1.0, 1.5, 2.0, 2.5]


@given(qps=st.floats(0.5, 100), burst=st.integers(1, 20), gaps=st.lists(st.floats(0, 2), min_size=1, max_size=60))
def test_never_more_than_burst_plus_rate(qps: float, burst: int, gaps: list[float]) -> None:
    """In any stretch of time no more requests pass than the burst and what the rate adds."""
    now = 0.0
    passed: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    timing = Timing(clock=lambda: now, sleep=sleep)
    limiter = Limiter(qps, burst, timing=timing)
    for gap in gaps:
        now += gap
        limiter.wait("get", Deadline.after(1e6, timing=timing))
        passed.append(now)

    for first, start in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + (passed[last] - start) * qps + 1e-6
