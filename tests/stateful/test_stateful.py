"""Random lives of two Rollouts hold every invariant after every single write (issue: managed routes).

`STATEFUL_EXAMPLES` makes it longer (`make soak`).
"""

import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.stateful.machine import Machine

# 250 lives of 40 steps: ten thousand steps in each run.
EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "250"))
STEPS = 40


@pytest.mark.timeout(1800)
def test_every_life_holds_the_invariants() -> None:
    """No sequence of calls, foreign writes, conflicts and crashes breaks an invariant, and every rollout ends clean."""
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=timedelta(seconds=60),
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            # Each life costs a second: a failing one is told as it was found, not made small for minutes.
            phases=[phase for phase in Phase if phase not in {Phase.shrink, Phase.explain}],
        ),
    )
