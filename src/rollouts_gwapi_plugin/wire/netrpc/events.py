"""What comes in over net/rpc."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CallReceived:
    """A call that waits for a reply; the argument is a gob value as it came."""

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
