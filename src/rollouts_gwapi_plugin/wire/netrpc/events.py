"""What comes in over net/rpc."""

from dataclasses import dataclass
from typing import Any

from rollouts_gwapi_plugin.errors import GobError


@dataclass(frozen=True, slots=True)
class Unreadable:
    """In place of an argument: why it can't be read. The call still waits for a reply."""

    error: GobError


@dataclass(frozen=True, slots=True)
class CallReceived:
    """A call that waits for a reply; the argument is a gob value as it came, or `Unreadable`."""

    seq: int
    method: str
    argument: Any


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """The answer of a call; if there is an error, the body means nothing."""

    seq: int
    method: str
    error: str
    body: Any
