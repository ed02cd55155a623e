"""Building only what is asked for: all else is walked over, and checked the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.notation import to_json

GOLDEN = Path(__file__).parents[1] / "golden"
STREAMS = sorted([*GOLDEN.glob("gob/*.bin"), *GOLDEN.glob("gob-extra/*.bin"), *GOLDEN.glob("rpc/*.bin")])
POINT = gob.StructOf("Point", (gob.Field("X", gob.INT), gob.Field("Y", gob.INT)))
LINE = gob.StructOf(
    "Line",
    (
        gob.Field("From", POINT),
        gob.Field("To", POINT),
        gob.Field("Via", gob.SliceOf(POINT)),
        gob.Field("Corners", gob.ArrayOf(POINT, 2)),
        gob.Field("Named", gob.MapOf(gob.STRING, POINT)),
        gob.Field("Marks", gob.MapOf(POINT, POINT)),
        gob.Field("Any", gob.INTERFACE),
        gob.Field("Length", gob.FLOAT),
    ),
)
VALUE = {
    "From": {"X": 1, "Y": 2},
    "To": {"Y": 3},
    "Via": [{"X": 4}, {}],
    "Corners": [{"X": 5}, {"X": 6, "Y": 7}],
    "Named": {"n": {"X": 8, "Y": 9}},
    "Marks": gob.MapValue([({"X": 10, "Y": 11}, {"X": 12, "Y": 13})]),
    "Any": gob.Interface("Point", {"X": 14, "Y": 15}, POINT),
    "Length": 0.5,
}


def values(data: bytes, projection: gob.Projection | None, size: int = 1 << 30) -> list[Any]:
    """Return the projected values of a stream."""
    decoder = gob.Decoder()
    found = []
    for start in range(0, len(data), size):
        decoder.receive(data[start : start + size])
        while (value := decoder.next_value(projection)) is not gob.NEED_DATA:
            found.append(value)
    decoder.finish()
    return found


@pytest.mark.parametrize(
    ("projection", "expected"),
    [
        (None, VALUE),
        ({}, {}),
        ({"Nothing": None}, {}),
        ({"Length": None, "Nothing": None}, {"Length": 0.5}),
        ({"Length": {"X": None}}, {"Length": 0.5}),
        ({"From": {"X": None}, "To": {"X": None}}, {"From": {"X": 1}, "To": {}}),
        ({"To": None}, {"To": {"Y": 3}}),
        ({"Via": {"X": None}}, {"Via": [{"X": 4}, {}]}),
        ({"Corners": {"Y": None}}, {"Corners": [{}, {"Y": 7}]}),
        ({"Named": {"Y": None}}, {"Named": {"n": {"Y": 9}}}),
        ({"Marks": {"Y": None}}, {"Marks": gob.MapValue([({"X": 10, "Y": 11}, {"Y": 13})])}),
        ({"Any": {"Y": None}}, {"Any": gob.Interface("Point", {"Y": 15})}),
    ],
)
def test_projection(projection: gob.Projection | None, expected: Any) -> None:
    """A projection passes through containers and interfaces; keys of maps are always whole."""
    stream = gob.Encoder().encode(LINE, VALUE)

    assert values(stream, projection) == [expected]


def test_projections_alternate() -> None:
    """Each value of a stream may be asked for with another projection."""
    encoder = gob.Encoder()
    stream = encoder.encode(POINT, {"X": 1, "Y": 2}) * 1 + encoder.encode(POINT, {"X": 3, "Y": 4}) * 3
    decoder = gob.Decoder()
    decoder.receive(bytes(stream))

    found = [decoder.next_value(projection) for projection in ({"X": None}, {"Y": None}, None, {"X": None})]

    assert found == [{"X": 1}, {"Y": 4}, {"X": 3, "Y": 4}, {"X": 3}]


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_walked(path: Path) -> None:
    """Walking over a golden stream ends where reading it ends, and finds as many values."""
    data = path.read_bytes()

    assert len(values(data, None)) == len(values(data, {}))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_neighbours(data: st.DataObject, typed_values: st.SearchStrategy[Any], go_style: Callable[[], Any]) -> None:
    """A field that is walked over does not change what its neighbours are read as, in any pieces."""
    go_type, value = data.draw(typed_values)
    struct = gob.StructOf("S", (gob.Field("Before", gob.INT), gob.Field("Walked", go_type), gob.Field("After", POINT)))
    sent = {"Before": -1, "Walked": value, "After": {"X": 1}}
    size = data.draw(st.sampled_from([1, 7, 1 << 30]))

    found = values(go_style().write(struct, sent), {"Before": None, "After": None}, size)

    assert found == [{"Before": -1, "After": {"X": 1}}]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_walks_what_it_reads(data: st.DataObject) -> None:
    """A changed byte in a golden stream is refused in walking as in reading, but for limits on what is built."""
    small = [path for path in STREAMS if path.stat().st_size < 1500]
    stream = bytearray(data.draw(st.sampled_from(small)).read_bytes())
    stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))

    assert outcome(bytes(stream), None) == outcome(bytes(stream), {})


def outcome(stream: bytes, projection: gob.Projection | None) -> str:
    """Return how many values there are, or why the stream is refused."""
    try:
        return str(len(values(stream, projection)))
    except GobError as error:
        return str(error)


def refused(
    struct: gob.StructOf, value: dict[str, Any], change: Callable[[bytearray], None], limits: gob.Limits
) -> str:
    """Return why a changed stream is refused when its first field is walked over."""
    stream = bytearray(gob.Encoder().encode(struct, value))
    change(stream)
    decoder = gob.Decoder(limits=limits)
    decoder.receive(bytes(stream))
    with pytest.raises(GobError) as caught:
        decoder.next_value({})
    return str(caught.value).partition(": ")[2]


@pytest.mark.parametrize(
    ("go_type", "value", "tail", "text"),
    [
        (gob.STRING, "abc", b"\x09abc\x00", "9 bytes wanted, 4 left"),
        (gob.BYTES, b"abc", b"\xf7abc\x00", "an integer of 9 bytes"),
        (gob.OpaqueOf("T"), gob.Opaque(b"abc"), b"\xff\xffbc\x00", "255 bytes wanted, 3 left"),
        (gob.INT, 5, b"\xfe\x00", "2 bytes wanted, 1 left"),
        (gob.COMPLEX, 1 + 1j, b"\xfa\xf0\x3f\x00", "6 bytes wanted, 3 left"),
        (gob.ArrayOf(gob.INT, 2), [1, 2], b"\x03\x02\x04\x00", "3 elements in an array of 2"),
        (POINT, {"X": 1}, b"\x03\x02\x00\x00", "field 2 of a struct of 2 fields"),
        (gob.INTERFACE, gob.Interface("a", 1, gob.INT), b"\x01\x02\x00", "a lone value must start with 0"),
    ],
)
def test_walker_refuses(go_type: gob.GoType, value: Any, tail: bytes, text: str) -> None:
    """What is walked over is checked like what is built."""
    struct = gob.StructOf("S", (gob.Field("Walked", go_type),))

    def change(stream: bytearray) -> None:
        stream[-len(tail) :] = tail

    assert refused(struct, {"Walked": value}, change, gob.Limits()) == text


def test_field_numbers_of_two_bytes() -> None:
    """Far fields are found, and those that there are not refused, in what is built in part or walked over."""
    wide = gob.StructOf("W", tuple(gob.Field(f"F{number}", gob.INT) for number in range(200)))
    struct = gob.StructOf("S", (gob.Field("Built", wide), gob.Field("Walked", wide), gob.Field("After", gob.INT)))
    stream = gob.Encoder().encode(struct, {"Built": {"F199": 1}, "Walked": {"F199": 1}, "After": 3})
    last = stream.rindex(b"\xff\xc8")
    projection: gob.Projection = {"Built": {"F199": None}, "After": None}

    assert values(stream, projection) == [{"Built": {"F199": 1}, "After": 3}]
    for place in (last, stream.rindex(b"\xff\xc8", 0, last)):
        with pytest.raises(GobError, match="field 200 of a struct of 200 fields"):
            values(stream[:place] + b"\xff\xc9" + stream[place + 2 :], projection)


def test_walker_levels(node: gob.StructOf) -> None:
    """What is walked over may not be nested deeper than what is built."""
    struct = gob.StructOf("S", (gob.Field("Walked", node),))
    wrapped = gob.StructOf("W", (gob.Field("Walked", gob.INTERFACE),))
    maps = gob.StructOf("M", (gob.Field("Walked", gob.MapOf(gob.INT, gob.SliceOf(gob.INT))),))
    cases: list[tuple[gob.StructOf, Any, int]] = [
        (struct, {"Next": {"Next": {"Next": {}}}}, 3),
        (struct, {"Kids": [{"Kids": [{}]}]}, 4),
        (struct, {"Kids": [{"Kids": [{}]}]}, 5),
        (wrapped, gob.Interface("N", {}, node), 1),
        (maps, {1: [2]}, 1),
        (maps, {1: [2]}, 2),
    ]
    for go_type, value, levels in cases:
        limits = gob.Limits(nesting=levels)

        assert refused(go_type, {"Walked": value}, lambda _: None, limits) == f"more than {levels} levels"


def test_rollout_projection() -> None:
    """The fields that a reconciler needs come out of the controller's first call as they do without a projection."""
    path = GOLDEN / "rpc" / "rich-SetWeight.request.bin"
    decoder = gob.Decoder()
    decoder.receive(path.read_bytes())
    decoder.next_value()
    projection: gob.Projection = {"Rollout": {"Spec": {"Strategy": {"Canary": None}}}, "DesiredWeight": None}
    whole = json.loads(path.with_suffix(".json").read_text())["calls"][0]["body"]["$value"]

    found = to_json(decoder.next_value(projection))["$value"]

    assert whole["Rollout"]["Spec"]["Strategy"]["Canary"] == found["Rollout"]["Spec"]["Strategy"]["Canary"]
    assert list(found["Rollout"]) == ["Spec"]
    assert found["DesiredWeight"] == whole["DesiredWeight"]


def test_limits_hold_in_projections() -> None:
    """What is built in part is limited as what is built whole."""
    stream = gob.Encoder().encode(gob.SliceOf(POINT), [{"X": 1}] * 5)
    for limits, text in (
        (gob.Limits(values=9), "more than 9 structs and elements in a value"),
        (gob.Limits(nesting=1), "more than 1 levels"),
    ):
        decoder = gob.Decoder(limits=limits)
        decoder.receive(stream)
        with pytest.raises(GobError, match=text):
            decoder.next_value({"X": None})
