"""Two Rollouts whose pairs stand in one rule: they come to rest, leave nothing, and copies follow (W3, W4, C2, D12)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import pytest
from tests.routes.wanted import WEB
from tests.service.world import header_step, route, rule

from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.desired import Desired, Destination, ManagedStep, ServicePort
from rollouts_gwapi_plugin.routes.kinds import HTTP
from rollouts_gwapi_plugin.routes.ledger import Ledger
from rollouts_gwapi_plugin.routes.reconcile import Scope, remove_managed_routes, set_weight, wrong_weights
from rollouts_gwapi_plugin.routes.standing import take_apart

SCOPE = Scope(HTTP, takes_headers=True)
PINNED = [{"headers": [{"name": "X-Test", "value": "1"}]}]
Steps = Mapping[str, ManagedStep]


def header(name: str) -> Steps:
    """Make a header step of X-Test."""
    return {name: SetHeaderRoute.model_validate(header_step(name))}


def mirror(name: str) -> Steps:
    """Make a mirror step of /api."""
    match = [{"path": {"prefix": "/api"}}]
    return {name: SetMirrorRoute.model_validate({"name": name, "match": match, "percentage": 50})}


def rollout(name: str, steps: Steps, **fields: Any) -> Desired:
    """Return what a Rollout with the Services s<name> and c<name> wants at 20."""
    return replace(
        WEB,
        **{
            "rollout": f"shop/{name}",
            "rollout_name": name,
            "stable": f"s{name}",
            "canary": f"c{name}",
            "steps": steps,
            "all_steps": tuple(steps.values()),
            "managed_names": tuple(steps),
            "heal": True,
            "weight": 20,
            **fields,
        },
    )


@dataclass
class World:
    """A route and its ledger; `prunes` is whether the CRD drops rule names."""

    now: Route
    prunes: bool = False
    ledger: Ledger = field(default_factory=lambda: Ledger("http"))

    def weight(self, desired: Desired) -> bool:
        """SetWeight; return whether it changed anything."""
        view = self.ledger.view(desired.rollout, "web")
        outcome = set_weight(self.now, desired, view, SCOPE)
        return self._take(desired, outcome.route, outcome.record)

    def finish(self, desired: Desired) -> None:
        """RemoveManagedRoutes and weight 0, as at the end."""
        view = self.ledger.view(desired.rollout, "web")
        outcome = remove_managed_routes(self.now, desired, view, SCOPE)
        self._take(desired, outcome.route, outcome.record)
        self.weight(replace(desired, heal=False, weight=0))

    def wrong(self, desired: Desired) -> str:
        """VerifyWeight."""
        return wrong_weights(self.now, desired, self.ledger.view(desired.rollout, "web"), SCOPE)

    def _take(self, desired: Desired, after: Route, record: Any) -> bool:
        before = self.now, self.ledger
        if after is not self.now:
            stored = [item.without("name") for item in after.rules] if self.prunes else list(after.rules)
            self.now = after.with_rules(stored)
        self.ledger = self.ledger.with_record(desired.rollout, "u", "web", record)
        return before != (self.now, self.ledger)

    @property
    def lines(self) -> list[str]:
        """The rules as lines."""
        return [
            " ".join([f"{item.name or ''}:", *(f"{ref.name}={ref.effective_weight}" for ref in item.backends)])
            for item in self.now.rules
        ]


STEPS = [
    (mirror("m"), mirror("n")),
    (mirror("m"), mirror("m")),
    (header("h"), header("k")),
    (header("m"), header("m")),
    ({**header("h"), **mirror("m")}, {**mirror("m"), **header("k")}),
    ({**header("m"), **mirror("n")}, mirror("m")),
]


@pytest.mark.parametrize("prunes", [False, True])
@pytest.mark.parametrize("order", list(permutations([0, 1])))
@pytest.mark.parametrize("first", [(False, False), (True, True), (False, True)])
@pytest.mark.parametrize("number", range(len(STEPS)))
def test_they_come_to_rest(number: int, first: tuple[bool, bool], order: tuple[int, int], *, prunes: bool) -> None:
    """After each has seen the other's rules no call of either writes, in whichever order; at the end all is gone."""
    pair = "sa100 ca0 sb100 cb0"
    world = World(parse_route(route(rule(pair, matches=PINNED), rule("x"), rule(pair))), prunes)
    start = world.now
    both = [
        rollout(name, steps, managed_first=place) for name, steps, place in zip("ab", STEPS[number], first, strict=True)
    ]
    ordered = [both[index] for index in order]
    for desired in ordered * 2:
        world.weight(desired)
    rest = world.lines
    changes = [world.weight(desired) for desired in [*ordered, *reversed(ordered), *ordered]]
    for desired in ordered:
        world.finish(desired)

    assert not any(changes), (rest, world.lines)
    assert start == world.now
    assert world.ledger == Ledger("http")


def test_nothing_is_made_from_the_others_managed_rules() -> None:
    """Each has one mirror rule for the one rule of both."""
    world = World(parse_route(route(rule("sa100 ca0 sb100 cb0"))))
    for _ in range(3):
        for name in ("a", "b"):
            world.weight(rollout(name, mirror(f"m{name}")))

    line = "sa=80 ca=20 sb=80 cb=20"
    assert sorted(world.lines) == sorted([f"ma: {line}", f"mb: {line}", f": {line}"])


@pytest.mark.parametrize(("rule_name", "prunes"), [("", False), ("", True), ("main", False)])
def test_the_others_mirror_follows_at_once(rule_name: str, *, prunes: bool) -> None:
    """An aborted canary gets no mirrored request any more, though its `ruleName` chooses another rule (W3)."""
    world = World(parse_route(route(rule("sa100 ca0 sb100 cb0", name="main"))), prunes)
    first, second = rollout("a", mirror("m")), rollout("b", {}, rule_name=rule_name)
    for desired in (first, second, first):
        world.weight(desired)
    stale = world.now.rules[0]
    gone = replace(second, heal=False, weight=0)
    world.weight(gone)
    after = world.lines
    again = world.weight(first)
    world.now = world.now.with_rules([stale, *world.now.rules[1:]])

    assert [text.partition(": ")[2] for text in after] == ["sa=80 ca=20 sb=100 cb=0"] * 2
    assert not again
    assert "rule 0 has" in world.wrong(gone)


@pytest.mark.parametrize("prunes", [False, True])
def test_an_experiment_of_the_other(*, prunes: bool) -> None:
    """It joins the mirror rule, and leaves it, by the call of the rule's own Rollout; shares are right at once."""
    world = World(parse_route(route(rule("sa100 ca0 sb100 cb0"))), prunes)
    destination = Destination("e", 10, (ServicePort("", 80),))
    first, second = rollout("a", mirror("m")), rollout("b", {})
    running = replace(second, destinations=(destination,))
    texts = []
    for desired in (first, second, first, running, first, second, first):
        world.weight(desired)
        texts.append(world.lines[0].partition(": ")[2])
    rest = [world.weight(desired) for desired in (second, first)]
    world.finish(first)
    world.finish(second)

    assert texts[3:] == [
        "sa=80 ca=20 sb=80 cb=20",
        "sa=80 ca=20 sb=70 cb=20 e=10",
        "sa=80 ca=20 sb=80 cb=20 e=0",
        "sa=80 ca=20 sb=80 cb=20",
    ]
    assert rest == [False, False]
    assert world.lines == [": sa=100 ca=0 sb=100 cb=0"]
    assert world.ledger == Ledger("http")


@pytest.mark.parametrize("prunes", [False, True])
def test_both_have_a_mirror_and_one_an_experiment(*, prunes: bool) -> None:
    """Each knows the other's mirror rule all the same, while the experiment runs and when it is over."""
    world = World(parse_route(route(rule("sa100 ca0 sb100 cb0"))), prunes)
    destination = Destination("e", 10, (ServicePort("", 80),))
    first, second = rollout("a", mirror("m")), rollout("b", mirror("n"))
    running = replace(first, destinations=(destination,))
    for desired in (first, second, running, second, running, second):
        world.weight(desired)
    during = [text.partition(": ")[2] for text in world.lines]
    standing = take_apart(world.now, second, world.ledger.view(second.rollout, "web"), HTTP)
    known = [standing.owners[0] is not None or 0 in standing.foreign, len(standing.foreign)]
    changes = [world.weight(desired) for desired in (running, second)]
    for desired in (first, second, first, second):
        world.weight(desired)
    changes += [world.weight(desired) for desired in (second, first)]
    after = [text.partition(": ")[2] for text in world.lines]

    assert known == [True, 1]
    assert during == ["sa=70 ca=20 sb=80 cb=20 e=10"] * 3
    assert after == ["sa=80 ca=20 sb=80 cb=20"] * 3
    assert not any(changes)
