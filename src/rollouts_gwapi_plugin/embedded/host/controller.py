"""The controller at work: plans a reconcile, carries its actions out on a plugin, concludes.

`Controller.reconcile()` is one reconcile; `act(change)` is what a user does in between (see `actions`). The plugin is
anything with `ping` and `call`, a child process or an object in this process; Services are switched by a callback. Not
thread-safe: like the controller, one reconcile of a Rollout at a time.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rollouts_gwapi_plugin.embedded.host.cluster import NEWEST, Call, Cluster, Outcome, SwitchService, Version
from rollouts_gwapi_plugin.embedded.host.progress import conclude
from rollouts_gwapi_plugin.embedded.host.sequence import Plan, plan


@dataclass(frozen=True)
class Reply:
    """A plugin's answer to a call; `text` is Type's, `verified` VerifyWeight's (None: not implemented)."""

    error: str = ""
    text: str = ""
    verified: bool | None = None


class Plugin(Protocol):
    """A plugin, as the controller uses it; both raise only where the connection is broken."""

    def ping(self) -> None:
        """Ask whether it is alive."""

    def call(self, call: Call) -> Reply:
        """Send a call and return its answer."""


@dataclass(frozen=True)
class Reconcile:
    """What a reconcile did: the plan, the answers in the order of its calls, and how it ended."""

    plan: Plan
    replies: tuple[Reply, ...]
    outcome: Outcome

    @property
    def weight(self) -> int | None:
        """The weight that was set, None if it did not get so far."""
        return self.plan.desired.weight if self.plan.desired and self.plan.sets_weight else None


def _no_switch(switch: SwitchService) -> None:
    del switch


class Controller:
    """The controller for one Rollout."""

    def __init__(
        self,
        cluster: Cluster,
        plugin: Plugin,
        *,
        switch: Callable[[SwitchService], None] = _no_switch,
        version: Version = NEWEST,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.cluster = cluster
        self._plugin = plugin
        self._switch = switch
        self._version = version
        self._clock = clock

    def reconcile(self) -> Reconcile:
        """Do one reconcile."""
        planned = plan(self.cluster, self._version)
        if planned.desired is not None:
            self._plugin.ping()
            self._plugin.call(Call("Type", {}))
        replies: list[Reply] = []
        outcome, done = Outcome(), 0
        for action in planned.actions:
            if isinstance(action, SwitchService):
                self._switch(action)
            else:
                reply = self._plugin.call(action)
                replies.append(reply)
                outcome = _outcome(action, reply, outcome)
            if outcome.error:
                break
            done += 1
        self.cluster = conclude(self.cluster, planned, outcome, self._clock(), done)
        return Reconcile(planned, tuple(replies), outcome)

    def act(self, change: Callable[[Cluster], Cluster]) -> None:
        """Apply what happens between reconciles: a user's action, pods that start."""
        self.cluster = change(self.cluster)


def _outcome(call: Call, reply: Reply, before: Outcome) -> Outcome:
    if call.method == "VerifyWeight":
        return Outcome(verified=reply.verified, verify_error=reply.error)
    return Outcome(error=f"{call.method}: {reply.error}") if reply.error else before
