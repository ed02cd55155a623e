"""What a survey finds on a route, as values that are the same for every kind of route."""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView
from rollouts_gwapi_plugin.service.targets import Target

Role = Literal["stable", "canary", "experiment", "other"]


class Known(Enum):
    """By what a rule is known to be the Rollout's."""

    RECORD = "record"
    NAME = "name"
    OLD_ENTRY = "old entry"
    LABEL = "label"


@dataclass(frozen=True)
class BackendFound:
    """One backend of a rule."""

    name: str
    weight: int
    role: Role


@dataclass(frozen=True)
class RuleFound:
    """One rule and whose it is.

    `place` names it in the route. `alike` says why one of nobody looks like ours, `likely` whether much speaks for it;
    by `fingerprint` and `purpose` such a rule can be put on record, and found again once it is.
    """

    index: int
    place: str
    name: str | None
    backends: tuple[BackendFound, ...]
    weighted: bool = False
    owner: Owned | None = None
    known: Known | None = None
    alike: str = ""
    likely: bool = False
    matches: tuple[JsonObject, ...] = ()
    fingerprint: str = ""
    purpose: Purpose = Purpose.HEADER


@dataclass(frozen=True)
class RouteFound:
    """One route; `sign` says why it is here although the configuration does not name it.

    `pair` are the two backends as the route has them, None where it lacks them; `pair_error` then says so.
    """

    target: Target
    sign: str = ""
    error: PluginError | None = None
    view: RecordView = NOTHING_RECORDED
    route: Route | None = None
    rules: tuple[RuleFound, ...] = ()
    pair: tuple[str, str] | None = None
    pair_error: str = ""

    @property
    def alikes(self) -> list[RuleFound]:
        """The rules that look like ours and are not known to be."""
        return [rule for rule in self.rules if rule.alike]

    @property
    def stale(self) -> list[str]:
        """What the record says and the route does not have; the next call sweeps it."""
        record = self.view.record
        present = {rule.owner for rule in self.rules if rule.owner}
        names = [
            f"managed route {name}"
            for purpose, records in ((Purpose.HEADER, record.headers), (Purpose.MIRROR, record.mirrors))
            for name in records
            if Owned(purpose, name) not in present
        ]
        there = {backend.name for rule in self.rules for backend in rule.backends}
        return names + [f"experiment backend {name}" for _, _, _, name in record.experiments if name not in there]
