"""What holds for any session: the same events wherever its bytes are cut, and all data arrives whole and in order."""

import itertools
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import StreamClosedError, YamuxError
from rollouts_gwapi_plugin.wire.yamux import DataReceived, Event, Role, Session, StreamFinished, StreamOpened
from rollouts_gwapi_plugin.wire.yamux.frame import FrameType, encode_frame

# Few streams and flags, so that frames meet each other.
FRAMES = st.one_of(
    st.builds(
        lambda flags, stream, body: encode_frame(FrameType.DATA, flags, stream, len(body)) + body,
        st.integers(0, 15),
        st.integers(0, 5),
        st.binary(max_size=30),
    ),
    st.builds(
        encode_frame,
        st.sampled_from([FrameType.WINDOW_UPDATE, FrameType.PING, FrameType.GO_AWAY]),
        st.integers(0, 15),
        st.integers(0, 5),
        st.integers(0, 4),
    ),
    st.binary(min_size=1, max_size=13),
)
Outcome = tuple[list[Event], str, bytes]


def outcome(role: Role, chunks: Iterable[bytes]) -> Outcome:
    """Return all events, the error or "", and all bytes for the peer."""
    session = Session(role)
    session.open()
    session.ping(1)
    events: list[Event] = []
    error = ""
    try:
        for chunk in chunks:
            events += session.receive(chunk)
    except YamuxError as caught:
        error = str(caught)
    return events, error, session.data_to_send()


def cut(raw: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Return the pieces of raw between the cuts."""
    return [raw[start:end] for start, end in itertools.pairwise([0, *sorted(cuts), len(raw)])]


@given(st.sampled_from(Role), st.lists(FRAMES, max_size=12).map(b"".join), st.data())
def test_cut_anywhere(role: Role, raw: bytes, draw: st.DataObject) -> None:
    """Any bytes, right or wrong, give the same events, error and answers wherever they are cut."""
    events, error, answers = outcome(role, (raw[i : i + 1] for i in range(len(raw))))
    cuts = draw.draw(st.lists(st.integers(0, len(raw)), max_size=8))
    cut_events, cut_error, cut_answers = outcome(role, cut(raw, cuts))

    assert error == cut_error
    assert answers == cut_answers
    # The events of the chunk that holds the mistake are not told, since the session is over.
    assert cut_events == (events[: len(cut_events)] if error else events)


class Pair:
    """A client and a server with a wire between them that holds bytes until they are moved."""

    def __init__(self) -> None:
        self.sides = {Role.CLIENT: Session(Role.CLIENT), Role.SERVER: Session(Role.SERVER)}
        self.sent: dict[tuple[Role, int], bytes] = {}
        self.received: dict[tuple[Role, int], bytes] = {}
        self.finished: set[tuple[Role, int]] = set()
        self.known: list[tuple[Role, int]] = []

    def move(self, source: Role, size: int) -> None:
        """Carry what a side wrote to the other, in pieces of a size."""
        target = Role.SERVER if source is Role.CLIENT else Role.CLIENT
        raw = self.sides[source].data_to_send()
        for start in range(0, len(raw), size):
            for event in self.sides[target].receive(raw[start : start + size]):
                if isinstance(event, StreamOpened):
                    self.known.append((target, event.stream))
                elif isinstance(event, DataReceived):
                    key = (source, event.stream)
                    self.received[key] = self.received.get(key, b"") + event.data
                    self.sides[target].consumed(event.stream, len(event.data))
                elif isinstance(event, StreamFinished):
                    self.finished.add((source, event.stream))

    def settle(self) -> None:
        """Carry until nobody has anything to say."""
        while any(side._output for side in self.sides.values()):
            for role in Role:
                self.move(role, 65536)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.sampled_from(Role)),
        st.tuples(st.just("send"), st.integers(0, 7), st.sampled_from([1, 100, 70_000, 300_000])),
        st.tuples(st.just("finish"), st.integers(0, 7)),
        st.tuples(st.just("move"), st.sampled_from(Role), st.sampled_from([1000, 4096, 65536])),
    ),
    max_size=40,
)


def act(pair: Pair, name: str, arguments: tuple[object, ...]) -> None:
    """Do one action; one on a stream that is finished is refused by the session."""
    if name == "move":
        pair.move(*arguments)  # type: ignore[arg-type]  # drawn as (Role, int)
    elif name == "open":
        role = Role(arguments[0])
        pair.known.append((role, pair.sides[role].open()))
    elif pair.known:
        role, stream = pair.known[int(str(arguments[0])) % len(pair.known)]
        try:
            if name == "finish":
                pair.sides[role].finish(stream)
            else:
                data = bytes([stream]) * int(str(arguments[1]))
                pair.sides[role].send(stream, data)
                pair.sent[role, stream] = pair.sent.get((role, stream), b"") + data
        except StreamClosedError:
            pass


@given(ACTIONS)
def test_all_data_arrives(actions: list[tuple[str, object]]) -> None:
    """Whatever both sides do, no rule is broken, and all that was sent arrives, whole and in order."""
    pair = Pair()
    for name, *arguments in actions:
        act(pair, name, tuple(arguments))
    pair.settle()

    assert pair.sent == {key: data for key, data in pair.received.items() if data}
    assert not any(stream.waiting for side in pair.sides.values() for stream in side._streams.values())
