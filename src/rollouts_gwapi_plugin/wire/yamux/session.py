"""A yamux session without a socket, in either role.

Takes the peer's bytes with `receive` and returns events; takes what its owner wants (`open`, `send`, `finish`, `reset`,
`ping`, `go_away`, and `consumed` for what was read); `data_to_send` has the bytes for the peer and is to be called and
written out after every other call. There is no clock and no lock: the owner keeps one mutex around it, pings when it
wants to know that the peer lives, and resets streams whose end does not come.

What must hold: events are the same wherever the peer's bytes were cut; the peer never makes us hold more than a window
a stream, and never more than the named limits; each stream of the peer's gets one ACK. A peer that breaks the rules
gets a go-away frame (still in `data_to_send`) and YamuxError is raised, then and from every later `receive`.
"""

import enum
from dataclasses import dataclass
from typing import Final

from rollouts_gwapi_plugin.errors import StreamClosedError, YamuxError
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
from rollouts_gwapi_plugin.wire.yamux.frame import (
    ACK,
    FIN,
    RST,
    SYN,
    Frame,
    FrameReader,
    FrameType,
    GoAwayCode,
    Header,
    encode_frame,
)
from rollouts_gwapi_plugin.wire.yamux.stream import Input, State, Stream

# The last id that the Go implementation hands out; ids are not used twice by an opener.
MAX_STREAM_ID: Final = 2**32 - 3


class Role(enum.Enum):
    """Which side we are; its value is the first stream id that we open."""

    CLIENT = 1
    SERVER = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """What a peer, or our own mistake, may make a session hold."""

    # The protocol's accept backlog: a Go host opens 3 streams and one a dispensed plugin; each may hold a window of
    # unread bytes, so this times 256 KiB is the most that a peer can park here. One more is answered with RST.
    peer_streams: int = 256
    # Ours that the peer has not acknowledged: a Go peer answers RST beyond its accept backlog.
    unacknowledged: int = 256
    # Bytes of one stream that wait for the peer's window. The largest thing sent is a Rollout in the host's role
    # (etcd keeps no object over 1.5 MiB; gob is not larger than JSON); replies are some hundred bytes.
    waiting_bytes: int = 8 * 1024 * 1024
    # Frames made for the peer (pongs, ACKs, RSTs) that the owner has not taken: it writes before it reads on, so
    # this is reached only by an owner that stopped writing.
    control_bytes: int = 1024 * 1024


class Session:
    """One side of a yamux connection."""

    def __init__(self, role: Role, *, limits: Limits | None = None) -> None:
        self.role = role
        self._limits = limits or Limits()
        self._reader = FrameReader(self._admit)
        self._streams: dict[int, Stream] = {}
        self._next_id = role.value
        self._pings: set[int] = set()
        self._output: list[bytes] = []
        self._control_bytes = 0
        self._events: list[Event] = []
        self._local_gone = False
        self._remote_gone = False
        self._failure: YamuxError | None = None

    # -- what comes in --------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[Event]:
        """Take bytes from the peer.

        Raises:
            YamuxError: the peer broke the protocol or a limit; write `data_to_send` and close the connection.

        """
        if self._failure is not None:
            raise self._failure
        self._reader.receive(data)
        try:
            while (frame := self._reader.next_frame()) is not None:
                self._handle(frame)
        except YamuxError as error:
            self._fail(error)
            raise
        events, self._events = self._events, []
        return events

    def _admit(self, header: Header) -> bool:
        """Judge a header before its body is kept: SYN is handled here, so that the stream is known."""
        if header.type not in {FrameType.DATA, FrameType.WINDOW_UPDATE}:
            return True
        if header.flags & SYN:
            self._accept(header.stream)
        stream = self._streams.get(header.stream)
        if stream is None or header.flags & RST:
            return False
        if header.body_length:
            try:
                stream.receive_window.received(header.body_length)
            except YamuxError as error:
                raise YamuxError(f"stream {stream.number}: {error}") from error
        return True

    def _handle(self, frame: Frame) -> None:
        header = frame.header
        if header.type is FrameType.PING:
            self._handle_ping(header)
        elif header.type is FrameType.GO_AWAY:
            self._handle_go_away(header)
        elif (stream := self._streams.get(header.stream)) is not None:
            self._handle_stream(stream, frame)

    def _handle_stream(self, stream: Stream, frame: Frame) -> None:
        flags = frame.header.flags
        if flags & RST:
            stream.move(Input.RECEIVE_RST)
            del self._streams[stream.number]
            self._events.append(StreamReset(stream.number))
            return
        if flags & ACK:
            stream.move(Input.RECEIVE_ACK)
        if frame.header.type is FrameType.WINDOW_UPDATE:
            self._credit(stream, frame.header.length)
        elif frame.body:
            self._deliver(stream, frame.body)
        if flags & FIN:
            stream.move(Input.RECEIVE_FIN)
            self._events.append(StreamFinished(stream.number))
        self._forget_if_over(stream)

    def _deliver(self, stream: Stream, body: bytes) -> None:
        late = stream.state is State.REMOTE_FINISHED
        stream.move(Input.RECEIVE_DATA)
        if not late:
            self._events.append(DataReceived(stream.number, body))

    def _credit(self, stream: Stream, count: int) -> None:
        try:
            stream.send_window.credit(count)
        except YamuxError as error:
            raise YamuxError(f"stream {stream.number}: {error}") from error
        if stream.waiting and count:
            self._flush(stream)
            if not stream.waiting:
                self._events.append(SendPossible(stream.number))

    def _accept(self, number: int) -> None:
        ours = number % 2 == self.role.value % 2
        if number == 0 or ours:
            raise YamuxError(f"the peer opened stream {number}, an id that is not the peer's to use")
        if number in self._streams:
            raise YamuxError(f"the peer opened stream {number} twice")
        peer_streams = sum(1 for known in self._streams if known % 2 == number % 2)
        if self._local_gone or peer_streams >= self._limits.peer_streams:
            self._control(FrameType.WINDOW_UPDATE, RST, number)
            return
        self._streams[number] = Stream(number, State.OPEN)
        self._control(FrameType.WINDOW_UPDATE, ACK, number)
        self._events.append(StreamOpened(number))

    def _handle_ping(self, header: Header) -> None:
        if header.flags & SYN:
            self._control(FrameType.PING, ACK, 0, header.length)
        elif header.length in self._pings:
            self._pings.remove(header.length)
            self._events.append(PingAnswered(header.length))

    def _handle_go_away(self, header: Header) -> None:
        if header.length > GoAwayCode.INTERNAL_ERROR:
            raise YamuxError(f"the peer went away with the unknown code {header.length}")
        self._remote_gone = True
        self._events.append(GoAwayReceived(header.length))

    # -- what goes out --------------------------------------------------------------------------------------------

    def data_to_send(self) -> bytes:
        """Return all bytes for the peer that its windows let out, once."""
        data = b"".join(self._output)
        self._output.clear()
        self._control_bytes = 0
        return data

    def open(self) -> int:
        """Open a stream and return its id; data may be sent at once.

        Raises:
            YamuxError: the session is over, the peer went away, or a limit is reached.

        """
        if self._failure is not None or self._remote_gone:
            raise YamuxError("no stream can be opened: the session is over or the peer went away")
        opening = sum(1 for stream in self._streams.values() if stream.state is State.OPENING)
        if opening >= self._limits.unacknowledged:
            raise YamuxError(f"no stream can be opened: the peer has not acknowledged {opening} yet")
        if self._next_id > MAX_STREAM_ID:
            raise YamuxError("no stream can be opened: all ids were used")
        number = self._next_id
        self._next_id += 2
        self._streams[number] = Stream(number, State.OPENING)
        self._put(FrameType.WINDOW_UPDATE, SYN, number)
        return number

    def send(self, stream: int, data: bytes) -> None:
        """Send bytes; what the peer's window has no room for waits.

        Raises:
            StreamClosedError: this stream can't be sent on; the session lives on.
            YamuxError: too much waits already.

        """
        found = self._writable(stream)
        if len(found.waiting) + len(data) > self._limits.waiting_bytes:
            raise YamuxError(
                f"stream {stream}: {len(found.waiting)} bytes wait for the peer's window, "
                f"{len(data)} more are over the limit of {self._limits.waiting_bytes}"
            )
        found.waiting += data
        self._flush(found)

    def finish(self, stream: int) -> None:
        """Send no more on this stream: FIN goes out after the bytes that wait.

        Raises:
            StreamClosedError: it was finished before, or is dead.

        """
        found = self._writable(stream)
        found.finishing = True
        self._flush(found)

    def reset(self, stream: int) -> None:
        """Kill a stream in both directions; what waits is dropped. A dead stream may be reset again."""
        found = self._streams.get(stream)
        if found is not None:
            found.move(Input.SEND_RST)
            self._put(FrameType.WINDOW_UPDATE, RST, stream)
            self._forget_if_over(found)

    def consumed(self, stream: int, count: int) -> None:
        """Report bytes of DataReceived as read; of a stream that is dead by now it means nothing."""
        found = self._streams.get(stream)
        if found is not None and (credit := found.receive_window.consumed(count)):
            self._put(FrameType.WINDOW_UPDATE, 0, stream, credit)

    def ping(self, opaque: int) -> None:
        """Ask the peer for a sign of life; PingAnswered has the same number."""
        self._pings.add(opaque)
        self._put(FrameType.PING, SYN, 0, opaque)

    def go_away(self, code: int = GoAwayCode.NORMAL) -> None:
        """Tell the peer to open no more streams; those that live go on."""
        self._local_gone = True
        self._put(FrameType.GO_AWAY, 0, 0, code)

    def _writable(self, number: int) -> Stream:
        stream = self._streams.get(number)
        if stream is None or stream.finishing:
            raise StreamClosedError(f"stream {number} is finished, dead or unknown: nothing can be sent on it")
        return stream

    def _flush(self, stream: Stream) -> None:
        granted = stream.send_window.take(len(stream.waiting))
        if granted:
            stream.move(Input.SEND_DATA)
            self._put(FrameType.DATA, 0, stream.number, granted)
            self._output.append(bytes(stream.waiting[:granted]))
            del stream.waiting[:granted]
        if stream.finishing and not stream.waiting:
            stream.move(Input.SEND_FIN)
            self._put(FrameType.WINDOW_UPDATE, FIN, stream.number)
            self._forget_if_over(stream)

    def _put(self, kind: FrameType, flags: int, stream: int, length: int = 0) -> None:
        self._output.append(encode_frame(kind, flags, stream, length))

    def _control(self, kind: FrameType, flags: int, stream: int, length: int = 0) -> None:
        """Queue a frame that the peer asked for."""
        frame = encode_frame(kind, flags, stream, length)
        self._control_bytes += len(frame)
        if self._control_bytes > self._limits.control_bytes:
            raise YamuxError(
                f"answers of over {self._limits.control_bytes} bytes wait to be written: the peer does not read",
                code=GoAwayCode.INTERNAL_ERROR,
            )
        self._output.append(frame)

    def _forget_if_over(self, stream: Stream) -> None:
        if stream.state in {State.CLOSED, State.RESET}:
            self._streams.pop(stream.number, None)

    def _fail(self, error: YamuxError) -> None:
        self._failure = error
        self._streams.clear()
        self._put(FrameType.GO_AWAY, 0, 0, error.code)
