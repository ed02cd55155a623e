"""Pings, go-away, and every rule whose breach ends a session."""

import pytest
from tests.wire.yamux.frames import WINDOW, data, go_away, ping, serving, window

from rollouts_gwapi_plugin.errors import YamuxError
from rollouts_gwapi_plugin.wire.yamux import (
    DataReceived,
    GoAwayReceived,
    Limits,
    PingAnswered,
    Role,
    Session,
    describe_frames,
)
from rollouts_gwapi_plugin.wire.yamux.frame import ACK, FIN, RST, SYN, FrameType, encode_frame


def test_ping_is_answered() -> None:
    """A ping is answered with ACK and its number."""
    session = Session(Role.SERVER)

    assert session.receive(ping(SYN, 0xDEADBEEF)) == []
    assert session.data_to_send() == ping(ACK, 0xDEADBEEF)


def test_own_ping() -> None:
    """The answer to a ping of ours is told once; an answer to none is skipped."""
    session = Session(Role.CLIENT)
    session.ping(7)

    assert session.data_to_send() == ping(SYN, 7)
    assert session.receive(ping(ACK, 8) + ping(ACK, 7) + ping(ACK, 7)) == [PingAnswered(7)]


@pytest.mark.parametrize("code", [0, 1, 2])
def test_peer_goes_away(code: int) -> None:
    """After the peer's go-away no stream can be opened, and those that live go on."""
    session = serving(1)

    assert session.receive(go_away(code) + data(1, b"x")) == [GoAwayReceived(code), DataReceived(1, b"x")]
    with pytest.raises(YamuxError, match="went away"):
        session.open()


def test_we_go_away() -> None:
    """After our go-away new streams are answered with RST, and those that live go on."""
    session = serving(1)
    session.go_away()

    assert session.receive(window(3, SYN) + data(1, b"x")) == [DataReceived(1, b"x")]
    assert session.data_to_send() == go_away(0) + window(3, RST)


VIOLATIONS = {
    "version": (b"\x01" + bytes(11), "version 1", 1),
    "type": (b"\x00\x04" + bytes(10), "unknown type 4", 1),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\xcd", "does not speak yamux", 1),
    "http": (b"GET / HTTP/1.1\r\n", "does not speak yamux", 1),
    "stream-0": (window(0, SYN), "opened stream 0", 1),
    "our-id": (window(2, SYN), "opened stream 2", 1),
    "twice": (window(1, SYN), "opened stream 1 twice", 1),
    "fin-twice": (window(1, FIN) * 2, "stream 1: RECEIVE_FIN in state REMOTE_FINISHED", 1),
    "window": (encode_frame(FrameType.DATA, 0, 1, WINDOW + 1), "stream 1: 262145 bytes came where", 1),
    "credit": (window(1, 0, 2**32 - 1), "stream 1: credit of 4294967295", 1),
    "go-away": (go_away(3), "unknown code 3", 1),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_violation(name: str) -> None:
    """A broken rule ends the session: an error that says what came, a go-away for the peer, the same error after."""
    raw, message, code = VIOLATIONS[name]
    session = serving(1)

    with pytest.raises(YamuxError, match=message) as caught:
        session.receive(raw)
    assert code == caught.value.code
    assert describe_frames(session.data_to_send())[-1] == {
        "type": "go-away",
        "flags": [],
        "stream": 0,
        "length": code,
    }
    with pytest.raises(YamuxError, match=message):
        session.receive(window(3, SYN))
    with pytest.raises(YamuxError, match="session is over"):
        session.open()


def test_peer_that_never_reads() -> None:
    """Answers that the owner can't write are bounded: pings beyond it end the session with an internal error."""
    session = Session(Role.SERVER, limits=Limits(control_bytes=120))
    session.receive(ping(SYN, 1) * 10)
    session.data_to_send()
    session.receive(ping(SYN, 1) * 10)

    with pytest.raises(YamuxError, match="does not read") as caught:
        session.receive(ping(SYN, 1))
    assert caught.value.code == 2


def test_window_overrun_is_refused_before_its_body() -> None:
    """A frame over the window is refused at its header: none of the body is held."""
    session = serving(1)
    session.receive(data(1, bytes(WINDOW)))

    with pytest.raises(YamuxError, match="1 bytes came where the window had 0 left"):
        session.receive(encode_frame(FrameType.DATA, 0, 1, 1))
