"""Kubernetes Events on a Rollout: once a state, never in the way of a call.

`record` says which state a Rollout is in, under a key ("verify", "ledger", ...). An Event is made only if that state is
not the one said last under the key, so a controller that reconciles a hundred times gets one Event. Posting is the
work of one thread behind a bounded queue and not of the caller: an Event is for reading later, while the caller is one
of the controller's few workers and must not wait for an API server that is slow. What can't be posted is forgotten
again, so that the next reconcile says it once more; a 403 ends the Events of its namespace for a while, with one line
in the log: rights are given a namespace, and one that is being deleted takes no Events either.
"""

import datetime as dt
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rollouts_gwapi_plugin.errors import Forbidden, PluginError
from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import ObjectMeta, Rollout

COMPONENT = "rollouts-gwapi-plugin"
# Enough for a burst of all Rollouts of a busy controller at an outage's end; older news are of less worth than memory.
MAX_WAITING = 200
# Some states each of a few thousand Rollouts; one that falls out is told once more, which does no harm.
MAX_STATES = 10_000
# The role may be fixed while we run; until then asking again is a wasted request each.
SILENCE_SECONDS = 600.0
# More than the namespaces that one controller mostly has; one that falls out is asked again, which costs a request.
MAX_SILENT = 1000
# The API server refuses more (events.k8s.io) or kubectl cuts it.
MAX_MESSAGE = 1000
MAX_REASON = 128
# A name is 253 characters at most, and `.` and 16 digits follow the Rollout's.
_MAX_NAME = 253 - 17

EventType = Literal["Normal", "Warning"]
Post = Callable[[str, JsonObject], object]
_StateKey = tuple[str, str, str, str]

log = get_logger()


@dataclass(frozen=True)
class _Event:
    key: _StateKey
    state: str
    namespace: str
    body: JsonObject


def _nothing() -> None:
    """Take no note of an Event that was not made."""


class EventRecorder:
    """Makes Events by a function that posts one, given its namespace; thread-safe. The thread starts at the first."""

    def __init__(
        self,
        post: Post,
        *,
        on_drop: Callable[[], None] = _nothing,
        instance: str = "",
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._post = post
        self._on_drop = on_drop
        self._instance = instance or socket.gethostname()
        self._clock = clock
        self._wall_clock = wall_clock
        self._changed = threading.Condition()
        self._states: OrderedDict[_StateKey, str] = OrderedDict()
        self._waiting: deque[_Event] = deque()
        self._thread: threading.Thread | None = None
        self._posting = False
        self._closed = False
        # By namespace, the oldest refusal first.
        self._silent_until: OrderedDict[str, float] = OrderedDict()

    def record(
        self, rollout: Rollout, key: str, event_type: EventType, reason: str, message: str, *, state: str = ""
    ) -> None:
        """Say that the Rollout is in a state; make an Event if it was in another.

        Args:
            rollout: Whom the Event is about.
            key: What the state is a state of.
            event_type: Normal or Warning.
            reason: CamelCase, for machines.
            message: For people.
            state: What tells this state from others, by default type, reason and message; give one where the message
                holds something that changes each time.
        """
        said = state or f"{event_type} {reason} {message}"
        about = rollout.metadata
        state_key = (about.namespace, about.name, about.uid, key)
        if not about.namespace or not about.name:
            return
        with self._changed:
            known = self._states.get(state_key)
            self._states[state_key] = said
            self._states.move_to_end(state_key)
            if len(self._states) > MAX_STATES:
                self._states.popitem(last=False)
            if known == said or self._closed:
                return
            if len(self._waiting) >= MAX_WAITING or self._is_silent(about.namespace):
                self._drop(state_key, said)
                return
            self._waiting.append(
                _Event(state_key, said, about.namespace, self._body(about, event_type, reason, message))
            )
            self._start()
            self._changed.notify_all()

    def clear(self, rollout: Rollout, key: str) -> None:
        """Say that the Rollout is in no state under the key, so that the next one makes an Event in any case."""
        about = rollout.metadata
        with self._changed:
            self._states.pop((about.namespace, about.name, about.uid, key), None)

    def flush(self, seconds: float) -> bool:
        """Wait until all Events are posted or dropped; return whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._posting, seconds)

    def close(self, seconds: float = 1.0) -> None:
        """Post what waits, for so long at most, and end the thread."""
        self.flush(seconds)
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="events", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._posting = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                event = self._waiting.popleft()
                self._posting = True
            self._send(event)

    def _send(self, event: _Event) -> None:
        with self._changed:
            silent = self._is_silent(event.namespace)
        try:
            if not silent:
                self._post(event.namespace, event.body)
                return
        except Forbidden as error:
            with self._changed:
                self._silent_until[event.namespace] = self._clock() + SILENCE_SECONDS
                self._silent_until.move_to_end(event.namespace)
                if len(self._silent_until) > MAX_SILENT:
                    self._silent_until.popitem(last=False)
            log.warning(
                "no Events are made for a while", namespace=event.namespace, seconds=SILENCE_SECONDS, reason=str(error)
            )
        except PluginError as error:
            log.info("an Event could not be made", about=event.body["reason"], reason=str(error))
        except Exception:
            # A fault of ours must not end the thread: the Events are not worth a call, and neither is their loss.
            log.exception("an Event could not be made")
        with self._changed:
            self._drop(event.key, event.state)

    def _is_silent(self, namespace: str) -> bool:
        return self._clock() < self._silent_until.get(namespace, float("-inf"))

    def _drop(self, key: _StateKey, said: str) -> None:
        """Forget a state that was not told, unless another was said since."""
        self._on_drop()
        if self._states.get(key) == said:
            del self._states[key]

    def _body(self, about: ObjectMeta, event_type: EventType, reason: str, message: str) -> JsonObject:
        now = self._wall_clock()
        moment = dt.datetime.fromtimestamp(now, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        involved = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Rollout",
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            # The name that client-go gives an Event: unique by the nanosecond.
            "metadata": {
                "name": f"{about.name[:_MAX_NAME].rstrip('.-')}.{int(now * 1e9):016x}",
                "namespace": about.namespace,
            },
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": event_type,
            "reason": reason[:MAX_REASON],
            "message": message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…",
            "source": {"component": COMPONENT},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
        }
