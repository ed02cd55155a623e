"""Frames of yamux: twelve bytes of header, and a body on data frames only.

`FrameReader` takes bytes as they come and gives one whole frame at a time, or None for "not yet". It asks its caller
about each header before it keeps one byte of the body, so a peer can't make it hold more than the caller has admitted;
a body that was not admitted is counted off and dropped. Frames are the same wherever the bytes were cut.
"""

import enum
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rollouts_gwapi_plugin.errors import YamuxError

HEADER: Final = struct.Struct(">BBHII")
VERSION: Final = 0

# Flags are plain integers: enum.IntFlag costs more than all else that is done with a small frame.
SYN: Final = 1
ACK: Final = 2
FIN: Final = 4
RST: Final = 8

_FLAG_NAMES: Final = {SYN: "SYN", ACK: "ACK", FIN: "FIN", RST: "RST"}
_FLAG_BITS: Final = 16


class FrameType(enum.IntEnum):
    """What a frame is; `length` in the header means something else in each."""

    DATA = 0
    WINDOW_UPDATE = 1
    PING = 2
    GO_AWAY = 3


class GoAwayCode(enum.IntEnum):
    """Why a peer ends the session."""

    NORMAL = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2


_TYPE_NAMES: Final = {
    FrameType.DATA: "data",
    FrameType.WINDOW_UPDATE: "window",
    FrameType.PING: "ping",
    FrameType.GO_AWAY: "go-away",
}


@dataclass(frozen=True, slots=True)
class Header:
    """A frame's header; `length` is body bytes, credit, opaque value or go-away code, by type."""

    type: FrameType
    flags: int
    stream: int
    length: int

    @property
    def body_length(self) -> int:
        """How many bytes follow the header."""
        return self.length if self.type is FrameType.DATA else 0

    def describe(self) -> dict[str, object]:
        """Return it in the notation of captured sessions."""
        return {
            "type": _TYPE_NAMES[self.type],
            "flags": [_FLAG_NAMES.get(1 << bit, hex(1 << bit)) for bit in range(_FLAG_BITS) if self.flags >> bit & 1],
            "stream": self.stream,
            "length": self.length,
        }


@dataclass(frozen=True, slots=True)
class Frame:
    """A header with its body; the body is empty where it was not admitted."""

    header: Header
    body: bytes = b""


def encode_frame(kind: FrameType, flags: int, stream: int, length: int) -> bytes:
    """Return a header; the body of a data frame is written after it."""
    return HEADER.pack(VERSION, kind, flags, stream, length)


def parse_header(data: bytes | bytearray, offset: int = 0) -> Header:
    """Read the twelve bytes at `offset`.

    Raises:
        YamuxError: the version or the type is not yamux's.

    """
    version, kind, flags, stream, length = HEADER.unpack_from(data, offset)
    if version != VERSION:
        raise YamuxError(f"a yamux frame has version {version}, expected {VERSION}: the peer does not speak yamux")
    if kind > FrameType.GO_AWAY:
        raise YamuxError(f"a yamux frame has the unknown type {kind}: the peer does not speak yamux")
    return Header(FrameType(kind), flags, stream, length)


class FrameReader:
    """Frames out of bytes cut anywhere."""

    def __init__(self, admit: Callable[[Header], bool]) -> None:
        """Take the judge of headers: asked once a frame whether to keep its body, it may raise YamuxError."""
        self._admit = admit
        self._buffer = bytearray()
        self._header: Header | None = None
        self._to_skip = 0

    def receive(self, data: bytes) -> None:
        """Take bytes; call `next_frame` until it returns None after each."""
        self._buffer += data

    def next_frame(self) -> Frame | None:
        """Return the next whole frame, or None if more bytes are needed.

        A frame whose body was not admitted is returned with its header; its body is dropped as it comes.
        """
        header = self._header
        if header is None:
            self._drop_skipped()
            if self._to_skip or len(self._buffer) < HEADER.size:
                return None
            header = parse_header(self._buffer)
            admitted = self._admit(header)
            del self._buffer[: HEADER.size]
            if not admitted:
                self._to_skip = header.body_length
                return Frame(header)
            self._header = header
        if len(self._buffer) < header.body_length:
            return None
        self._header = None
        return Frame(header, self._take(header.body_length))

    def _drop_skipped(self) -> None:
        dropped = min(self._to_skip, len(self._buffer))
        del self._buffer[:dropped]
        self._to_skip -= dropped

    def _take(self, count: int) -> bytes:
        body = bytes(self._buffer[:count])
        del self._buffer[:count]
        return body


def describe_frames(data: bytes) -> list[dict[str, object]]:
    """Return the frames of one direction's bytes as `type`, `flags`, `stream` and `length`.

    Raises:
        YamuxError: where and why the bytes are not whole frames.

    """
    reader = FrameReader(lambda _header: False)
    reader.receive(data)
    frames: list[dict[str, object]] = []
    offset = 0
    try:
        while (frame := reader.next_frame()) is not None:
            frames.append(frame.header.describe())
            offset += HEADER.size + frame.header.body_length
    except YamuxError as error:
        raise YamuxError(f"frame {len(frames)} at byte {offset}: {error}") from error
    if offset > len(data):
        raise YamuxError(
            f"the body of frame {len(frames) - 1} ends at byte {offset}, "
            f"but the input has only {len(data)} bytes: it is cut short"
        )
    if offset < len(data):
        raise YamuxError(
            f"frame {len(frames)} at byte {offset}: its header has {len(data) - offset} of {HEADER.size} bytes"
        )
    return frames
