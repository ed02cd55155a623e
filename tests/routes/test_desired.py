"""What a call wants, from the Rollout and the configuration."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.config import parse_config
from rollouts_gwapi_plugin.model.rollout import Rollout, WeightDestination, parse_rollout
from rollouts_gwapi_plugin.routes.desired import (
    Former,
    base_desired,
    clamp_weight,
    destinations_of,
    last_steps,
    managed_names,
    managed_steps,
    progressing,
    services,
)


def rollout(status: Any = None, **canary: Any) -> Rollout:
    """Make a Rollout of revision 2 in the middle of an update."""
    return parse_rollout(
        {
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "annotations": {"rollout.argoproj.io/revision": "2"},
            },
            "spec": {"strategy": {"canary": {"stableService": "s", "canaryService": "c", **canary}}},
            "status": {"stableRS": "old", "currentPodHash": "new", **(status or {})},
        }
    )


def _header(name: str, *, match: bool = True) -> Any:
    entries = [{"headerName": "X", "headerValue": {"exact": "1"}}]
    return {"setHeaderRoute": {"name": name, **({"match": entries} if match else {})}}


PING_PONG = {"pingService": "ping", "pongService": "pong"}


@pytest.mark.parametrize(
    ("canary", "stable_is", "expected"),
    [
        ({}, "", ("s", "c")),
        ({"pingPong": PING_PONG}, "", ("pong", "ping")),
        ({"pingPong": PING_PONG}, "pong", ("pong", "ping")),
        ({"pingPong": PING_PONG}, "ping", ("ping", "pong")),
        ({"pingPong": {"pingService": "ping"}}, "", ("s", "c")),
        ({"pingPong": PING_PONG, "stableService": "", "canaryService": ""}, "ping", ("ping", "pong")),
    ],
)
def test_the_services(canary: Any, stable_is: str, expected: tuple[str, str]) -> None:
    """Ping-pong wins where both pairs are given; stable is pong until the status says otherwise (C108)."""
    assert expected == services(rollout({"canary": {"stablePingPong": stable_is}}, **canary))


@pytest.mark.parametrize(
    ("canary", "message"),
    [
        ({"canaryService": ""}, "spec.strategy.canary.canaryService must be set"),
        ({"stableService": ""}, "spec.strategy.canary.stableService must be set"),
        ({"canaryService": "", "stableService": ""}, "canaryService and stableService must be set (or pingPong."),
        ({"canaryService": "s"}, "stable and canary Service are both 's'"),
        ({"pingPong": {"pingService": "p", "pongService": "p"}}, "stable and canary Service are both 'p'"),
    ],
)
def test_services_that_can_not_be_split_are_told(canary: Any, message: str) -> None:
    """The error is about the Rollout, by name (C109)."""
    with pytest.raises(ConfigError) as raised:
        services(rollout(**canary))

    assert message in str(raised.value)
    assert "Rollout shop/web" in str(raised.value)


STEPS = [_header("a"), {"setWeight": 5}, _header("b"), _header("a", match=False), {"setMirrorRoute": {"name": ""}}]


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (None, {"a": True}),
        (1, {"a": True}),
        (2, {"a": True, "b": True}),
        (3, {"a": False, "b": True}),
        (99, {"a": False, "b": True}),
    ],
)
def test_the_last_step_of_each_name_up_to_now_counts(index: int | None, expected: dict[str, bool]) -> None:
    """An absent index is 0, one past the end means all; a name alone means removed (D17)."""
    steps = last_steps(rollout({"currentStepIndex": index}, steps=STEPS))

    assert expected == {name: bool(step.match) for name, step in steps.items()}


def test_names_come_in_the_order_of_managed_routes() -> None:
    """Those that only steps name stand behind; nameless ones are nobody's."""
    routing = {"managedRoutes": [{"name": "z"}, {"name": "a"}, {"name": ""}, {"name": "z"}]}
    value = rollout(steps=STEPS, trafficRouting=routing)

    assert ("z", "a", "b") == managed_names(value)
    assert ["a", "b", "a"] == [step.name for step in managed_steps(value)]


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ({}, True),
        ({"abort": True}, False),
        ({"promoteFull": True}, False),
        ({"stableRS": "new"}, False),
        ({"stableRS": "", "currentPodHash": ""}, False),
    ],
)
def test_when_managed_routes_are_wanted(status: Any, wanted: bool) -> None:  # noqa: FBT001 - a table
    """Not when aborted, promoted, or promoting in full (D17)."""
    assert wanted == progressing(rollout(status))


def test_the_first_revision_wants_none() -> None:
    """The controller sends no step for it."""
    first = rollout().model_copy(update={"metadata": parse_rollout({"metadata": {"name": "web"}}).metadata})

    assert not progressing(first)


@pytest.mark.parametrize("maximum", [-5, 1_000_001])
def test_a_maximum_that_the_api_does_not_take_is_refused_by_name(maximum: int) -> None:
    """0 and absent mean 100, as in the controller (C02)."""
    config = parse_config({"httpRoute": "web"}, "a/b")

    with pytest.raises(ConfigError, match=rf"trafficRouting\.maxTrafficWeight is {maximum}"):
        base_desired(rollout(trafficRouting={"maxTrafficWeight": maximum}), config)
    assert 100 == base_desired(rollout(trafficRouting={"maxTrafficWeight": 0}), config).max_weight


def test_the_configuration_becomes_wishes() -> None:
    """Every switch that a reconciler knows."""
    raw = {
        "httpRoute": "web",
        "headerMatch": "any",
        "managedRoutePosition": "first",
        "ruleName": "main",
        "disableInProgressLabel": True,
        "inProgressLabelKey": "x/y",
        "inProgressLabelValue": "z",
    }
    named = [{"name": "base", "service": {"name": name}} for name in ("mine", "s", "c", "")]
    templates = {"experiment": {"templates": [{"name": "base"}, {"name": "canary", "service": None}, *named]}}
    found = base_desired(rollout(steps=[templates]), parse_config(raw, "a/b"))

    assert (True, True, "main") == (found.match_any, found.managed_first, found.rule_name)
    assert found.label is not None
    assert ("x/y", "z", False) == (found.label.key, found.label.value, found.label.enabled)
    assert {"base", "canary"} == set(found.template_names)
    assert {"mine"} == set(found.template_services)
    assert ("shop/web", "web", "shop") == (found.rollout, found.rollout_name, found.namespace)


@pytest.mark.parametrize(("weight", "used"), [(0, 0), (100, 100), (-1, 0), (101, 100), (2**31 - 1, 100), (-(2**31), 0)])
def test_weights_are_clamped_with_a_warning(weight: int, used: int) -> None:
    """Whatever the host sends."""
    found, notes = clamp_weight(weight, 100, "shop/web")

    assert used == found
    assert (used != weight) == bool(notes)


def _asked(*pairs: tuple[str, int]) -> tuple[WeightDestination, ...]:
    return tuple(WeightDestination(service_name=name, weight=weight) for name, weight in pairs)


@pytest.mark.parametrize(
    ("asked", "expected", "reasons"),
    [
        ((), (), []),
        ((("b", 5), ("k", 10)), (("b", 5), ("k", 10)), []),
        ((("b", 5), ("b", 7)), (("b", 12),), []),
        ((("", 5), ("b", 5)), (("b", 5),), ["ExperimentWithoutService"]),
        ((("c", 5), ("s", 5)), (), ["ExperimentWithoutService"] * 2),
        ((("b", -5),), (("b", 0),), ["WeightClamped"]),
        ((("b", 50), ("k", 40)), (("b", 50), ("k", 40)), ["WeightsOverMaximum"]),
    ],
)
def test_destinations(asked: Any, expected: Any, reasons: list[str]) -> None:
    """Equal names are summed; what has no Service of its own stays with stable (C82, C83)."""
    found, notes = destinations_of(_asked(*asked), "shop/web", 100, 20, ("s", "c"))

    assert expected == tuple((item.name, item.weight) for item in found)
    assert reasons == [note.reason for note in notes]


@pytest.mark.parametrize(
    ("configured", "rule_name", "expected"),
    [("", None, True), ("", "a", True), ("a", "a", True), ("a", "b", False), ("a", None, False)],
)
def test_without_a_rule_name_every_rule_is_selected(configured: str, rule_name: str | None, *, expected: bool) -> None:
    """`ruleName` selects the rule of that name alone, now and as it was configured before."""
    config = parse_config({"httpRoute": "web", "ruleName": configured}, "a/b")
    assert expected == base_desired(rollout(), config).selects(rule_name)
    assert expected == Former(configured, weight=0).selects(rule_name)
