"""Sessions that a Go host had with a Go plugin: read, and made again byte by byte, in both roles."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.wire.yamux import (
    DataReceived,
    Event,
    Role,
    SendPossible,
    Session,
    StreamFinished,
    StreamOpened,
    describe_frames,
)

Frames = list[dict[str, Any]]


def direction(capture: Frames, name: str) -> bytes:
    """Return all bytes of one direction."""
    return b"".join(frame["header"] + frame["body"] for frame in capture if frame["dir"] == name)


def read_all(session: Session, data: bytes) -> list[Event]:
    """Receive, and report all data as read at once."""
    events = session.receive(data)
    for event in events:
        if isinstance(event, DataReceived):
            session.consumed(event.stream, len(event.data))
    return events


def play(session: Session, frame: dict[str, Any]) -> None:
    """Have the session do what made this frame; ACKs and credit come by themselves."""
    if frame["type"] == "data":
        session.send(frame["stream"], frame["body"])
    elif frame["flags"] == ["SYN"]:
        assert session.open() == frame["stream"]
    elif frame["flags"] == ["FIN"]:
        session.finish(frame["stream"])


@pytest.mark.parametrize(("role", "own"), [(Role.CLIENT, "c2s"), (Role.SERVER, "s2c")])
def test_made_again(capture: Frames, role: Role, own: str) -> None:
    """Either role, given the other's frames in the order of the capture, writes exactly the captured bytes."""
    session = Session(role)
    written = b""
    for frame in capture:
        if frame["dir"] == own:
            play(session, frame)
        else:
            read_all(session, frame["header"] + frame["body"])
        written += session.data_to_send()

    assert direction(capture, own) == written


def test_read_as_server(capture: Frames) -> None:
    """The events of the host's bytes are its frames: streams opened, all data in order, streams finished."""
    session = Session(Role.SERVER)
    events: list[Event] = []
    expected: list[Event] = []
    for frame in capture:
        if frame["dir"] == "s2c":
            continue
        events += read_all(session, frame["header"] + frame["body"])
        if frame["type"] == "data":
            expected.append(DataReceived(frame["stream"], frame["body"]))
        elif frame["flags"]:
            kind = StreamOpened if frame["flags"] == ["SYN"] else StreamFinished
            expected.append(kind(frame["stream"]))
    assert expected == events


@pytest.mark.parametrize("name", ["c2s", "s2c"])
def test_described(capture: Frames, name: str) -> None:
    """The description of a direction's bytes is that of the capture."""
    expected = [
        {key: frame[key] for key in ("type", "flags", "stream", "length")} for frame in capture if frame["dir"] == name
    ]

    assert expected == describe_frames(direction(capture, name))


def test_whole_request_at_once(capture: Frames) -> None:
    """All that the host had to say on its plugin stream, sent at once, is the same bytes cut by the window."""
    whole = b"".join(frame["body"] for frame in capture if frame["dir"] == "c2s" and frame["stream"] == 7)
    client, server = Session(Role.CLIENT), Session(Role.SERVER)
    stream = client.open()
    client.send(stream, whole)
    received, events = b"", list[Event]()
    while data := client.data_to_send():
        received += b"".join(event.data for event in read_all(server, data) if isinstance(event, DataReceived))
        events += client.receive(server.data_to_send())

    assert whole == received
    assert (SendPossible(stream) in events) == (len(whole) > 256 * 1024)
