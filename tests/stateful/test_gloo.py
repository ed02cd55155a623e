"""Random lives of two Rollouts on one RouteTable hold every invariant after every single write."""

import pytest
from tests.stateful.gloo_machine import GlooMachine
from tests.stateful.lives import live


@pytest.mark.timeout(1800)
def test_every_life_holds_the_invariants() -> None:
    """The same as of HTTPRoutes, with MirrorPolicies and what stands in an annotation; fewer, since each is longer."""
    live(GlooMachine, examples=60, steps=30)
