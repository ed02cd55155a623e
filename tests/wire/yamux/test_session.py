"""A session in both roles: streams, windows, pings, ends, limits, and every rule that a peer can break."""

from collections.abc import Callable

import pytest
from tests.wire.yamux.frames import WINDOW, data, ping, serving, window

from rollouts_gwapi_plugin.errors import StreamClosedError, YamuxError
from rollouts_gwapi_plugin.wire.yamux import (
    DataReceived,
    Event,
    Limits,
    Role,
    SendPossible,
    Session,
    StreamFinished,
    StreamOpened,
    StreamReset,
)
from rollouts_gwapi_plugin.wire.yamux.frame import ACK, FIN, RST, SYN
from rollouts_gwapi_plugin.wire.yamux.session import MAX_STREAM_ID
from rollouts_gwapi_plugin.wire.yamux.stream import Input, State

# -- opening ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "ids"), [(Role.CLIENT, [1, 3, 5]), (Role.SERVER, [2, 4, 6])])
def test_open_uses_ids_of_the_role(role: Role, ids: list[int]) -> None:
    """The client opens odd ids, the server even ones, each with a window update that carries SYN."""
    session = Session(role)

    assert ids == [session.open() for _ in ids]
    assert session.data_to_send() == b"".join(window(stream, SYN) for stream in ids)


@pytest.mark.parametrize(
    ("raw", "events"),
    [
        (window(1, SYN), [StreamOpened(1)]),
        (data(1, b"hi", SYN), [StreamOpened(1), DataReceived(1, b"hi")]),
        (data(1, b"", SYN | FIN), [StreamOpened(1), StreamFinished(1)]),
        (window(1, SYN | RST), [StreamOpened(1), StreamReset(1)]),
    ],
    ids=["window", "data", "fin", "rst"],
)
def test_accept_answers_one_ack(raw: bytes, events: list[Event]) -> None:
    """A SYN on any frame opens the stream and is answered by exactly one ACK, of length 0."""
    session = Session(Role.SERVER)

    assert events == session.receive(raw)
    assert session.data_to_send() == window(1, ACK)
    if StreamReset(1) not in events:
        session.send(1, b"x")
        assert session.data_to_send() == data(1, b"x")


def test_syn_with_credit_enlarges_the_window() -> None:
    """Credit on a SYN counts: a peer with larger windows says so there."""
    session = Session(Role.SERVER)
    session.receive(window(1, SYN, 5))
    session.data_to_send()
    session.send(1, bytes(WINDOW + 6))

    assert session.data_to_send() == data(1, bytes(WINDOW + 5))


def test_peer_streams_are_limited() -> None:
    """The stream over the limit is answered with RST, its data is skipped, and one that ends makes room."""
    session = Session(Role.SERVER)
    session.receive(b"".join(window(2 * n + 1, SYN) for n in range(256)))
    session.data_to_send()

    assert session.receive(data(601, b"lost", SYN)) == []
    assert session.data_to_send() == window(601, RST)
    session.receive(window(1, RST))
    assert session.receive(window(603, SYN)) == [StreamOpened(603)]


def test_own_streams_do_not_count_for_the_peer() -> None:
    """Only what the peer opened counts against its limit."""
    session = Session(Role.SERVER, limits=Limits(peer_streams=1))
    session.open()

    assert session.receive(window(1, SYN)) == [StreamOpened(1)]


def test_unacknowledged_streams_are_limited() -> None:
    """Opening waits for ACKs: the 257th stream is refused until one was acknowledged."""
    session = Session(Role.CLIENT)
    for _ in range(256):
        session.open()

    with pytest.raises(YamuxError, match="has not acknowledged 256 yet"):
        session.open()
    session.receive(window(1, ACK))
    assert session.open() == 513


def test_ids_end() -> None:
    """When all ids were used there is an error, not a second use."""
    session = Session(Role.CLIENT)
    session._next_id = MAX_STREAM_ID

    assert session.open() == MAX_STREAM_ID
    with pytest.raises(YamuxError, match="all ids were used"):
        session.open()


def test_second_ack_is_tolerated() -> None:
    """ACKs too many change nothing, on streams of either side."""
    session = Session(Role.CLIENT)
    session.open()

    assert session.receive(window(1, ACK) * 2 + window(2, SYN) + window(2, ACK)) == [StreamOpened(2)]


# -- data and windows ---------------------------------------------------------------------------------------------


def test_data_over_the_window_waits() -> None:
    """What the window has no room for goes out with the credit, in order, and then SendPossible is told."""
    session = serving(1)
    payload = bytes(range(256)) * 1024 + b"12345"
    session.send(1, payload)
    session.finish(1)

    assert session.data_to_send() == data(1, payload[:WINDOW])
    assert session.receive(window(1, 0, 3)) == []
    assert session.data_to_send() == data(1, b"123")
    assert session.receive(window(1, 0, 3)) == [SendPossible(1)]
    assert session.data_to_send() == data(1, b"45") + window(1, FIN)


def test_waiting_bytes_are_limited() -> None:
    """Sending on without the peer's credit ends in an error at the limit; the session lives on."""
    session = Session(Role.CLIENT, limits=Limits(waiting_bytes=WINDOW + 10))
    stream = session.open()
    session.send(stream, bytes(WINDOW))
    session.send(stream, bytes(WINDOW + 10))

    with pytest.raises(YamuxError, match="1 more are over the limit of 262154"):
        session.send(stream, b"x")
    assert session.receive(window(stream, ACK, WINDOW)) == []
    session.send(stream, b"x")


def test_credit_after_half() -> None:
    """Credit goes out when half of the window was read, for all that was read."""
    session = serving(1)
    session.receive(data(1, bytes(WINDOW)))
    session.consumed(1, WINDOW // 2 - 1)
    assert session.data_to_send() == b""
    session.consumed(1, 1)

    assert session.data_to_send() == window(1, 0, WINDOW // 2)


def test_consumed_of_a_dead_stream() -> None:
    """Reading on what a dead stream had sent is no error."""
    session = serving(1)
    session.receive(data(1, b"abc") + window(1, RST))
    session.consumed(1, 3)

    assert session.data_to_send() == b""


def test_data_behind_fin_is_dropped() -> None:
    """A Go writer that races with its Close puts data behind FIN: no event, no end of the session."""
    session = serving(1)

    assert session.receive(window(1, FIN) + data(1, b"late")) == [StreamFinished(1)]
    assert session.receive(ping(SYN, 1)) == []


def test_empty_data_is_no_event() -> None:
    """A data frame without a body brings only its flags."""
    assert serving(1).receive(data(1, b"") + data(1, b"", FIN)) == [StreamFinished(1)]


# -- ends of a stream ---------------------------------------------------------------------------------------------


def test_half_close() -> None:
    """After our FIN we still receive; after both the stream is gone and its frames are skipped."""
    session = serving(1)
    session.finish(1)

    assert session.data_to_send() == window(1, FIN)
    assert session.receive(data(1, b"still")) == [DataReceived(1, b"still")]
    assert session.receive(data(1, b"end", FIN)) == [DataReceived(1, b"end"), StreamFinished(1)]
    assert session.receive(data(1, b"?") + window(1, FIN)) == []


def test_peer_finishes_first() -> None:
    """After the peer's FIN we still send; ours ends the stream, so that its id is free."""
    session = serving(1)
    session.receive(window(1, FIN))
    session.send(1, b"answer")
    session.finish(1)

    assert session.data_to_send() == data(1, b"answer") + window(1, FIN)
    assert session.receive(window(1, SYN)) == [StreamOpened(1)]


def test_credit_and_fin_in_one_frame() -> None:
    """The last credit and the peer's FIN in one frame let our rest and our FIN out, and end the stream."""
    session = serving(1)
    session.send(1, bytes(WINDOW + 1))
    session.finish(1)
    session.data_to_send()

    assert session.receive(window(1, FIN, 9)) == [SendPossible(1), StreamFinished(1)]
    assert session.data_to_send() == data(1, b"\0") + window(1, FIN)
    assert session._streams == {}


def test_reset_drops_what_waits() -> None:
    """Our reset sends RST, drops what waits and forgets the stream; resetting again does nothing."""
    session = serving(1)
    session.send(1, bytes(WINDOW + 1))
    session.data_to_send()
    session.reset(1)
    session.reset(1)

    assert session.data_to_send() == window(1, RST)
    assert session._streams == {}
    assert session.receive(data(1, b"?")) == []


def test_peer_resets() -> None:
    """The peer's RST is told once, whatever else the frame says, and its body is skipped."""
    session = serving(1)

    assert session.receive(data(1, b"body", RST | FIN | ACK) + window(1, RST)) == [StreamReset(1)]


@pytest.mark.parametrize("end", ["finish", "reset", "peer-reset", "unknown"])
@pytest.mark.parametrize("act", [lambda s: s.send(1, b"x"), lambda s: s.finish(1)], ids=["send", "finish"])
def test_sending_on_a_finished_stream(end: str, act: Callable[[Session], None]) -> None:
    """Sending on a stream that ended is an error of that stream only."""
    session = serving(*[] if end == "unknown" else [1])
    if end == "finish":
        session.finish(1)
    elif end == "reset":
        session.reset(1)
    elif end == "peer-reset":
        session.receive(window(1, RST))

    with pytest.raises(StreamClosedError, match="stream 1"):
        act(session)


def test_frames_of_unknown_streams_are_skipped() -> None:
    """Frames for streams that nobody opened are skipped with their bodies, also one over any window."""
    session = Session(Role.SERVER)
    big = data(9, bytes(WINDOW + 1))

    assert session.receive(big + window(9, ACK | FIN, 7) + data(0, b"x") + window(1, SYN)) == [StreamOpened(1)]


# -- every pair of state and input, over the wire --------------------------------------------------------------------


def close(session: Session) -> None:
    """End stream 1 from both sides."""
    session.finish(1)
    session.receive(window(1, ACK | FIN))


REACH: dict[State, Callable[[Session], object]] = {
    State.OPENING: lambda _session: None,
    State.OPEN: lambda session: session.receive(window(1, ACK)),
    State.LOCAL_FINISHED: lambda session: session.finish(1),
    State.REMOTE_FINISHED: lambda session: session.receive(window(1, ACK | FIN)),
    State.CLOSED: close,
    State.RESET: lambda session: session.reset(1),
}
ACTS: dict[Input, Callable[[Session], object]] = {
    Input.RECEIVE_ACK: lambda session: session.receive(window(1, ACK)),
    Input.RECEIVE_DATA: lambda session: session.receive(data(1, b"x")),
    Input.RECEIVE_FIN: lambda session: session.receive(window(1, FIN)),
    Input.RECEIVE_RST: lambda session: session.receive(window(1, RST)),
    Input.SEND_DATA: lambda session: session.send(1, b"x"),
    Input.SEND_FIN: lambda session: session.finish(1),
    Input.SEND_RST: lambda session: session.reset(1),
}
LIVE: list[Event] = []
DATA, FINISHED, DEAD = [DataReceived(1, b"x")], [StreamFinished(1)], [StreamReset(1)]
# What each act returns in each state: events, None for sending acts, or the error.
OUTCOMES: dict[State, list[object]] = {
    #              ACK   DATA  FIN         RST    send DATA          send FIN           send RST
    State.OPENING: [LIVE, DATA, FINISHED, DEAD, None, None, None],
    State.OPEN: [LIVE, DATA, FINISHED, DEAD, None, None, None],
    State.LOCAL_FINISHED: [LIVE, DATA, FINISHED, DEAD, StreamClosedError, StreamClosedError, None],
    State.REMOTE_FINISHED: [LIVE, LIVE, YamuxError, DEAD, None, None, None],
    State.CLOSED: [LIVE, LIVE, LIVE, LIVE, StreamClosedError, StreamClosedError, None],
    State.RESET: [LIVE, LIVE, LIVE, LIVE, StreamClosedError, StreamClosedError, None],
}


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("cause", list(Input))
def test_every_state_and_input(state: State, cause: Input) -> None:
    """In every state each input gives the events of the matrix, or the error of the side that made the mistake."""
    session = Session(Role.CLIENT)
    session.open()
    REACH[state](session)
    expected = OUTCOMES[state][list(Input).index(cause)]
    if isinstance(expected, type) and issubclass(expected, YamuxError):
        with pytest.raises(YamuxError) as caught:
            ACTS[cause](session)
        assert expected is caught.type
    else:
        assert expected == ACTS[cause](session)
