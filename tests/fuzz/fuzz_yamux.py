"""Fuzz target: any bytes to a yamux session give events or YamuxError, and never hold more than its limits."""

import contextlib

from rollouts_gwapi_plugin.errors import YamuxError
from rollouts_gwapi_plugin.wire.yamux import DataReceived, Role, Session, StreamFinished, describe_frames
from rollouts_gwapi_plugin.wire.yamux.window import INITIAL_WINDOW


def one_input(data: bytes) -> None:
    """Take the first byte as role and size of the pieces, the rest as what the peer sends."""
    first, rest = (data[0], data[1:]) if data else (0, b"")
    session = Session(Role.CLIENT if first & 1 else Role.SERVER)
    session.open()
    size = 1 + (first >> 1)
    with contextlib.suppress(YamuxError):
        describe_frames(rest)
    try:
        for start in range(0, len(rest), size):
            take(session, rest[start : start + size])
    except YamuxError:
        assert session.data_to_send()


def take(session: Session, piece: bytes) -> None:
    """Receive, read every second piece of data, and echo."""
    for event in session.receive(piece):
        if isinstance(event, DataReceived):
            if event.data[0] & 1:
                session.consumed(event.stream, len(event.data))
            if event.stream in session._streams and not session._streams[event.stream].finishing:
                session.send(event.stream, event.data)
        elif isinstance(event, StreamFinished) and event.stream in session._streams:
            session.finish(event.stream)
    session.data_to_send()
    assert len(session._reader._buffer) <= INITIAL_WINDOW + len(piece)
    assert len(session._streams) <= session._limits.peer_streams + 1
