"""What a peer can make us allocate: a small multiple of what it sends, and never more than the limits."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.varint import encode_int, encode_uint

BYTES = 30_000
# An empty dict in a list is 72 bytes, a dict with one field 200, and a list grows by an eighth more than it needs.
TIMES = 100
EMPTY = gob.EMPTY_STRUCT
ONE = gob.StructOf("One", (gob.Field("F", gob.INT),))
WIDE = gob.StructOf("Wide", tuple(gob.Field(f"F{number}", EMPTY) for number in range(100)))
SHAPES: list[tuple[str, gob.GoType, bytes]] = [
    ("empty structs", gob.SliceOf(EMPTY), b"\x00"),
    ("structs of a field", gob.SliceOf(ONE), b"\x01\x02\x00"),
    ("structs of empty structs", gob.SliceOf(WIDE), b"\x01\x00" * 100 + b"\x00"),
    ("nil interfaces", gob.SliceOf(gob.INTERFACE), b"\x00"),
    ("interfaces", gob.SliceOf(gob.INTERFACE), b"\x01a\x04\x02\x00\x02"),
    ("empty slices", gob.SliceOf(gob.SliceOf(gob.INT)), b"\x00"),
    ("empty maps", gob.SliceOf(gob.MapOf(gob.INT, gob.INT)), b"\x00"),
    ("bools", gob.SliceOf(gob.BOOL), b"\x01"),
    ("floats", gob.SliceOf(gob.FLOAT), b"\x01"),
    ("opaque values", gob.SliceOf(gob.OpaqueOf("T")), b"\x00"),
    ("empty arrays", gob.SliceOf(gob.ArrayOf(gob.INT, 0)), b"\x00"),
]


def streams() -> Iterator[Any]:
    """Yield a stream of each shape, as large as it has to be."""
    for name, go_type, element in SHAPES:
        count = BYTES // len(element)
        encoder = gob.Encoder()
        number = encoder._number(go_type)
        body = encode_int(number) + b"\x00" + encode_uint(count) + element * count
        yield pytest.param(bytes(encoder._definitions) + encode_uint(len(body)) + body, id=name)


def peak(stream: bytes, *, strict: bool = False) -> int:
    """Return the most bytes that were allocated at once for reading a stream."""
    tracemalloc.start()
    try:
        decoder = gob.Decoder(strict=strict)
        decoder.receive(stream)
        kept = list(iter(decoder.next_value, gob.NEED_DATA))
        del kept
        return tracemalloc.get_traced_memory()[1]
    except GobError:
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("stream", list(streams()))
def test_small_elements(stream: bytes) -> None:
    """Even the smallest elements take a bounded multiple of their bytes."""
    decoder = gob.Decoder()
    decoder.receive(stream)

    assert len(decoder.next_value()) >= BYTES // 201
    assert peak(stream) < TIMES * len(stream)


@pytest.mark.parametrize(
    "announced",
    [
        gob.SliceOf(gob.INT),
        gob.SliceOf(EMPTY),
        gob.ArrayOf(gob.INT, (1 << 62)),
        gob.MapOf(gob.STRING, gob.INT),
        gob.MapOf(EMPTY, gob.INT),
        gob.BYTES,
        gob.STRING,
        gob.OpaqueOf("T"),
    ],
)
@pytest.mark.parametrize("count", [1 << 19, 1 << 62, (1 << 64) - 1])
def test_announced_lengths(announced: gob.GoType, count: int) -> None:
    """Nothing is allocated for a length that is only announced."""
    encoder = gob.Encoder()
    number = encoder._number(announced)
    body = encode_int(number) + b"\x00" + encode_uint(count) + b"\x00\x00"
    stream = bytes(encoder._definitions) + encode_uint(len(body)) + body

    assert peak(stream) < 50_000


def test_announced_message() -> None:
    """Nothing is allocated for a message that is only announced."""
    assert peak(b"\xfd\x7f\xff\xff") < 50_000


def test_definitions() -> None:
    """Definitions of many fields take a bounded multiple of their bytes."""
    fields = BYTES // 6
    body = b"\x7f\x03\x01\x02\xff\x80\x00\x01" + encode_uint(fields) + b"\x01\x01a\x01\x04\x00" * fields + b"\x00\x00"
    stream = encode_uint(len(body)) + body

    assert peak(stream, strict=True) < TIMES * len(stream)
