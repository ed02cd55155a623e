"""What the process remembers between calls; nothing that a restart may not forget (decisions D17, D19, D29).

All of it is bounded and thread-safe.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.routes.desired import Label
from rollouts_gwapi_plugin.routes.kinds import RouteKind

# Labels remembered of one route: each Rollout has one, or a second for a while when its configuration changes.
MAX_LABELS: Final = 100
# A few thousand Rollouts with a few routes each; what falls out is treated as after a restart.
MAX_REMEMBERED: Final = 10_000

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """A bounded map; the entry that was set (also by `setdefault`, to what it is) longest ago falls out first."""

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def set(self, key: Key, value: Value) -> None:
        """Remember."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self._limit:
                self._entries.popitem(last=False)

    def get(self, key: Key) -> Value | None:
        """Return what is remembered, if anything."""
        with self._lock:
            return self._entries.get(key)

    def setdefault(self, key: Key, value: Value) -> Value:
        """Return what is remembered, and remember the value where nothing is; of two at once both get the same."""
        with self._lock:
            known = self._entries.setdefault(key, value)
            self._entries.move_to_end(key)
            if len(self._entries) > self._limit:
                self._entries.popitem(last=False)
            return known

    def forget(self, key: Key) -> None:
        """Forget."""
        with self._lock:
            self._entries.pop(key, None)


@dataclass(frozen=True)
class RoutePlace:
    """A route on which this process has put something of a Rollout, and the ConfigMap that records it."""

    kind: RouteKind
    namespace: str
    name: str
    config_map: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Shift:
    """The canary's weight that this process wrote last on a route, and the one rule that it was for (none: all)."""

    weight: int
    rule_name: str = ""


@dataclass(frozen=True)
class Written:
    """A write of ours that changed the spec: the generation it made, and when."""

    generation: int
    at: float


class Memory:
    """Everything that is remembered."""

    def __init__(self) -> None:
        # Rollout -> the resourceVersion that it had at its last RemoveManagedRoutes, until its next VerifyWeight.
        self.removed: Remembered[str, str] = Remembered()
        # Rollout -> its resourceVersion at its last RemoveManagedRoutes, and what that could not do; until SetWeight.
        self.unremoved: Remembered[str, tuple[str, tuple[PluginError, ...]]] = Remembered()
        # (uid of the route, generation) -> when this process first met that generation.
        self.first_seen: Remembered[tuple[str, int], float] = Remembered()
        # uid of the route -> our last write that was not yet seen true.
        self.unseen: Remembered[str, Written] = Remembered()
        # Rollout -> where this process has written for it, with the canary's weight if it wrote that.
        self.places: Remembered[str, dict[RoutePlace, Shift | None]] = Remembered()
        # (kind, namespace, name) of a route -> the in-progress labels that its Rollouts have had.
        self._labels: Remembered[tuple[str, str, str], frozenset[Label]] = Remembered()
        self._locks: Remembered[tuple[str, str, str], threading.Lock] = Remembered()
        self._places_lock = threading.Lock()

    def lock(self, kind: str, namespace: str, name: str) -> threading.Lock:
        """Return the lock of one object: calls of this process on it take turns."""
        return self._locks.setdefault((kind, namespace, name), threading.Lock())

    def note_label(self, route: tuple[str, str, str], label: Label) -> None:
        """Remember a label of a Rollout on a route (its kind, namespace and name)."""
        with self._places_lock:
            known = self._labels.get(route) or frozenset()
            if label not in known and len(known) < MAX_LABELS:
                self._labels.set(route, known | {label})

    def labels(self, route: tuple[str, str, str]) -> frozenset[Label]:
        """Return the labels that Rollouts have had on a route."""
        return self._labels.get(route) or frozenset()

    def note_place(self, rollout: str, place: RoutePlace, shift: Shift | None) -> None:
        """Remember that something of the Rollout stands on the route; None: the weights there were not written."""
        with self._places_lock:
            places = self.places.get(rollout) or {}
            self.places.set(rollout, {**places, place: shift or places.get(place)})

    def drop_place(self, rollout: str, place: RoutePlace) -> None:
        """Forget a route that was given back."""
        with self._places_lock:
            rest = {key: shift for key, shift in (self.places.get(rollout) or {}).items() if key != place}
            self.places.set(rollout, rest)
