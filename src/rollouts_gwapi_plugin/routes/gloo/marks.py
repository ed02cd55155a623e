"""How a managed route of a RouteTable is told from the user's: by the record, by our label, or by its name (D7, D30).

Each managed HTTP route bears a label whose value nobody else's has: a hash of the Rollout, the RouteTable and the
route's name. So a managed route is ours with a lost ledger, too, and one that was copied elsewhere is not; and a
MirrorPolicy selects exactly one route.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.gloo.destination import name_of
from rollouts_gwapi_plugin.routes.gloo.table import TableRoute, digest
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose, records_of
from rollouts_gwapi_plugin.routes.names import is_named_after
from rollouts_gwapi_plugin.routes.record import RecordView

LABELS: Final[Mapping[Purpose, str]] = {
    Purpose.HEADER: "rollouts.argoproj.io/header-route",
    Purpose.MIRROR: "rollouts.argoproj.io/mirror-route",
}
# A label's value and an object's name hold 63 characters; the hash needs 17 of them.
MAX_READABLE: Final = 40
HASH_LENGTH: Final = 16
_ILLEGAL = re.compile(r"[^a-z0-9-]+")


def identity(rollout: str, table: str, name: str) -> str:
    """Return the label's value for a managed route of this name; also its MirrorPolicy's name."""
    readable = _ILLEGAL.sub("-", name.lower()).strip("-")[:MAX_READABLE].strip("-") or "route"
    return f"{readable}-{digest([rollout, table, name])[:HASH_LENGTH]}"


def is_marked(item: TableRoute) -> bool:
    """Whether the route bears a label of ours, whichever Rollout's it is."""
    return any(label in item.labels for label in LABELS.values())


def fingerprint(raw: JsonObject, experiments: Iterable[str]) -> str:
    """Tell a managed route by what it matches, does and forwards to, without name, labels, weights and experiments."""
    item = TableRoute("http", raw)
    left_out = frozenset(experiments)
    names = [name_of(destination) for destination in item.destinations if name_of(destination) not in left_out]
    return digest([item.print, names])


@dataclass(frozen=True)
class Claim:
    """Everything by which HTTP routes are recognised as ours on one RouteTable."""

    table: str
    desired: Desired
    view: RecordView
    canary: str
    # Managed routes that this call sets: unrecorded routes of their names are taken over.
    setting: frozenset[str] = frozenset()

    @property
    def experiments(self) -> frozenset[str]:
        """The names of experiment Services that may stand in a managed route."""
        recorded = {name for _, _, _, name in self.view.record.experiments}
        return frozenset(recorded | {destination.name for destination in self.desired.destinations})

    def owner(self, item: TableRoute) -> Owned | None:
        """Tell whose the route is; None: not this Rollout's."""
        for purpose, label in LABELS.items():
            if item.labels.get(label) == identity(self.desired.rollout, self.table, item.name):
                return Owned(purpose, self._managed_name(purpose, item.name))
        return self._recorded(item) or self._left_over(item)

    def _managed_name(self, purpose: Purpose, name: str) -> str:
        for managed, record in records_of(self.view.record, purpose).items():
            if any(mark.name == name for mark in record.rules):
                return managed
        fitting = [managed for managed in self.desired.managed_names if is_named_after(name, managed)]
        return max(fitting, key=len, default=name)

    def _recorded(self, item: TableRoute) -> Owned | None:
        """Recognise a recorded route that has lost its label: by name, and by what it is."""
        for purpose in Purpose:
            for managed, record in records_of(self.view.record, purpose).items():
                for mark in record.rules:
                    if mark.name != item.name:
                        continue
                    shape = purpose is Purpose.HEADER and only_canary(item, self.canary)
                    if shape or fingerprint(item.raw, self.experiments) in mark.fingerprints:
                        return Owned(purpose, managed)
        return None

    def _left_over(self, item: TableRoute) -> Owned | None:
        """Recognise a header route of the proof-of-concept plugin: it bears a managed route's name, and no label."""
        if is_marked(item) or not item.name or not only_canary(item, self.canary):
            return None
        names = self.setting if self.view.known else self.setting | frozenset(self.desired.managed_names)
        fitting = [managed for managed in names if is_named_after(item.name, managed)]
        return Owned(Purpose.HEADER, max(fitting, key=len)) if fitting else None


def only_canary(item: TableRoute, canary: str) -> bool:
    """Whether the canary is all that stands behind the route."""
    return bool(item.destinations) and all(name_of(raw) == canary for raw in item.destinations)
