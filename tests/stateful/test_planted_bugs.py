"""The stateful test finds bugs: three are planted, and each must be found.

They are what the first plugins of this kind got wrong: the route before its record, an index for an identity, and a
weight written into a header rule.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.stateful.machine import Machine

from rollouts_gwapi_plugin.model.routes import BackendRef, Rule
from rollouts_gwapi_plugin.routes import headers, managed
from rollouts_gwapi_plugin.routes.managed import Claim, Owned, Purpose
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.sources import canary_of
from rollouts_gwapi_plugin.service.transaction import Transaction

Plant = Callable[[pytest.MonkeyPatch], None]


def _route_before_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the write-ahead out; the record comes with the sweep, behind the route."""

    def skip(*_arguments: Any, **_options: Any) -> None:
        return None

    monkeypatch.setattr(Transaction, "_record_ahead", skip)


def _index_for_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a recorded rule to be where it was made: the last rules of the list."""

    def by_index(claim: Claim, _purpose: Purpose, mark: Any, owners: list[Owned | None], _sign: Any) -> int | None:
        names = [record for records in claim.view.record.headers.values() for record in records.rules]
        index = len(claim.route.rules) - len(names) + names.index(mark) if mark in names else -1
        return index if 0 <= index < len(owners) and owners[index] is None else None

    monkeypatch.setattr(managed, "_find", by_index)


def _weight_in_the_header_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the canary's weight of the source into the header rule, 0 included."""

    def with_weight(rule: Rule, pair: Pair) -> BackendRef:
        first = next(ref for ref in rule.backends if pair.is_canary(ref))
        return canary_of(rule, pair).replace(weight=first.effective_weight)

    monkeypatch.setattr(headers, "canary_of", with_weight)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("plant", "invariant"),
    [(_route_before_record, "M4"), (_index_for_identity, "U1|M4|A1|W3"), (_weight_in_the_header_rule, "W2|W3")],
    ids=["route-before-record", "index-for-identity", "weight-in-header-rule"],
)
def test_a_planted_bug_is_found(plant: Plant, invariant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bug planted, some life breaks the invariant that stands against it."""
    plant(monkeypatch)

    with pytest.raises(AssertionError, match=invariant):
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=100,
                stateful_step_count=40,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            ),
        )
