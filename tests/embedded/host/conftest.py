"""A Rollout, a plugin that only takes notes, and a controller over both."""

from collections.abc import Callable
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.host.cluster import Call, Cluster, SwitchService
from rollouts_gwapi_plugin.embedded.host.controller import Controller, Reconcile, Reply

Step = dict[str, Any]


class Notes:
    """A plugin that answers everything well, unless told otherwise, and remembers the calls."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answers: dict[str, Reply] = {"VerifyWeight": Reply(verified=True)}
        self.pings = 0

    def ping(self) -> None:
        """Count."""
        self.pings += 1

    def call(self, call: Call) -> Reply:
        """Remember the call."""
        self.calls.append(call)
        return self.answers.get(call.method, Reply())


class World:
    """A controller with its clock, notes and Service selectors."""

    def __init__(self, rollout: dict[str, Any], **options: Any) -> None:
        self.now = 0.0
        self.notes = Notes()
        self.selectors: dict[str, str] = {}
        self.controller = Controller(
            Cluster(rollout), self.notes, switch=self._switch, clock=lambda: self.now, **options
        )

    def _switch(self, switch: SwitchService) -> None:
        self.selectors[switch.service] = switch.pod_hash

    @property
    def cluster(self) -> Cluster:
        """The cluster as it is."""
        return self.controller.cluster

    def once(self) -> list[Any]:
        """Reconcile once; return branch letter and calls in short: `[letter, "SetWeight 20", ...]`."""
        return short(self.controller.reconcile())

    def settle(self, limit: int = 30) -> list[list[Any]]:
        """Reconcile, with pods that start in between, until nothing changes; return what each did."""
        seen: list[list[Any]] = []
        for _ in range(limit):
            before = self.cluster
            seen.append(self.once())
            self.controller.act(Cluster.all_available)
            if self.cluster == before:
                return seen
        raise AssertionError(f"the rollout did not settle: {seen[-3:]}")


def short(done: Reconcile) -> list[Any]:
    """Return branch letter and calls of a reconcile in short."""
    letter = done.plan.desired.branch.value if done.plan.desired else "-"
    return [letter, *(brief(call) for call in done.plan.calls)]


def brief(call: Call) -> str:
    """Return a call in short."""
    if "desiredWeight" in call.arguments:
        extra = "".join(f" {one['serviceName']}={one['weight']}" for one in call.arguments["additionalDestinations"])
        return f"{call.method} {call.arguments['desiredWeight']}{extra}"
    for field in ("setHeaderRoute", "setMirrorRoute"):
        if field in call.arguments:
            return f"{call.method} {call.arguments[field]['name']}"
    return call.method


def make_rollout(*steps: Step, **canary: Any) -> dict[str, Any]:
    """Return a Rollout of ten pods with these steps."""
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": 1},
        "spec": {
            "replicas": 10,
            "template": {"spec": {"containers": [{"name": "main", "image": "v1"}]}},
            "strategy": {
                "canary": {
                    "stableService": "stable",
                    "canaryService": "canary",
                    "steps": list(steps),
                    "trafficRouting": {"plugins": {"argoproj-labs/gatewayAPI": {"httpRoute": "web"}}},
                    **canary,
                }
            },
        },
    }


@pytest.fixture
def make_world() -> Callable[..., World]:
    """Return a function that makes a world with the steps, its first version deployed."""

    def make(*steps: Step, canary: dict[str, Any] | None = None, **options: Any) -> World:
        world = World(make_rollout(*steps, **(canary or {})), **options)
        world.settle()
        world.notes.calls.clear()
        return world

    return make


@pytest.fixture(scope="session")
def rollout() -> Callable[..., dict[str, Any]]:
    """Return a function that makes a Rollout with the steps."""
    return make_rollout


@pytest.fixture(scope="session")
def raw_world() -> Callable[..., World]:
    """Return the world itself, for a Rollout that was never deployed."""
    return World
