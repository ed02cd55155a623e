"""The clock of VerifyWeight: how long it waits and when it gives up, told without sleeping (decision D19)."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.service.world import PLUGIN_KEY, Shop, route, rule

from rollouts_gwapi_plugin.errors import KubeError, PluginError, Unavailable
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.calls import Verification
from rollouts_gwapi_plugin.model.config import parse_config
from rollouts_gwapi_plugin.model.kube import ResourceType
from rollouts_gwapi_plugin.routes.kinds import HTTP
from rollouts_gwapi_plugin.service.memory import Memory, Written
from rollouts_gwapi_plugin.service.targets import Target
from rollouts_gwapi_plugin.service.verify import GAVE_UP, LONGEST_PAUSE, REASON, Verifier


@dataclass
class World:
    """Routes with a generation and what their gateway has seen of it, and a clock that only sleeping moves."""

    now: float = 1000.0
    generation: int = 2
    # name of a route -> when its gateway catches up.
    catches_up: dict[str, float] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    config: dict[str, Any] = field(default_factory=dict)
    reads: int = 0
    remaining: float = 30.0

    def target(self, name: str) -> Target:
        """Return the route as it is now."""
        self.reads += 1
        raw = route(rule("s80 c20"), name=name)
        observed = self.generation if self.now >= self.catches_up[name] else self.generation - 1
        conditions = [{"type": "Accepted", "status": "True", "observedGeneration": observed}]
        raw["metadata"] |= {"generation": self.generation, "uid": f"uid-{name}"}
        raw["status"] = {"parents": [{"parentRef": {"name": "gw"}, "conditions": conditions}]}
        return Target(HTTP, "shop", name, takes_headers=True, raw=raw)

    def wrote(self) -> None:
        """Note that this process has written all routes just now."""
        for name in self.catches_up:
            self.memory.unseen.set(f"uid-{name}", Written(self.generation, self.now))
            self.memory.first_seen.set((f"uid-{name}", self.generation), self.now)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def reasons(self, *, may_wait: bool = True) -> list[str | None]:
        """Verify all routes; return the reasons of the notes."""
        verifier = Verifier(
            memory=self.memory,
            config=parse_config({"httpRoute": "a", **self.config}, PLUGIN_KEY),
            names=frozenset({"s", "c"}),
            deadline=Deadline(self.now + self.remaining, self.remaining, lambda: self.now),
            read=lambda target: self.target(target.name),
            wrong=lambda _route, _target: "",
            may_wait=may_wait,
            clock=lambda: self.now,
            sleep=self.sleep,
        )
        found = verifier.problems([self.target(name) for name in self.catches_up])
        return [note.reason if note else None for _, note in found]


def test_a_gateway_that_catches_up_in_time_costs_just_that_time() -> None:
    """The first looks are close together."""
    world = World(catches_up={"a": 1000.02})
    world.wrote()

    assert [None] == world.reasons()
    assert world.now < 1000.1
    assert world.memory.unseen.get("uid-a") is None


def test_several_routes_wait_together() -> None:
    """A call with five routes waits no longer than one with one (verifyWait is of the call)."""
    world = World(catches_up={name: 1000.0 + index for index, name in enumerate("abcde")})
    world.wrote()

    assert [None, None, REASON, REASON, REASON] == world.reasons()
    assert world.now <= 1002.0


def test_a_route_that_caught_up_while_another_was_waited_for_is_seen() -> None:
    """What was read at the start of the call is not what counts at its end."""
    world = World(catches_up={"a": 1001.5, "b": 1001.6})
    world.wrote()

    assert [None, None] == world.reasons()


def test_waiting_is_cheap_and_bounded() -> None:
    """Pauses grow up to a limit: some dozen reads in two seconds, none after verifyWait."""
    world = World(catches_up={"a": 9999.0})
    world.wrote()

    assert [REASON] == world.reasons()
    assert 2.0 - LONGEST_PAUSE <= world.now - 1000.0 <= 2.0
    assert world.reads < 20


def test_the_calls_deadline_is_not_passed() -> None:
    """However long verifyWait is."""
    world = World(catches_up={"a": 9999.0}, config={"verifyWait": "1h", "verifyTimeout": "2h"}, remaining=3.0)
    world.wrote()

    assert [REASON] == world.reasons()
    assert world.now <= 1003.0


@pytest.mark.parametrize("case", ["not ours", "promoted", "seen before"])
def test_what_is_not_waited_for(case: str) -> None:
    """A write of another process, the rest of a promoted rollout, a write that was seen true already."""
    world = World(catches_up={"a": 1000.0 if case == "seen before" else 9999.0})
    if case != "not ours":
        world.wrote()
    if case == "seen before":
        assert [None] == world.reasons()
        world.catches_up["a"] = 9999.0
    before = world.now

    assert [REASON] == world.reasons(may_wait=case != "promoted")
    assert before == world.now


def test_after_the_timeout_since_the_write_it_counts_as_verified() -> None:
    """With a warning; not a moment before (verifyTimeout, by this process's clock)."""
    world = World(catches_up={"a": 9999.0}, config={"verifyWait": 0})
    world.wrote()
    found = []
    for later in (0.0, 29.9, 0.2):
        world.sleep(later)
        found += world.reasons()

    assert [REASON, REASON, GAVE_UP] == found


def test_after_a_restart_the_time_counts_from_the_first_look() -> None:
    """A new process does not know when the write was; a newer generation begins anew."""
    world = World(catches_up={"a": 9999.0}, config={"verifyWait": 0})
    found = world.reasons()
    world.sleep(31)
    found += world.reasons()
    world.memory = Memory()
    found += world.reasons()
    world.sleep(31)
    found += world.reasons()
    world.generation += 1
    found += world.reasons()

    assert [REASON, GAVE_UP, REASON, GAVE_UP, REASON] == found


def test_a_route_that_can_not_be_read_while_waiting() -> None:
    """The API server goes away in between: not verified, and no more waiting."""
    world = World(catches_up={"a": 9999.0})
    world.wrote()
    first = world.target("a")
    gone = replace(first, raw=None, error=Unavailable("HTTPRoute shop/a: no answer"))
    verifier = Verifier(
        memory=world.memory,
        config=parse_config({"httpRoute": "a"}, PLUGIN_KEY),
        names=frozenset({"s", "c"}),
        deadline=Deadline(1030, 30, lambda: world.now),
        read=lambda _target: gone,
        wrong=lambda _route, _target: "",
        may_wait=True,
        clock=lambda: world.now,
        sleep=world.sleep,
    )

    assert ["HTTPRoute shop/a: no answer"] == [note.text for _, note in verifier.problems([first]) if note]


ODD: list[Callable[[Any], Any]] = [
    lambda value: value.pop("spec"),
    lambda value: value["spec"].update(rules=None),
    lambda value: value["spec"].update(rules=[]),
    lambda value: value["spec"].update(rules={}),
    lambda value: value["spec"].update(rules=[None]),
    lambda value: value["spec"].update(rules=[{}]),
    lambda value: value["spec"].update(rules=[{"backendRefs": None}]),
    lambda value: value["spec"].update(rules=[{"backendRefs": [{}]}]),
    lambda value: value["spec"].update(rules=[{"backendRefs": "s"}]),
    lambda value: value["spec"]["rules"][0]["backendRefs"][0].update(weight="80"),
    lambda value: value["spec"]["rules"][0]["backendRefs"][0].update(weight=10**30),
    lambda value: value["spec"]["rules"][0]["backendRefs"][0].update(port="http"),
    lambda value: value["spec"]["rules"][0].update(matches=[{"headers": "x"}]),
    lambda value: value["spec"]["rules"][0].update(matches=[{"path": 5}]),
    lambda value: value["spec"]["rules"][0].update(filters=[{"requestMirror": "x"}]),
    lambda value: value["spec"]["rules"][0].update(filters=[{"requestMirror": {"backendRef": {"port": "x"}}}]),
    lambda value: value["spec"].update(parentRefs="gw"),
    lambda value: value["spec"].update(parentRefs=[5]),
    lambda value: value.update(status={"parents": [{"parentRef": "gw", "conditions": 5}]}),
    lambda value: value.update(status={"parents": [{"parentRef": {"name": "gw"}, "conditions": {"a": 1}}]}),
    lambda value: value.update(status={"parents": 5}),
    lambda value: value.update(status=5),
]


@pytest.mark.parametrize("change", ODD)
def test_whatever_a_route_holds_no_call_ends_in_another_error(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]
) -> None:
    """An API server without schemas can hold anything; VerifyWeight answers, the others say what is wrong (V1)."""
    shop.managed = ["canary"]
    client = shop.router._connector.cluster().client
    get = client.get

    def get_odd(resource: ResourceType, *arguments: str, deadline: Deadline) -> Any:
        value = get(resource, *arguments, deadline=deadline)
        if resource.kind == "HTTPRoute":
            change(value)
        return value

    monkeypatch.setattr(client, "get", get_odd)
    calls: list[Callable[[], None]] = [
        lambda: shop.weight(20),
        lambda: shop.header("canary"),
        lambda: shop.unset("canary"),
        shop.remove,
    ]
    for call in calls:
        try:
            call()
        except PluginError as error:
            assert "HTTPRoute shop/web: " in str(error) or isinstance(error, KubeError)  # noqa: PT017 - any of both

    assert isinstance(shop.verify(20), Verification)


def test_not_even_a_bug_makes_verify_weight_raise(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an error the controller would promote (D19)."""

    def bug(*_arguments: Any, **_options: Any) -> Any:
        raise AttributeError("a bug")

    monkeypatch.setattr(shop.router._connector.cluster().client, "get", bug)

    assert Verification.NOT_VERIFIED == shop.verify(20)
