"""Random lives of two Rollouts on one RouteTable hold every invariant after every single write.

`STATEFUL_EXAMPLES` makes it longer (`make soak`).
"""

import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.stateful.gloo_machine import GlooMachine

# A smaller sister of the Gateway API's: 60 lives of 30 steps.
EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "60"))
STEPS = 30


@pytest.mark.timeout(1800)
def test_every_life_holds_the_invariants() -> None:
    """No sequence of calls, foreign writes, conflicts and crashes breaks an invariant, and every rollout ends clean."""
    run_state_machine_as_test(
        GlooMachine,
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
