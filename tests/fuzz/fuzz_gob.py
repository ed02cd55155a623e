"""Fuzz target: any bytes to a gob decoder give values or GobError, the same in any pieces and however they are read."""

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.notation import to_json


def one_input(data: bytes) -> None:
    """Take the first byte as the size of the pieces, the rest as the stream."""
    size, stream = 1 + (data[0] if data else 0), data[1:]
    values, broken = read(stream, max(len(stream), 1))
    in_pieces, broken_in_pieces = read(stream, size)
    assert repr(values) == repr(in_pieces)
    assert broken == broken_in_pieces
    strictly, _ = read(stream, size, strict=True)
    assert repr(strictly) == repr(values[: len(strictly)])
    walked, broken_walked = read(stream, size, projection={})
    assert len(walked) == len(values)
    assert broken == broken_walked
    for value in values:
        to_json(value)


def read(
    stream: bytes, size: int, *, strict: bool = False, projection: gob.Projection | None = None
) -> tuple[list[object], bool]:
    """Return the values of a stream, and whether it is broken after them."""
    decoder = gob.Decoder(strict=strict)
    values: list[object] = []
    try:
        for start in range(0, len(stream), size):
            decoder.receive(stream[start : start + size])
            values.extend(iter(lambda: decoder.next_value(projection), gob.NEED_DATA))
        decoder.finish()
    except GobError:
        return values, True
    return values, False
