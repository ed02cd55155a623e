"""Frames: every header reads back, cut anywhere, and nothing is kept that was not admitted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import YamuxError
from rollouts_gwapi_plugin.wire.yamux.frame import (
    ACK,
    FIN,
    RST,
    SYN,
    Frame,
    FrameReader,
    FrameType,
    Header,
    describe_frames,
    encode_frame,
    parse_header,
)

HEADERS = st.builds(
    Header,
    type=st.sampled_from(FrameType),
    flags=st.integers(0, 2**16 - 1),
    stream=st.integers(0, 2**32 - 1),
    length=st.integers(0, 2**32 - 1),
)


def encode(frame: Frame) -> bytes:
    """Return a frame as it goes over the wire."""
    header = frame.header
    return encode_frame(header.type, header.flags, header.stream, header.length) + frame.body


@st.composite
def frames(draw: st.DrawFn) -> list[Frame]:
    """Draw frames whose data bodies fit their length."""
    result = []
    for header in draw(st.lists(HEADERS, max_size=5)):
        if header.type is FrameType.DATA:
            body = draw(st.binary(max_size=40))
            result.append(Frame(Header(header.type, header.flags, header.stream, len(body)), body))
        else:
            result.append(Frame(header))
    return result


@given(HEADERS)
def test_header_round_trip(header: Header) -> None:
    """A header reads back as it was written."""
    data = encode_frame(header.type, header.flags, header.stream, header.length)

    assert header == parse_header(data)


@given(frames(), st.data())
def test_reader_cut_anywhere(expected: list[Frame], data: st.DataObject) -> None:
    """Frames are the same wherever the bytes are cut."""
    raw = b"".join(encode(frame) for frame in expected)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=10)))
    reader = FrameReader(lambda _header: True)
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        reader.receive(raw[start:end])
        while (frame := reader.next_frame()) is not None:
            found.append(frame)

    assert expected == found


def test_reader_drops_what_is_not_admitted() -> None:
    """A body of 256 MiB that was not admitted is never held, and the frame after it is read."""
    reader = FrameReader(lambda header: header.stream != 7)
    length = 2**28
    reader.receive(encode_frame(FrameType.DATA, 0, 7, length))
    assert Frame(Header(FrameType.DATA, 0, 7, length)) == reader.next_frame()
    chunk = bytes(2**24)
    for _ in range(length // len(chunk)):
        reader.receive(chunk)
        assert reader.next_frame() is None
        assert not reader._buffer
    reader.receive(encode_frame(FrameType.PING, SYN, 0, 1))

    assert Frame(Header(FrameType.PING, SYN, 0, 1)) == reader.next_frame()


@pytest.mark.parametrize(("version", "kind"), [(1, 0), (0, 4), (71, 69)])
def test_header_of_another_protocol(version: int, kind: int) -> None:
    """A header with another version or an unknown type is refused."""
    with pytest.raises(YamuxError, match=r"does not speak yamux"):
        parse_header(bytes([version, kind]) + bytes(10))


def test_describe_names_type_and_flags() -> None:
    """Frames are described in the words of the captured sessions; an unknown flag is shown as its bit."""
    data = (
        encode_frame(FrameType.DATA, SYN | ACK, 1, 2)
        + b"hi"
        + encode_frame(FrameType.WINDOW_UPDATE, FIN | RST | 0x10, 3, 5)
        + encode_frame(FrameType.PING, 0, 0, 9)
        + encode_frame(FrameType.GO_AWAY, 0, 0, 1)
    )

    assert describe_frames(data) == [
        {"type": "data", "flags": ["SYN", "ACK"], "stream": 1, "length": 2},
        {"type": "window", "flags": ["FIN", "RST", "0x10"], "stream": 3, "length": 5},
        {"type": "ping", "flags": [], "stream": 0, "length": 9},
        {"type": "go-away", "flags": [], "stream": 0, "length": 1},
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (encode_frame(FrameType.PING, SYN, 0, 1) + b"\x09" * 12, "frame 1 at byte 12: .* version 9"),
        (encode_frame(FrameType.PING, SYN, 0, 1) + bytes(5), "frame 1 at byte 12: its header has 5 of 12 bytes"),
        (encode_frame(FrameType.DATA, 0, 1, 8) + bytes(5), "frame 0 ends at byte 20, but the input has only 17 bytes"),
    ],
    ids=["garbage", "half-header", "half-body"],
)
def test_describe_says_where_it_broke(data: bytes, message: str) -> None:
    """A stream that is broken or cut short is an error that names the frame and the byte."""
    with pytest.raises(YamuxError, match=message):
        describe_frames(data)


def test_describe_nothing() -> None:
    """No bytes are no frames."""
    assert describe_frames(b"") == []
