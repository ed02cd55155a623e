"""What a reconciler tells beside its result: reconcilers do not log (decision D32)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rollouts_gwapi_plugin.model.routes import Rule

# The reason where the API can't say of a source what a mirror step asks for.
MIRROR_LEFT_OUT: Final = "MirrorLeftOut"


@dataclass(frozen=True)
class Note:
    """One thing worth telling the user; `reason` is an Event's reason, CamelCase."""

    reason: str
    text: str
    warning: bool = True


def which_rule(rule: Rule, index: int) -> str:
    """Return how a rule of the user's is called: by its name, else by its place among the user's rules."""
    return f"rule {rule.name}" if rule.name else f"rule {index}"


def one_a_reason(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Join the notes of each reason: together they are the state that is told once, and again when it changes."""
    by_reason: dict[str, list[Note]] = {}
    for note in notes:
        by_reason.setdefault(note.reason, []).append(note)
    return tuple(
        Note(reason, "; ".join(dict.fromkeys(note.text for note in same)), any(note.warning for note in same))
        for reason, same in by_reason.items()
    )
