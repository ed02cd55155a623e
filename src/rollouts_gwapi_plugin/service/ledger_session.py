"""The ledger during one call: read at most once, written conditionally, its trouble kept apart (decisions D5, D6, D8).

The ConfigMap is read when something first asks for it. A write goes under the version that was read; where somebody
else wrote in between, it is read again and the change is applied to what is there now.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from rollouts_gwapi_plugin.errors import Conflict, LedgerError, NotFound, PluginError
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.conflicts import retry_on_conflict
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS, ObjectRef
from rollouts_gwapi_plugin.routes.ledger import Ledger, parse_ledger
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView, RouteRecord

Change = Callable[[RouteRecord], RouteRecord]
# Counts the writes around an added rule: the API server makes no new version of an object that does not change.
TOUCHED = "rollouts.argoproj.io/gatewayapi-ledger-writes"
MAX_DIGITS = 12


@dataclass(frozen=True)
class OldEntries:
    """What becomes of the Go plugin's old entries on a route: those of some managed routes are done with, others move.

    `moves` are the places before and after, by the managed route's name.
    """

    done: frozenset[str] = frozenset()
    moves: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether something becomes of any."""
        return bool(self.done or self.moves)


STAY: Final = OldEntries()


@dataclass
class LedgerSession:
    """One ConfigMap, for one Rollout, during one call; used by one thread."""

    client: KubeClient
    namespace: str
    name: str
    rollout: str
    uid: str
    deadline: Deadline
    lock: Lock = field(default_factory=Lock)
    _raw: JsonObject | None = None
    _read: bool = False
    _unreadable: PluginError | None = None

    def __str__(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}"

    def at(self, namespace: str, name: str, lock: Lock) -> "LedgerSession":
        """Return the session for this ConfigMap if it is this one, else a new one: what was read is another's."""
        if (namespace, name) == (self.namespace, self.name):
            return self
        return LedgerSession(self.client, namespace, name, self.rollout, self.uid, self.deadline, lock)

    def forget(self) -> None:
        """Have the ConfigMap read again when it is asked for next."""
        self._read = False

    def _refresh(self) -> None:
        """Read the ConfigMap; trouble is kept, not raised."""
        self._read = True
        self._unreadable = None
        try:
            self._raw = self.client.get(CONFIG_MAPS, self.namespace, self.name, deadline=self.deadline)
        except NotFound:
            self._raw = None
        except PluginError as error:
            self._raw = None
            self._unreadable = error

    def ledger(self, family: str) -> Ledger:
        """Return the family's part.

        Raises:
            PluginError: the ConfigMap, or the part, can't be read; the ConfigMap is not asked for again for that.

        """
        if not self._read:
            self._refresh()
        if self._unreadable is not None:
            raise self._unreadable
        return parse_ledger((self._raw or {}).get("data") or {}, family, str(self))

    def trouble(self, *families: str) -> PluginError | None:
        """Return why the part of one of the families, the first such, is of no use."""
        for family in families:
            try:
                self.ledger(family)
            except PluginError as error:
                return error
        return None

    def view(self, family: str, route: str) -> tuple[RecordView, PluginError | None]:
        """Return what is known of the route; nothing where the ledger is of no use, and why it is not."""
        try:
            return self.ledger(family).view(self.rollout, route), None
        except PluginError as error:
            return NOTHING_RECORDED, error

    def put(
        self,
        family: str,
        route: str,
        change: Change,
        *,
        old: OldEntries = STAY,
        touch: bool = False,
        again: bool = True,
    ) -> None:
        """Apply a change to the route's record.

        Args:
            family: The kind of route.
            route: The route's name.
            change: Makes the new record from the one that is there.
            old: What becomes of the Go plugin's old entries.
            touch: Make a new version also where nothing changes, so that others' pending writes are refused.
            again: Apply the change to what others wrote in between; else that is a Conflict.

        Raises:
            Conflict: somebody else wrote in between.
            PluginError: the ConfigMap can't be read or written, or has no room.

        """
        if not again:
            self._attempt(family, route, change, old, touch=touch)
            return

        def attempt(tries: int) -> None:
            if tries > 1:
                self.forget()
            self._attempt(family, route, change, old, touch=touch)

        try:
            retry_on_conflict(attempt, ObjectRef("ConfigMap", self.namespace, self.name), deadline=self.deadline)
        except Conflict as error:
            raise LedgerError(str(error)) from error

    def _attempt(self, family: str, route: str, change: Change, old: OldEntries, *, touch: bool) -> None:
        if not self.lock.acquire(timeout=self.deadline.remaining()):
            raise LedgerError(f"{self}: other calls of this process held it for {self.deadline.limit:g} s")
        try:
            self._change(family, route, change, old, touch=touch)
        finally:
            self.lock.release()

    def _change(self, family: str, route: str, change: Change, old: OldEntries, *, touch: bool) -> None:
        ledger = self.ledger(family)
        record = change(ledger.view(self.rollout, route).record)
        changed = ledger.with_record(self.rollout, self.uid, route, record)
        changed = changed.without_legacy(old.done, route).with_moved_legacy(old.moves, route)
        if changed != ledger or touch:
            self._write(changed, touch=touch)

    def _write(self, ledger: Ledger, *, touch: bool) -> None:
        old = (self._raw or {}).get("data") or {}
        data = ledger.write(old, self.rollout, str(self))
        if self._raw is None:
            metadata = {
                "name": self.name,
                "namespace": self.namespace,
                "labels": {"app.kubernetes.io/managed-by": "rollouts-gwapi-plugin"},
            }
            new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            self._raw = self.client.post(CONFIG_MAPS, self.namespace, new, deadline=self.deadline)
        else:
            wanted = {**self._raw, "data": data}
            if touch:
                metadata = wanted["metadata"]
                annotations = metadata.get("annotations") or {}
                count = str(annotations.get(TOUCHED, ""))
                number = int(count) + 1 if count.isdecimal() and len(count) < MAX_DIGITS else 1
                wanted["metadata"] = {**metadata, "annotations": {**annotations, TOUCHED: str(number)}}
            self._raw = self.client.put(CONFIG_MAPS, wanted, deadline=self.deadline)
