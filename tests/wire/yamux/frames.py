"""Frames as bytes, and a session with open streams."""

from rollouts_gwapi_plugin.wire.yamux import (
    Role,
    Session,
)
from rollouts_gwapi_plugin.wire.yamux.frame import SYN, FrameType, encode_frame

WINDOW = 256 * 1024


def data(stream: int, body: bytes, flags: int = 0) -> bytes:
    """Return a data frame."""
    return encode_frame(FrameType.DATA, flags, stream, len(body)) + body


def window(stream: int, flags: int = 0, credit: int = 0) -> bytes:
    """Return a window update."""
    return encode_frame(FrameType.WINDOW_UPDATE, flags, stream, credit)


def ping(flags: int, opaque: int) -> bytes:
    """Return a ping."""
    return encode_frame(FrameType.PING, flags, 0, opaque)


def go_away(code: int) -> bytes:
    """Return a go-away frame."""
    return encode_frame(FrameType.GO_AWAY, 0, 0, code)


def serving(*streams: int) -> Session:
    """Return a server session with these streams of the client open and acknowledged."""
    session = Session(Role.SERVER)
    session.receive(b"".join(window(stream, SYN) for stream in streams))
    session.data_to_send()
    return session
