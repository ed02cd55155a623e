"""What a yamux session tells its owner; each event is complete and frozen."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The peer opened a stream; it is acknowledged already."""

    stream: int


@dataclass(frozen=True, slots=True)
class DataReceived:
    """Bytes came; report them with `Session.consumed` once they were read, or the peer runs out of window."""

    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class StreamFinished:
    """The peer will send no more on this stream; we still may."""

    stream: int


@dataclass(frozen=True, slots=True)
class StreamReset:
    """The stream is dead in both directions: reset by the peer, or the connection ended."""

    stream: int


@dataclass(frozen=True, slots=True)
class PingAnswered:
    """The peer answered a ping of ours."""

    opaque: int


@dataclass(frozen=True, slots=True)
class GoAwayReceived:
    """The peer accepts no more streams; code 0 is normal, after any other it closes the connection."""

    code: int


@dataclass(frozen=True, slots=True)
class SendPossible:
    """All that waited for this stream's window has gone out."""

    stream: int


Event = StreamOpened | DataReceived | StreamFinished | StreamReset | PingAnswered | GoAwayReceived | SendPossible
