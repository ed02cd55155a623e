"""The stateful tests find bugs: some are planted in each, and each must be found.

They are what plugins of these kinds got wrong. For HTTPRoutes: the route before its record, an index for an identity,
and a weight written into a header rule. For RouteTables: the step's matcher beside the route's own, a weight of 0
beside a full 100, a MirrorPolicy before its record, and a managed route taken for a source.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.stateful.gloo_machine import GlooMachine
from tests.stateful.http_machine import HttpMachine
from tests.stateful.rollout_machine import RolloutMachine

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import BackendRef, Rule
from rollouts_gwapi_plugin.routes import headers, managed
from rollouts_gwapi_plugin.routes.gloo import managed as gloo_managed
from rollouts_gwapi_plugin.routes.gloo import marks, weights
from rollouts_gwapi_plugin.routes.managed import Claim, Owned, Purpose
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.sources import canary_of
from rollouts_gwapi_plugin.service.transaction import Transaction

Plant = Callable[[pytest.MonkeyPatch], None]


def _no_record_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the write-ahead out; the record comes with the sweep, behind the route and its policies."""

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


def _matcher_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the source's matcher as it is: it is one of several alternatives then."""

    def beside(matcher: JsonObject, _headers: Any) -> JsonObject:
        return matcher

    monkeypatch.setattr(gloo_managed, "with_headers", beside)


def _zero_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what the user wrote in the route with a weight of 0."""
    monkeypatch.setattr(weights.Scale, "keeps_zero", True)


def _managed_routes_are_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recognise no managed route again: each call makes another one."""
    monkeypatch.setattr(marks.Claim, "owner", lambda _claim, _item: None)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("machine", "plant", "invariant"),
    [
        pytest.param(HttpMachine, _no_record_ahead, "M4", id="route-before-record"),
        pytest.param(HttpMachine, _index_for_identity, "U1|M4|A1|W3", id="index-for-identity"),
        pytest.param(HttpMachine, _weight_in_the_header_rule, "W2|W3", id="weight-in-header-rule"),
        pytest.param(GlooMachine, _matcher_beside_the_others, "M3", id="matcher-beside"),
        pytest.param(GlooMachine, _zero_weights, "the sum is not 100", id="zero-weights"),
        pytest.param(GlooMachine, _no_record_ahead, "M4", id="policy-before-record"),
        pytest.param(GlooMachine, _managed_routes_are_the_users, "M4|A1|W", id="ours-for-the-users"),
    ],
)
def test_a_planted_bug_is_found(
    machine: type[RolloutMachine], plant: Plant, invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bug planted, some life breaks the invariant that stands against it."""
    plant(monkeypatch)

    with pytest.raises(AssertionError, match=invariant):
        run_state_machine_as_test(
            machine,
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
