"""Notes become log lines and Events: once a state, not once a reconcile (decision D32)."""

from typing import Final

from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.model.rollout import Rollout
from rollouts_gwapi_plugin.observe.events import EventRecorder
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.service.memory import Remembered

# As many states as Events remember.
MAX_SAID: Final = 10_000

log = get_logger()


class Reporter:
    """Says each note of a Rollout once, until it is another."""

    def __init__(self, limit: int = MAX_SAID) -> None:
        self._said: Remembered[tuple[str, str, str], str] = Remembered(limit)

    def report(self, rollout: Rollout, about: str, note: Note, events: EventRecorder | None) -> None:
        """Log the note, and make an Event of a warning; `about` is the route or whatever the note is a state of."""
        key = (rollout.key, about, note.reason)
        if self._said.get(key) == note.text:
            return
        self._said.set(key, note.text)
        if note.warning:
            log.warning(note.text, rollout=rollout.key, reason=note.reason)
        else:
            log.info(note.text, rollout=rollout.key, reason=note.reason)
        if note.warning and events is not None:
            events.record(rollout, f"{about} {note.reason}", "Warning", note.reason, note.text)

    def settle(self, rollout: Rollout, about: str, reason: str, events: EventRecorder | None) -> None:
        """Say that a state is over, so that it is told again when it comes back."""
        self._said.forget((rollout.key, about, reason))
        if events is not None:
            events.clear(rollout, f"{about} {reason}")
