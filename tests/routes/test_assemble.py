"""Where managed rules stand, and that two Rollouts on one route never move each other (decision D14)."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from tests.routes.wanted import WEB
from tests.service.world import header_step, route, rule

from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.assemble import in_order
from rollouts_gwapi_plugin.routes.kinds import HTTP
from rollouts_gwapi_plugin.routes.ledger import Ledger
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose
from rollouts_gwapi_plugin.routes.reconcile import Scope, set_managed_route, set_weight
from rollouts_gwapi_plugin.routes.sources import Made

SCOPE = Scope(HTTP, takes_headers=True)
SECOND = replace(WEB, rollout="shop/side", rollout_name="side", stable="t", canary="d")


def pruned(value: Route) -> Route:
    """Return the route without rule names."""
    return value.with_rules([item.without("name") for item in value.rules])


@pytest.mark.parametrize("names", ["kept", "pruned"])
@pytest.mark.parametrize("positions", [(False, False), (True, True), (False, True)])
@pytest.mark.parametrize("order", list(permutations([0, 1])))
def test_two_rollouts_settle(names: str, positions: tuple[bool, bool], order: tuple[int, int]) -> None:
    """Both have a managed route of one name; after each has set its own, no call of either changes anything (K1)."""
    rollouts = [replace(WEB, managed_first=positions[0]), replace(SECOND, managed_first=positions[1])]
    store = (lambda value: value) if names == "kept" else pruned
    now = parse_route(route(rule("s100 c0"), rule("x"), rule("t100 d0", matches=[{"method": "GET"}])))
    ledger = Ledger("http")
    step = SetHeaderRoute.model_validate(header_step("canary"))
    for index in order:
        desired = rollouts[index]
        outcome = set_managed_route(now, step, desired, ledger.view(desired.rollout, "web"), SCOPE)
        now, ledger = store(outcome.route), ledger.with_record(desired.rollout, "u", "web", outcome.record)
    managed = [item for item in now.rules if len(item.backends) == 1 and item.backends[0].name in {"c", "d"}]
    # A rule that stands beside the other Rollout's may find its place once, when both are there.
    for desired in rollouts:
        outcome = set_weight(now, desired, ledger.view(desired.rollout, "web"), SCOPE)
        now, ledger = store(outcome.route), ledger.with_record(desired.rollout, "u", "web", outcome.record)

    assert 2 == len(managed)
    for desired in [*rollouts, *rollouts]:
        outcome = set_weight(now, desired, ledger.view(desired.rollout, "web"), SCOPE)
        assert outcome.route is now
        assert ledger == ledger.with_record(desired.rollout, "u", "web", outcome.record)


def _names(value: Route) -> list[str]:
    return [item.name or item.backends[0].name for item in value.rules]


@pytest.mark.parametrize(("first", "expected"), [(False, ["s", "x", "a", "b"]), (True, ["a", "b", "s", "x"])])
def test_the_block_follows_position_and_order_of_the_configuration(
    first: bool,  # noqa: FBT001 - a table
    expected: list[str],
) -> None:
    """Changed in the middle of a rollout, the next call moves the rules."""
    other = [*reversed(expected)] if first else expected
    now = parse_route(route(rule("s100 c0"), rule("x")))
    ledger = Ledger("http")
    start = replace(WEB, managed_names=("b", "a"), managed_first=not first)
    for name in ("a", "b"):
        step = SetHeaderRoute.model_validate(header_step(name, f"X-{name}"))
        outcome = set_managed_route(now, step, start, ledger.view(WEB.rollout, "web"), SCOPE)
        now, ledger = outcome.route, ledger.with_record(WEB.rollout, "u", "web", outcome.record)
    before = _names(now)
    changed = replace(WEB, managed_names=("a", "b"), managed_first=first)
    after = set_weight(now, changed, ledger.view(WEB.rollout, "web"), SCOPE)

    assert sorted(before) == sorted(other)
    assert before.index("b") < before.index("a")
    assert expected == _names(after.route)


def test_names_that_are_not_listed_stand_behind() -> None:
    """In their own order; the managed routes' order is the list's."""
    made = Made(parse_route(route({})).rules[0], 0)
    owned = [Owned(Purpose.HEADER, name) for name in ("x", "b", "y", "a")]
    result: list[Any] = in_order([(item, made) for item in owned], ["a", "b"])

    assert ["a", "b", "x", "y"] == [item.name for item, _ in result]
