"""Watches: changes of one kind as lines of JSON, from a version on, until the time is up or the server stops."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import encode
from rollouts_gwapi_plugin.embedded.apiserver.selectors import Predicate
from rollouts_gwapi_plugin.embedded.apiserver.status import expired
from rollouts_gwapi_plugin.embedded.apiserver.store import Change, Store, Stored
from rollouts_gwapi_plugin.embedded.apiserver.targets import Target
from rollouts_gwapi_plugin.model.base import JsonObject

# A watch that names no end gets one, as on the real API server (there it is random between 30 and 60 minutes).
DEFAULT_SECONDS = 1800.0
# How often a waiting watch looks whether the server stops.
_TICK = 0.5
# The API server sends its last bookmark this long before the end; a shorter watch gets none.
_LAST_BOOKMARK_SECONDS = 2.0


@dataclass(frozen=True)
class WatchRequest:
    """What is watched and for how long."""

    target: Target
    matches: Predicate
    version: int | None
    seconds: float
    bookmarks: bool = False
    # Send what there is first, whatever the version, and mark its end: a list and a watch in one.
    initial: bool = False


class Watch:
    """One running watch over a store."""

    def __init__(
        self,
        store: Store,
        request: WatchRequest,
        convert: Callable[[Stored, Target], JsonObject],
        stop: threading.Event,
    ) -> None:
        self._store = store
        self._request = request
        self._convert = convert
        self._stop = stop

    def lines(self) -> Iterator[bytes]:
        """Yield one line an event; an empty piece means that nothing happened for a while."""
        request = self._request
        end = time.monotonic() + request.seconds
        version = request.version
        if not version or request.initial:
            with self._store.condition:
                version = self._store.version
                rows = self._store.all(request.target.kind.key, request.target.namespace)
            yield from (self._line("ADDED", row) for row in rows if request.matches(row.value))
        if request.initial and request.bookmarks:
            yield self._bookmark(version, {"annotations": {"k8s.io/initial-events-end": "true"}})
        while not self._stop.is_set() and time.monotonic() < end:
            changes = self._wait(version, end)
            if changes is None:
                error = expired(self._store.oldest, version)
                yield encode({"type": "ERROR", "object": error.body}) + b"\n"
                return
            if not changes:
                yield b""
            for change in changes:
                version = change.version
                if line := self._change_line(change):
                    yield line
        if request.bookmarks and request.seconds > _LAST_BOOKMARK_SECONDS:
            yield self._bookmark(version, {})

    def _wait(self, version: int, end: float) -> list[Change] | None:
        with self._store.condition:
            if self._store.version <= version:
                self._store.condition.wait(max(0.0, min(_TICK, end - time.monotonic())))
            changes = self._store.since(version)
            return None if changes is None else list(changes)

    def _change_line(self, change: Change) -> bytes:
        """Write the change as this watch sees it: leaving the selection is a deletion, joining it an addition."""
        target = self._request.target
        if change.key != target.kind.key or target.namespace not in {"", change.place[0]}:
            return b""
        was = change.before is not None and self._request.matches(change.before.value)
        now = change.type != "DELETED" and self._request.matches(change.stored.value)
        if now:
            return self._line("MODIFIED" if was else "ADDED", change.stored)
        return self._line("DELETED", _last_seen(change)) if was else b""

    def _line(self, kind: str, stored: Stored) -> bytes:
        value = self._convert(stored, self._request.target)
        return encode({"type": kind, "object": value}) + b"\n"

    def _bookmark(self, version: int, metadata: JsonObject) -> bytes:
        target = self._request.target
        value = {
            "kind": target.kind.kind,
            "apiVersion": target.api_version,
            "metadata": {"resourceVersion": str(version)} | metadata,
        }
        return encode({"type": "BOOKMARK", "object": value}) + b"\n"


def _last_seen(change: Change) -> Stored:
    """Give what a watch last had of an object, at the version at which it went."""
    if change.type == "DELETED" or change.before is None:
        return change.stored
    metadata = change.before.value["metadata"] | {"resourceVersion": str(change.version)}
    return Stored(change.before.value | {"metadata": metadata}, change.version)
