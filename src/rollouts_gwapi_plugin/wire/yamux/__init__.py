"""yamux: many streams over one connection."""

from rollouts_gwapi_plugin.wire.yamux.events import (
    DataReceived,
    Event,
    GoAwayReceived,
    PingAnswered,
    SendPossible,
    StreamFinished,
    StreamOpened,
    StreamReset,
)
from rollouts_gwapi_plugin.wire.yamux.frame import describe_frames
from rollouts_gwapi_plugin.wire.yamux.session import Limits, Role, Session

__all__ = [
    "DataReceived",
    "Event",
    "GoAwayReceived",
    "Limits",
    "PingAnswered",
    "Role",
    "SendPossible",
    "Session",
    "StreamFinished",
    "StreamOpened",
    "StreamReset",
    "describe_frames",
]
