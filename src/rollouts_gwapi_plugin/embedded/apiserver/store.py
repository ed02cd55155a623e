"""The objects, their versions and the recent history, in memory.

One counter gives each write its resourceVersion. A stored object is never changed in place: a write puts a new one, so
readers need no copy and its encoding is kept. History holds the last HISTORY_LENGTH changes, for watches; a watch that
asks for older ones is told so.

`condition` guards everything; `changed` wakes the watches.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from rollouts_gwapi_plugin.model.base import JsonObject

# What a watch may be behind. The real API server keeps some 5 minutes; tests and demos write less than this in all.
HISTORY_LENGTH = 10_000

Key = tuple[str, str]
Place = tuple[str, str]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True)
class Stored:
    """An object at one version; `encodings` keeps its bytes by served version."""

    value: JsonObject
    version: int
    encodings: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Change:
    """One write: `before` is None where the object was made, `stored` is the last state where it was deleted."""

    type: ChangeType
    key: Key
    place: Place
    before: Stored | None
    stored: Stored
    version: int


class Store:
    """See the module's text."""

    def __init__(self) -> None:
        self.condition = threading.Condition(threading.RLock())
        self.version = 1
        self._objects: dict[Key, dict[Place, Stored]] = {}
        self._history: deque[Change] = deque(maxlen=HISTORY_LENGTH)
        self._forgotten = 1
        self.observers: list[Callable[[Change], None]] = []

    def get(self, key: Key, place: Place) -> Stored | None:
        """Find one object; `place` is (namespace, name)."""
        return self._objects.get(key, {}).get(place)

    def all(self, key: Key, namespace: str) -> list[Stored]:
        """All objects of a kind, in the order of namespace and name; an empty namespace means all."""
        with self.condition:
            rows = self._objects.get(key, {})
            return [rows[place] for place in sorted(rows) if namespace in {"", place[0]}]

    def put(self, key: Key, place: Place, value: JsonObject) -> Stored:
        """Store a new state; its resourceVersion is set here."""
        with self.condition:
            version = self.version + 1
            value["metadata"]["resourceVersion"] = str(version)
            stored = Stored(value, version)
            before = self.get(key, place)
            self._objects.setdefault(key, {})[place] = stored
            self._record(Change("MODIFIED" if before else "ADDED", key, place, before, stored, version))
            return stored

    def remove(self, key: Key, place: Place) -> Stored:
        """Delete what is there; its last state, at the version of its deletion, goes to the watches."""
        with self.condition:
            before = self._objects[key].pop(place)
            version = self.version + 1
            last = before.value | {"metadata": before.value["metadata"] | {"resourceVersion": str(version)}}
            stored = Stored(last, version)
            self._record(Change("DELETED", key, place, before, stored, version))
            return stored

    def since(self, version: int) -> Iterator[Change] | None:
        """All changes after a version, or None where history does not reach back so far."""
        with self.condition:
            if version < self._forgotten:
                return None
            fresh = []
            for change in reversed(self._history):
                if change.version <= version:
                    break
                fresh.append(change)
            return reversed(fresh)

    def forget_history(self) -> None:
        """Forget the history, as compaction does: older watches are told that they are too old."""
        with self.condition:
            self._history.clear()
            self._forgotten = self.version

    @property
    def oldest(self) -> int:
        """The oldest version from which a watch can start."""
        return self._forgotten

    def _record(self, change: Change) -> None:
        if len(self._history) == HISTORY_LENGTH:
            self._forgotten = self._history[0].version
        self._history.append(change)
        self.version = change.version
        self.condition.notify_all()
        for observer in self.observers:
            observer(change)
