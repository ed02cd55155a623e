"""The stateful test of RouteTables finds bugs: four are planted, and each must be found.

They are what a plugin for RouteTables can get wrong, and the proof of concept did: the step's matcher beside the
route's own, a weight of 0 beside a full 100, a MirrorPolicy before its record, and a managed route taken for a source.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.stateful.gloo_machine import GlooMachine

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.routes.gloo import managed, weights
from rollouts_gwapi_plugin.routes.gloo.marks import Claim
from rollouts_gwapi_plugin.service.transaction import Transaction

Plant = Callable[[pytest.MonkeyPatch], None]


def _matcher_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the source's matcher as it is: it is one of several alternatives then."""

    def beside(matcher: JsonObject, _headers: Any) -> JsonObject:
        return matcher

    monkeypatch.setattr(managed, "with_headers", beside)


def _zero_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what the user wrote in the route with a weight of 0."""
    monkeypatch.setattr(weights.Scale, "keeps_zero", True)


def _companions_before_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the write-ahead out; the record comes with the sweep, behind policy and route."""

    def skip(*_arguments: Any, **_options: Any) -> None:
        return None

    monkeypatch.setattr(Transaction, "_record_ahead", skip)


def _managed_routes_are_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recognise no managed route again: each call makes another one."""
    monkeypatch.setattr(Claim, "owner", lambda _claim, _item: None)


@pytest.mark.parametrize(
    ("plant", "invariant"),
    [
        (_matcher_beside_the_others, "M3"),
        (_zero_weights, "the sum is not 100"),
        (_companions_before_the_record, "M4"),
        (_managed_routes_are_the_users, "M4|A1|W"),
    ],
    ids=["matcher-beside", "zero-weights", "policy-before-record", "ours-for-the-users"],
)
def test_a_planted_bug_is_found(plant: Plant, invariant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bug planted, some life breaks the invariant that stands against it."""
    plant(monkeypatch)

    with pytest.raises(AssertionError, match=invariant):
        run_state_machine_as_test(
            GlooMachine,
            settings=settings(
                max_examples=60,
                stateful_step_count=30,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            ),
        )
