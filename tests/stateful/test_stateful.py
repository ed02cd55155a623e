"""Random lives of two Rollouts hold every invariant after every single write (issue: managed routes)."""

import pytest
from tests.stateful.http_machine import HttpMachine
from tests.stateful.lives import live


@pytest.mark.timeout(1800)
def test_every_life_holds_the_invariants() -> None:
    """No sequence of calls, foreign writes, conflicts and crashes breaks an invariant, and every rollout ends clean."""
    # Ten thousand steps in each run.
    live(HttpMachine, examples=250, steps=40)
