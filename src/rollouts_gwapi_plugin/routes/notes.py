"""What a reconciler tells beside its result: reconcilers do not log (decision D32)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """One thing worth telling the user; `reason` is an Event's reason, CamelCase."""

    reason: str
    text: str
    warning: bool = True
