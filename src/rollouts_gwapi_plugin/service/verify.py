"""VerifyWeight: are the live weights the wanted ones, and have the gateways taken them (decision D19).

It never writes and never raises: whatever goes wrong is "not verified", with the reason told.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.configuration import Configuration
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.dispatch import reconciler_of
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.status import Standing
from rollouts_gwapi_plugin.service.memory import Memory
from rollouts_gwapi_plugin.service.targets import Target

# A gateway needs 2 to 30 ms for a change; the first looks are close together, the later ones cheap.
FIRST_LOOK = 0.005
LONGEST_PAUSE = 0.2

REASON = "WeightNotVerified"
GAVE_UP = "GatewayBehind"


@dataclass(frozen=True)
class Look:
    """One look at a route; `waits` is whether another one is worth while."""

    target: Target
    note: Note | None
    waits: bool = False


@dataclass(frozen=True)
class Verifier:
    """Verifies routes of one call."""

    memory: Memory
    config: Configuration
    names: frozenset[str]
    deadline: Deadline
    read: Callable[[Target], Target]
    wrong: Callable[[Route, Target], str]
    may_wait: bool
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def problems(self, targets: Sequence[Target]) -> list[tuple[Target, Note | None]]:
        """Return for each route why it is not verified, a note that is no obstacle (`GatewayBehind`), or None.

        All of them wait for their gateways together, so that a call waits no longer for many routes than for one.
        """
        pause = FIRST_LOOK
        give_up_waiting = self.clock() + min(self.config.verify_wait, self.deadline.remaining())
        looks = [self._look(target) for target in targets]
        while any(look.waits for look in looks) and self.clock() + pause < give_up_waiting:
            self.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)
            looks = [self._look(self.read(look.target)) if look.waits else look for look in looks]
        return [(look.target, look.note) for look in looks]

    def _look(self, target: Target) -> "Look":
        if target.raw is None:
            return Look(target, Note(REASON, str(target.error)))
        try:
            route = parse_route(target.raw)
            wrong = self.wrong(route, target)
        except PluginError as error:
            return Look(target, Note(REASON, str(error)))
        if wrong:
            return Look(target, Note(REASON, wrong))
        note, behind = self._look_at_status(route)
        return Look(target, note, waits=behind and self.may_wait and self._is_unseen_write(target))

    def _look_at_status(self, route: Route) -> tuple[Note | None, bool]:
        """Return what the status says; the second value is whether the gateway is merely behind."""
        verdict = reconciler_of(route).verdict(route, self.names)
        if verdict.standing is Standing.REFUSED:
            return Note(REASON, verdict.text), False
        if verdict.standing is Standing.USABLE:
            self.memory.unseen.forget(route.metadata.uid)
            return None, False
        seen = self.memory.first_seen.setdefault((route.metadata.uid, route.metadata.generation), self.clock())
        if self.clock() - seen >= self.config.verify_timeout:
            limit = f"{self.config.verify_timeout:g} s"
            return Note(GAVE_UP, f"{verdict.text}; after {limit} the weight counts as verified (verifyTimeout)"), False
        return Note(REASON, verdict.text, warning=False), True

    def _is_unseen_write(self, target: Target) -> bool:
        metadata = (target.raw or {}).get("metadata", {})
        written = self.memory.unseen.get(metadata.get("uid", ""))
        return written is not None and written.generation <= metadata.get("generation", 0)
