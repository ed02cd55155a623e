"""Type definitions: the usual form, any other encoding of it, and what is no definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.definitions import (
    ArrayDefinition,
    Definition,
    MapDefinition,
    OpaqueDefinition,
    SliceDefinition,
    StructDefinition,
    read_definition,
)
from rollouts_gwapi_plugin.wire.gob.varint import Fault

LONG = "L" * 200
COMMON = b"\x01\x01\x01T\x01\xff\x82\x00"


@pytest.mark.parametrize(
    ("go_type", "expected"),
    [
        (gob.ArrayOf(gob.INT, 3), ArrayDefinition(2, 3)),
        (gob.ArrayOf(gob.INT, 0), ArrayDefinition(2, 0)),
        (gob.ArrayOf(gob.INT, 1000, "A"), ArrayDefinition(2, 1000)),
        (gob.SliceOf(gob.BYTES, LONG), SliceDefinition(5)),
        (gob.MapOf(gob.STRING, gob.INTERFACE, "M"), MapDefinition(6, 8)),
        (gob.OpaqueOf("T", 5), OpaqueDefinition()),
        (gob.OpaqueOf("", 6), OpaqueDefinition()),
        (gob.OpaqueOf("T", 7), OpaqueDefinition()),
        (gob.EMPTY_STRUCT, StructDefinition([])),
        (
            gob.StructOf("S", (gob.Field("A", gob.INT), gob.Field("É", gob.UINT))),
            StructDefinition([("A", 2), ("É", 3)]),
        ),
        (gob.StructOf("S", (gob.Field(LONG, gob.INT),)), StructDefinition([(LONG, 2)])),
    ],
)
def test_usual_form(go_type: gob.GoType, expected: Definition) -> None:
    """Each kind of definition is read, and nothing after it."""
    encoder = gob.Encoder()
    encoder._number(go_type)
    raw = encoder._definition(go_type)

    assert read_definition(bytearray(raw + b"\x01"), 0) == (expected, len(raw))
    assert read_definition(bytearray(b"\x01\x02" + raw), 2) == (expected, len(raw) + 2)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xff\x02" + COMMON + b"\x01\x04\x00\x00", SliceDefinition(2)),
        (b"\x02\x01\x00\x01\x04\x00\x00", SliceDefinition(2)),
        (b"\x02\x01\x01\x01T\x00\x01\x04\x00\x00", SliceDefinition(2)),
        (b"\x02\x02\x04\x00\x00", SliceDefinition(2)),
        (b"\x02" + COMMON + b"\x00\x00", SliceDefinition(0)),
        (b"\x02\x01\x02\xfc\x00\x00\x01\x02\x00\x01\x04\x00\x00", SliceDefinition(2)),
        (b"\x01" + COMMON + b"\x02\x06\x00\x00", ArrayDefinition(0, 3)),
        (b"\x01\x00\x00", ArrayDefinition(0, 0)),
        (b"\x04" + COMMON + b"\x02\x06\x00\x00", MapDefinition(0, 3)),
        (b"\x05\x00\x00", OpaqueDefinition()),
        (b"\x03" + COMMON + b"\x01\x00\x00\x00", StructDefinition([])),
        (b"\x03" + COMMON + b"\x01\x01\x01\x01A\x00\x00\x00", StructDefinition([("A", 0)])),
        (b"\x03" + COMMON + b"\x01\x01\x01\x01A\x01\xfe\x01\x00\x00\x00\x00", StructDefinition([("A", 128)])),
        (b"\x03" + COMMON + b"\x01\x01\x01\xff\x01A\x01\x04\x00\x00\x00", StructDefinition([("A", 2)])),
        (b"\x03" + COMMON + b"\x01\x01\x01\x01A\x01\x03\x00\x00\x00", StructDefinition([("A", -2)])),
    ],
)
def test_unusual_form(raw: bytes, expected: Definition) -> None:
    """A definition that Go would write otherwise means the same."""
    assert read_definition(bytearray(raw), 0) == (expected, len(raw))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x00", "a type definition of 0 kinds"),
        (b"\x01\x00\x01\x00\x00", "a type definition of 2 kinds"),
        (b"\x08\x00", "a type definition with field 7, which there is not"),
        (b"\x02" + COMMON + b"\x02\x00", "a type definition with field 2, which there is not"),
        (b"\x02\x01\x03\x00", "a type definition with field 2, which there is not"),
        (b"\x02\x01\x02\xf7\x00\x00\x00", "an integer of 9 bytes"),
        (b"\x02\x01\x01\x09T\x00", "9 bytes wanted, 2 left"),
        (b"\x01" + COMMON + b"\x01\x04\x01\x01\x00\x00", "an array of -1 elements"),
        (b"\x01" + COMMON + b"\x02\x01\x00\x00", "an array of -1 elements"),
        (b"\x03" + COMMON + b"\x01\x01\x02\x04\x00\x00\x00", "a struct with a field that has no name"),
        (b"\x03" + COMMON + b"\x01\x01\x01\x00\x01\x04\x00\x00\x00", "a struct with a field that has no name"),
        (b"\x03" + COMMON + b"\x01\x01\x03\x00", "a type definition with field 2, which there is not"),
        (b"\x03" + COMMON + b"\x01\x01\x01\x01A\x01\x04\x01\x00", "a type definition with field 2, which there is not"),
        (b"\x03" + COMMON + b"\x01\x01\x01\x01A\x01\xf0\x00\x00\x00", "an integer of 16 bytes"),
    ],
)
def test_refused(raw: bytes, text: str) -> None:
    """What is no definition is refused with the reason."""
    with pytest.raises(Fault) as caught:
        read_definition(bytearray(raw), 0)

    assert caught.value.text == text


@given(raw=st.binary(max_size=40), kind=st.integers(0, 8), common=st.booleans())
def test_garbage(raw: bytes, kind: int, *, common: bool) -> None:
    """Any bytes are a definition, or a fault, or end too early; a definition ends inside of them."""
    data = bytearray(bytes((kind,)) + (COMMON if common else b"") + raw)
    try:
        _, end = read_definition(data, 0)
    except (Fault, IndexError):
        return
    assert 0 < end <= len(data)
