"""Decoding whole streams: golden ones, drawn ones, broken ones, cut anywhere."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.notation import to_json

GOLDEN = Path(__file__).parents[1] / "golden"
STREAMS = sorted([*GOLDEN.glob("gob/*.bin"), *GOLDEN.glob("gob-extra/*.bin")])
CONNECTIONS = sorted([*GOLDEN.glob("rpc/*.bin"), *GOLDEN.glob("control/*.bin")])
BROKEN = sorted(GOLDEN.glob("gob-broken/*.bin"))
PIECES = [1, 2, 3, 5, 64, 4096, 1 << 30]


def name_of(path: Path) -> str:
    """Return how pytest shows a file."""
    return f"{path.parent.name}/{path.stem}"


def read(data: bytes, *, size: int = 1 << 30, strict: bool = False, limits: gob.Limits | None = None) -> list[Any]:
    """Return the values of a whole stream that comes in pieces."""
    decoder = gob.Decoder(strict=strict, limits=limits)
    values = list(feed(decoder, data, size))
    decoder.finish()
    return values


def feed(decoder: gob.Decoder, data: bytes, size: int) -> Iterator[Any]:
    """Yield the values that come out as the pieces go in."""
    for start in range(0, len(data), size):
        decoder.receive(data[start : start + size])
        while (value := decoder.next_value()) is not gob.NEED_DATA:
            yield value


def exact(value: Any) -> str:
    """Return the JSON of a value; unlike the value, it tells 1 from 1.0 and from True, and -0.0 from 0.0."""
    return json.dumps(value, sort_keys=True)


def meaning_in(path: Path) -> dict[str, Any]:
    """Return the JSON beside a golden file."""
    meaning: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    return meaning


@pytest.mark.parametrize("path", STREAMS, ids=name_of)
@pytest.mark.parametrize("strict", [False, True])
def test_golden_stream(path: Path, *, strict: bool) -> None:
    """What Go wrote means what Go meant."""
    expected = meaning_in(path)["values"]

    actual = [to_json(value) for value in read(path.read_bytes(), strict=strict)]

    assert exact(expected) == exact(actual)


@pytest.mark.parametrize("path", CONNECTIONS, ids=name_of)
def test_golden_connection(path: Path) -> None:
    """A net/rpc connection of the controller is a stream of headers and bodies."""
    expected = [part for call in meaning_in(path)["calls"] for part in (call["header"], call["body"])]

    actual = [to_json(value) for value in read(path.read_bytes())]

    assert exact(expected) == exact(actual)


@pytest.mark.parametrize("path", BROKEN, ids=name_of)
def test_golden_broken(path: Path) -> None:
    """A broken stream is refused with the documented place and reason."""
    with pytest.raises(GobError) as caught:
        read(path.read_bytes())

    assert str(caught.value).startswith(meaning_in(path)["error"])


@pytest.mark.parametrize("path", [path for path in STREAMS if path.stat().st_size < 5000], ids=name_of)
@pytest.mark.parametrize("size", PIECES[:-1])
def test_golden_cut(path: Path, size: int) -> None:
    """Where the bytes are cut makes no difference."""
    data = path.read_bytes()

    assert exact(list(map(to_json, read(data)))) == exact(list(map(to_json, read(data, size=size))))


@pytest.mark.parametrize("path", [path for path in STREAMS if path.stat().st_size < 1000], ids=name_of)
def test_golden_cut_short(path: Path) -> None:
    """A stream that ends early ends between two values, or is refused; there is never another value."""
    data = path.read_bytes()
    whole = [exact(to_json(value)) for value in read(data)]
    for end in range(len(data)):
        decoder = gob.Decoder(strict=True)
        values = [exact(to_json(value)) for value in feed(decoder, data[:end], 1 << 30)]

        assert values == whole[: len(values)]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_round_trip(data: st.DataObject, typed_values: st.SearchStrategy[Any], meaning_of: Callable[..., Any]) -> None:
    """What the encoder wrote is read back, but for the zeros in structs, in any pieces."""
    sent = data.draw(st.lists(typed_values, max_size=3))
    encoder = gob.Encoder()
    stream = b"".join(encoder.encode(go_type, value) for go_type, value in sent)
    expected = [exact(to_json(meaning_of(go_type, value))) for go_type, value in sent]

    size = data.draw(st.sampled_from(PIECES))

    assert expected == [exact(to_json(value)) for value in read(stream, size=size, strict=True)]
    assert expected == [exact(to_json(value)) for value in read(stream, size=size)]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_go_style(
    data: st.DataObject,
    typed_values: st.SearchStrategy[Any],
    meaning_of: Callable[..., Any],
    go_style: Callable[[], Any],
) -> None:
    """A value that defines types in its midst, and so spans messages, is read like one that does not."""
    sent = data.draw(st.lists(typed_values, max_size=3))
    writer = go_style()
    stream = b"".join(writer.write(go_type, value) for go_type, value in sent)
    expected = [exact(to_json(meaning_of(go_type, value))) for go_type, value in sent]

    size = data.draw(st.sampled_from(PIECES))

    assert expected == [exact(to_json(value)) for value in read(stream, size=size, strict=True)]
    assert expected == [exact(to_json(value)) for value in read(stream, size=size)]


@settings(deadline=None)
@given(data=st.binary(max_size=60))
def test_garbage(data: bytes) -> None:
    """Any bytes give values or GobError, and nothing else; a broken stream stays broken."""
    decoder = gob.Decoder()
    decoder.receive(data)
    try:
        while decoder.next_value() is not gob.NEED_DATA:
            pass
        decoder.finish()
    except GobError as error:
        again = error
    else:
        return
    if decoder._error is not None:
        with pytest.raises(GobError) as caught:
            decoder.next_value()
        assert caught.value is again
        with pytest.raises(GobError) as caught:
            decoder.finish()
        assert caught.value is again


def test_broken_stays_broken() -> None:
    """After an error every call gives the same error, also when good bytes come."""
    decoder = gob.Decoder()
    decoder.receive(b"\x00")
    with pytest.raises(GobError) as first:
        decoder.next_value()
    decoder.receive(b"\x03\x04\x00\x02")

    for call in (decoder.next_value, decoder.finish):
        with pytest.raises(GobError) as again:
            call()
        assert again.value is first.value


def test_need_data() -> None:
    """A value that has not come whole is NEED_DATA, which is not the nil interface."""
    decoder = gob.Decoder()

    assert decoder.next_value() is gob.NEED_DATA
    decoder.receive(b"\x03\x10\x00")
    assert decoder.next_value() is gob.NEED_DATA
    decoder.receive(b"\x00")
    assert decoder.next_value() is None
    assert decoder.next_value() is gob.NEED_DATA


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"\x00", "at byte 1: an empty message"),
        (b"\x02\x04\x00", "at byte 3: 1 bytes wanted, 0 left"),
        (b"\x04\x06\x00\x01\x01", "at byte 4: 1 bytes after the value"),
        (b"\x03\x00\x00\x01", "at byte 2: a value of type 0, which is not defined"),
        (b"\x04\xff\x80\x00\x01", "at byte 3: a value of type 64, which is not defined"),
        (b"\x03\x20\x00\x01", "at byte 2: a value of type 16, which is not defined"),
        (b"\x01\xff", "at byte 2: 1 bytes wanted, 0 left"),
        (b"\x02\xf8\x01", "at byte 2: 8 bytes wanted, 1 left"),
        (b"\xf7", "at byte 1: an integer of 9 bytes"),
        (b"\xfe\x01", "at byte 1: 2 bytes wanted, 1 left"),
        (b"\x05", "at byte 1: a message of 5 bytes, 0 left"),
        (b"\x04\x0a\x00\x05b", "at byte 4: 5 bytes wanted, 1 left"),
        (b"\x07\x10\x00\x01a\x10\x01\x00", "at byte 6: an interface in an interface"),
        (b"\x04\x10\x00\x05a", "at byte 4: 5 bytes wanted, 1 left"),
        (b"\x05\x10\x00\xfe\x04\x01", "at byte 6: a type name of 1025 bytes; 1024 are the most"),
        (b"\x07\x10\x00\x01a\x04\x02\x01", "at byte 8: a lone value must start with 0"),
    ],
)
def test_refused(stream: bytes, text: str) -> None:
    """Each fault is told with its place."""
    with pytest.raises(GobError) as caught:
        read(stream)

    assert str(caught.value) == text


def test_ends_after_definitions() -> None:
    """A stream that ends where a value has to follow is refused."""
    stream = gob.Encoder().encode(gob.EMPTY_STRUCT, {})

    with pytest.raises(GobError, match="the stream ends before the value for which types were defined"):
        read(stream[:-4])


def test_ends_inside_of_a_value(go_style: Callable[[], Any]) -> None:
    """A stream that ends between two messages of a value is refused."""
    stream = go_style().write(gob.INTERFACE, gob.Interface("Empty", {}, gob.EMPTY_STRUCT))

    assert read(stream) == [gob.Interface("Empty", {})]
    with pytest.raises(GobError, match="the stream ends before the value"):
        read(stream[: 1 + stream[0]])


def spanning(count: int, go_style: Callable[[], Any]) -> bytes:
    """Return a value of that many interfaces, each of a new type."""
    contents = [
        gob.Interface(f"T{n}", {"F": n}, gob.StructOf(f"T{n}", (gob.Field("F", gob.INT),))) for n in range(count)
    ]
    stream: bytes = go_style().write(gob.SliceOf(gob.INTERFACE), contents)
    return stream


def test_value_limit(go_style: Callable[[], Any]) -> None:
    """All messages of a value together are limited as one message is."""
    stream = spanning(50, go_style)

    assert len(read(stream, limits=gob.Limits(message_bytes=2000))[0]) == 50
    with pytest.raises(GobError, match="a value of more than 500 bytes"):
        read(stream, limits=gob.Limits(message_bytes=500))


def test_reread_limit(go_style: Callable[[], Any]) -> None:
    """A value that comes in many pieces can't make us read it over and over."""
    stream = spanning(50, go_style)
    limits = gob.Limits(reread_bytes=2000)

    assert len(read(stream, limits=limits)[0]) == 50
    with pytest.raises(GobError, match="takes too long to read"):
        read(stream, size=1, limits=limits)


def test_reads_again_only_for_more(go_style: Callable[[], Any]) -> None:
    """A value that waits for its next message is not read again before that has come whole."""
    stream = spanning(1, go_style)
    decoder = gob.Decoder()
    for byte in stream[:-1]:
        decoder.receive(bytes((byte,)))
        assert decoder.next_value() is gob.NEED_DATA

    assert decoder._reread < len(stream)


def test_message_limit() -> None:
    """A message over the limit is refused as soon as its length is known."""
    with pytest.raises(GobError, match="at byte 3: a message of 1001 bytes, 0 left; 1000 are the most"):
        read(b"\xfe\x03\xe9", limits=gob.Limits(message_bytes=1000))


def test_nesting_limit(node: gob.StructOf) -> None:
    """A value has no more levels than the limit, and never exhausts Python's."""
    value: dict[str, Any] = {}
    for _ in range(249):
        value = {"Next": value}
    stream = gob.Encoder().encode(node, value)

    assert read(stream) == [value]
    with pytest.raises(GobError, match="more than 100 levels"):
        read(stream, limits=gob.Limits(nesting=100))


@pytest.mark.parametrize(
    "element", [gob.EMPTY_STRUCT, gob.INTERFACE, gob.SliceOf(gob.INT), gob.MapOf(gob.INT, gob.INT), gob.BOOL]
)
def test_values_limit(element: gob.GoType) -> None:
    """The smallest elements are counted before they are built, since they grow most."""
    empty: dict[gob.GoType, Any] = {gob.INTERFACE: None, gob.BOOL: False, gob.SliceOf(gob.INT): []}
    stream = gob.Encoder().encode(gob.SliceOf(element), [empty.get(element, {})] * 50)
    limits = gob.Limits(values=49)

    assert len(read(stream)[0]) == 50
    with pytest.raises(GobError, match="more than 49 structs and elements in a value"):
        read(stream, limits=limits)
