"""The encoder: what it leaves out, what it refuses, and that Go reads it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.notation import to_json

GENERATOR = Path(__file__).parents[1] / "golden" / "generate"
POINT = gob.StructOf("Point", (gob.Field("X", gob.INT), gob.Field("Y", gob.INT)))
ZEROS: list[tuple[gob.GoType, Any]] = [
    (gob.BOOL, False),
    (gob.INT, 0),
    (gob.UINT, 0),
    (gob.FLOAT, 0.0),
    (gob.FLOAT, -0.0),
    (gob.COMPLEX, 0j),
    (gob.STRING, ""),
    (gob.BYTES, b""),
    (gob.SliceOf(gob.INT), []),
    (gob.INTERFACE, None),
    (POINT, None),
]
ALWAYS_SENT: list[tuple[gob.GoType, Any]] = [
    (POINT, {}),
    (gob.ArrayOf(gob.INT, 1), [0]),
    (gob.ArrayOf(gob.INT, 0), []),
    (gob.MapOf(gob.STRING, gob.INT), {}),
    (gob.OpaqueOf("T"), gob.Opaque(b"")),
]


def decoded(stream: bytes) -> list[Any]:
    """Return the values of a stream."""
    decoder = gob.Decoder(strict=True)
    decoder.receive(stream)
    values = list(iter(decoder.next_value, gob.NEED_DATA))
    decoder.finish()
    return values


def test_known_bytes() -> None:
    """A struct is written as Go writes it: its type once, then the fields that are not zero."""
    encoder = gob.Encoder()
    definition = "1e 7f 03 01 01 05 506f696e74 01 ff80 00 01 02 01 01 58 01 04 00 01 01 59 01 04 00 00 00"
    value = "09 ff80 01 01 01 fe0190 00"

    assert encoder.encode(POINT, {"X": -1, "Y": 200}) == bytes.fromhex(definition + value)
    assert encoder.encode(POINT, {"Y": 1}) == bytes.fromhex("05 ff80 02 02 00")


@pytest.mark.parametrize(("go_type", "value"), ZEROS)
def test_zero_field(go_type: gob.GoType, value: Any) -> None:
    """A zero in a struct is not sent."""
    struct = gob.StructOf("S", (gob.Field("Zero", go_type), gob.Field("After", gob.INT)))

    assert decoded(gob.Encoder().encode(struct, {"Zero": value, "After": 1})) == [{"After": 1}]


@pytest.mark.parametrize(("go_type", "value"), ALWAYS_SENT)
def test_field_always_sent(go_type: gob.GoType, value: Any) -> None:
    """Structs, arrays, maps and opaque values are sent whatever is in them, unless the field is absent."""
    struct = gob.StructOf("S", (gob.Field("Sent", go_type),))

    assert decoded(gob.Encoder().encode(struct, {"Sent": value})) == [{"Sent": value}]
    assert decoded(gob.Encoder().encode(struct, {})) == [{}]


@pytest.mark.parametrize(
    ("go_type", "value", "text"),
    [
        (gob.BOOL, 1, "can't encode bool: int is no bool"),
        (gob.INT, "1", "can't encode int: str is no int"),
        (gob.INT, 1 << 63, "can't encode int: 9223372036854775808 needs more than 64 bits"),
        (gob.UINT, -1, "can't encode uint: -1 is no unsigned integer of 64 bits"),
        (gob.UINT, 1.0, "can't encode uint: float is no uint"),
        (gob.FLOAT, None, "can't encode float64: NoneType is no float64"),
        (gob.COMPLEX, 1, "can't encode complex128: int is no complex128"),
        (gob.BYTES, "b", "can't encode []byte: str is no []byte"),
        (gob.STRING, b"s", "can't encode string: bytes is no string"),
        (gob.OpaqueOf("T"), b"o", "can't encode T: bytes is no T"),
        (gob.SliceOf(gob.INT), (1,), "can't encode SliceOf: tuple is no SliceOf"),
        (gob.SliceOf(gob.INT, "L"), [1, "x"], "can't encode L[1]: str is no int"),
        (gob.ArrayOf(gob.INT, 2), [1], "can't encode ArrayOf: 1 elements in an array of 2"),
        (gob.MapOf(gob.STRING, gob.INT), [], "can't encode MapOf: list is no MapOf"),
        (gob.MapOf(gob.STRING, gob.INT), {1: 1}, "can't encode MapOf key: int is no string"),
        (gob.MapOf(gob.STRING, gob.INT), {"k": "v"}, "can't encode MapOf['k']: str is no int"),
        (POINT, [], "can't encode Point: list is no Point"),
        (POINT, {"X": 1, "Z": 2}, "can't encode Point: Point has no field Z"),
        (POINT, {"X": "1"}, "can't encode Point.X: str is no int"),
        (gob.INTERFACE, 1, "can't encode interface: int is no interface"),
        (
            gob.INTERFACE,
            gob.Interface("a", 1),
            "can't encode interface: an interface with a needs the type of its value",
        ),
        (
            gob.INTERFACE,
            gob.Interface("a", None, gob.INTERFACE),
            "can't encode interface: an interface with a needs the type of its value",
        ),
        (gob.INTERFACE, gob.Interface("a", {"X": ""}, POINT), None),
        (gob.INTERFACE, gob.Interface("a", {"X": "1"}, POINT), "can't encode interface(a).X: str is no int"),
    ],
)
def test_refused(go_type: gob.GoType, value: Any, text: str | None) -> None:
    """A value that does not fit its type is refused with its place."""
    if text is None:
        assert decoded(gob.Encoder().encode(go_type, value))
        return
    with pytest.raises(GobError) as caught:
        gob.Encoder().encode(go_type, value)

    assert str(caught.value) == text


def test_refused_leaves_no_trace() -> None:
    """After a refused value the stream goes on as if it had not been tried, whatever was before it in the call."""
    encoder = gob.Encoder()
    stream = encoder.encode(POINT, {"X": 1})
    wrapped = gob.Interface("p", {"L": [1]}, gob.StructOf("L", (gob.Field("L", gob.SliceOf(gob.INT)),)))
    with pytest.raises(GobError):
        encoder.encode_all([(gob.INTERFACE, wrapped), (POINT, {"X": "no"})])

    stream += encoder.encode_all([(gob.INTERFACE, wrapped), (POINT, {"X": 2})])

    assert decoded(stream) == [{"X": 1}, gob.Interface("p", {"L": [1]}), {"X": 2}]


def test_value_in_itself(node: gob.StructOf) -> None:
    """A value that contains itself is refused, and Python's stack is not exhausted."""
    value: dict[str, Any] = {}
    value["Next"] = value

    with pytest.raises(GobError, match="more than 256 levels"):
        gob.Encoder().encode(node, value)


def test_whole_numbers_as_floats() -> None:
    """An int goes where a float is asked for."""
    assert decoded(gob.Encoder().encode(gob.FLOAT, 2)) == [2.0]


def test_types_once() -> None:
    """A type is defined once in a stream, however often and wherever it is used."""
    encoder = gob.Encoder()
    first = encoder.encode(gob.SliceOf(POINT), [{"X": 1}])
    second = encoder.encode(gob.SliceOf(POINT), [{"X": 1}])
    third = encoder.encode(gob.INTERFACE, gob.Interface("p", {"X": 1}, POINT))

    assert first.endswith(second)
    assert first.count(b"Point") == 1
    assert b"Point" not in third
    assert decoded(first + second + third) == [[{"X": 1}], [{"X": 1}], gob.Interface("p", {"X": 1})]


EVERYTHING = gob.StructOf("Everything")
FIELDS: dict[str, gob.GoType] = {
    "Bool": gob.BOOL,
    "Int": gob.INT,
    "Uint": gob.UINT,
    "Float": gob.FLOAT,
    "Complex": gob.COMPLEX,
    "String": gob.STRING,
    "Bytes": gob.BYTES,
    "Slice": gob.SliceOf(gob.STRING),
    "Array": gob.ArrayOf(gob.INT, 3),
    "Map": gob.MapOf(gob.STRING, gob.INT),
    "Points": gob.MapOf(POINT, POINT),
    "Struct": POINT,
    "Recursive": gob.SliceOf(EVERYTHING),
    "Interface": gob.INTERFACE,
    "Many": gob.SliceOf(gob.INTERFACE),
    "Opaque": gob.OpaqueOf("Kept"),
}
EVERYTHING.fields = tuple(gob.Field(name, go_type) for name, go_type in FIELDS.items())
LEAF = gob.StructOf("Leaf", (gob.Field("Text", gob.STRING),))
BOX = gob.StructOf("Box", (gob.Field("V", gob.INTERFACE),))
VALUE = {
    "Bool": True,
    "Int": -(1 << 63),
    "Uint": (1 << 64) - 1,
    "Float": -2.5,
    "Complex": 1 - 1j,
    "String": "größe \udcff",
    "Bytes": b"\x00\xff",
    "Slice": ["", "a"],
    "Array": [0, 1, 0],
    "Map": {"": 0, "b": 1},
    "Points": gob.MapValue([({"X": 1}, {"Y": 2}), ({}, {})]),
    "Struct": {"Y": 1},
    "Recursive": [
        {"Array": [0, 0, 0], "Struct": {}, "Int": 5},
        {"Array": [0, 0, 0], "Struct": {}, "Bytes": b"x"},
    ],
    "Interface": gob.Interface("Box", {"V": gob.Interface("main.Leaf", {"Text": "deep"}, LEAF)}, BOX),
    "Many": [None, gob.Interface("Scalar", 7, gob.INT), gob.Interface("Point", {"X": 1}, POINT)],
    "Opaque": gob.Opaque(b"\x01\x02"),
}


@pytest.mark.go
@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_go_reads_it() -> None:
    """Go's decoder reads what the encoder has written as it was meant."""
    stream = gob.Encoder().encode(EVERYTHING, VALUE)

    result = subprocess.run(["go", "run", ".", "check"], cwd=GENERATOR, input=stream, capture_output=True, check=False)

    assert result.stderr == b""
    expected, found = decoded(stream)[0], json.loads(result.stdout)
    assert to_json(expected) == found


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_encoding_again(data: st.DataObject, typed_values: st.SearchStrategy[Any]) -> None:
    """The same value twice in a stream is the same bytes but for the definitions."""
    go_type, value = data.draw(typed_values)
    encoder = gob.Encoder()

    assert encoder.encode(go_type, value).endswith(encoder.encode(go_type, value))
