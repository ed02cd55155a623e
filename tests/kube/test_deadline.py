"""A deadline is a moment: it only ever shrinks, and it names what it stopped."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import Unavailable
from rollouts_gwapi_plugin.kube.deadline import Timing


def test_remaining_time_shrinks_to_zero(fake_time: Any) -> None:
    """What remains is counted on the clock and never negative."""
    deadline = fake_time.deadline(5)
    fake_time.sleep(2)
    after_two = deadline.remaining()
    fake_time.sleep(10)

    assert (after_two, deadline.remaining(), deadline.expired) == (3.0, 0.0, True)


def test_within_never_grants_more(fake_time: Any) -> None:
    """A shorter limit inside a deadline is taken, a longer one is not."""
    deadline = fake_time.deadline(5)

    assert (deadline.within(2).remaining(), deadline.within(60).remaining()) == (2.0, 5.0)


def test_check_says_what_was_tried_and_met(fake_time: Any) -> None:
    """Past the deadline `check` raises a text with the request, the limit and what the last try met."""
    deadline = fake_time.deadline(5)
    deadline.check("get HTTPRoute shop/web")
    fake_time.sleep(5)

    with pytest.raises(Unavailable, match=r"get HTTPRoute shop/web: no time left of the 5 s .*; the last try: 503"):
        deadline.check("get HTTPRoute shop/web", "503")


@pytest.mark.parametrize(("jitter", "expected"), [(0.0, 2.0), (0.5, 3.0), (1.0, 4.0)])
def test_jitter_spreads_over_the_upper_half(jitter: float, expected: float) -> None:
    """A wait is between half of what was asked and all of it."""
    assert expected == Timing(jitter=lambda: jitter).spread(4.0)
