"""Random lives of a machine, each of which must hold the invariants; `STATEFUL_EXAMPLES` gives more (`make soak`)."""

import os
from datetime import timedelta

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.stateful.rollout_machine import RolloutMachine


def live(machine: type[RolloutMachine], *, examples: int, steps: int) -> None:
    """Raise AssertionError where a life of so many steps breaks an invariant."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=int(os.environ.get("STATEFUL_EXAMPLES", examples)),
            stateful_step_count=steps,
            deadline=timedelta(seconds=60),
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            # Each life costs a second: a failing one is told as it was found, not made small for minutes.
            phases=[phase for phase in Phase if phase not in {Phase.shrink, Phase.explain}],
        ),
    )
