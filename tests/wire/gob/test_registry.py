"""What a stream's types are kept as, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.varint import encode_int, encode_uint

EMPTY = b"\x03\x01\x02\xff\x80\x00\x00\x00"
SELF = gob.StructOf("Self")
SELF.fields = (gob.Field("Self", SELF), gob.Field("Map", gob.MapOf(gob.STRING, gob.ArrayOf(gob.SliceOf(SELF), 1))))


def message(number: int, rest: bytes) -> bytes:
    """Return a message about a type."""
    body = encode_int(number) + rest
    return encode_uint(len(body)) + body


def refusal(stream: bytes, *, strict: bool = False, limits: gob.Limits | None = None) -> str:
    """Return why a stream is refused."""
    decoder = gob.Decoder(strict=strict, limits=limits)
    decoder.receive(stream)
    with pytest.raises(GobError) as caught:
        list(iter(decoder.next_value, gob.NEED_DATA))
    return str(caught.value)


def test_read_when_needed() -> None:
    """A definition that no value needs is not read; where it is, the error says where it stands."""
    broken = message(-64, b"\x00")
    decoder = gob.Decoder()
    decoder.receive(broken + b"\x03\x04\x00\x02")

    assert decoder.next_value() == 1

    text = "at byte 2: a type definition of 0 kinds"
    assert refusal(broken, strict=True) == text
    assert refusal(broken + message(64, b"\x00")) == f"at byte 6: the definition of type 64 is broken {text}"


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        (EMPTY[:-1], "1 bytes wanted, 0 left"),
        (EMPTY + b"\x00", "1 bytes after a type definition"),
        (b"", "1 bytes wanted, 0 left"),
    ],
)
def test_broken_definition(rest: bytes, text: str) -> None:
    """A definition ends where its message ends."""
    assert refusal(message(-64, rest) + message(64, b"\x00")).endswith(text)


@pytest.mark.parametrize("strict", [False, True])
def test_missing_type(*, strict: bool) -> None:
    """A type that is named and nowhere defined is refused when a value needs it; if strict, before."""
    struct = message(-64, b"\x03\x01\x02\xff\x80\x00\x01\x01\x01\x01A\x01\xff\x82\x00\x00\x00")

    assert refusal(struct + message(64, b"\x01\x00\x00")).endswith("a value of type 65, which is not defined")
    decoder = gob.Decoder(strict=strict)
    decoder.receive(struct + message(64, b"\x00"))
    if strict:
        with pytest.raises(GobError, match="a value of type 65, which is not defined"):
            decoder.next_value()
    else:
        assert decoder.next_value() == {}


def test_strict_reads_all_kinds() -> None:
    """Strict reading follows fields, elements and keys, and ends where types go in a circle."""
    decoder = gob.Decoder(strict=True)
    decoder.receive(gob.Encoder().encode(SELF, {"Self": {"Self": {}}}))

    assert decoder.next_value() == {"Self": {"Self": {}}}


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (message(-63, EMPTY), "at byte 2: a definition of type 63; numbers below 64 are Go's own"),
        (message(-1, EMPTY), "at byte 2: a definition of type 1; numbers below 64 are Go's own"),
        (message(-64, EMPTY) * 2, "at byte 12: a second definition of type 64"),
    ],
)
def test_refused(stream: bytes, text: str) -> None:
    """A type is defined once, and Go's own are not."""
    assert refusal(stream) == text


def inside(definitions: bytes, rest: bytes = b"\x00") -> bytes:
    """Return an interface whose content's type is defined before it in the same message."""
    body = b"\x10\x00\x01a" + definitions + encode_int(64) + b"\x01" + rest
    return encode_uint(len(body)) + body


def test_defined_inside() -> None:
    """A definition in the midst of a message is followed by a length, then by the next one or the value."""
    first, second = encode_int(-64) + EMPTY + b"\x7f", encode_int(-65) + EMPTY + b"\x00"
    decoder = gob.Decoder()
    decoder.receive(inside(first + second))

    assert decoder.next_value() == gob.Interface("a", {})


@pytest.mark.parametrize(
    ("definitions", "text"),
    [
        ((encode_int(-64) + EMPTY + b"\x00") * 2, "at byte 16: a second definition of type 64"),
        (encode_int(-3) + EMPTY + b"\x00", "at byte 6: a definition of type 3; numbers below 64 are Go's own"),
    ],
)
def test_refused_inside(definitions: bytes, text: str) -> None:
    """A definition in the midst of a message is held to the same rules."""
    assert refusal(inside(definitions)) == text


def test_limits(go_style: Callable[[], Any]) -> None:
    """Types are limited in number and in bytes, wherever they are defined."""
    separate = message(-64, EMPTY) + message(-65, EMPTY)
    midst = inside(encode_int(-64) + EMPTY + b"\x00" + encode_int(-65) + EMPTY + b"\x00")
    for stream in (separate, midst):
        few, small = gob.Limits(types=1), gob.Limits(definition_bytes=12)

        assert refusal(stream, limits=few).endswith("more than 1 types")
        assert refusal(stream, limits=small).endswith("more than 12 bytes of type definitions")

    again = go_style().write(gob.INTERFACE, gob.Interface("a", {}, gob.EMPTY_STRUCT))
    decoder = gob.Decoder(limits=gob.Limits(types=1, definition_bytes=8))
    decoder.receive(again[:-1])
    assert decoder.next_value() is gob.NEED_DATA
    decoder.receive(again[-1:])
    assert decoder.next_value() == gob.Interface("a", {})
