"""Maps: what kind of value they become, and what happens to a key that is there twice."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.wire import gob

POINT = gob.StructOf("Point", (gob.Field("X", gob.INT), gob.Field("Y", gob.INT)))
PLACES = gob.StructOf("Places", (gob.Field("List", gob.ArrayOf(POINT, 1)), gob.Field("Map", gob.MapOf(gob.INT, POINT))))


def sent(go_type: gob.MapOf, pairs: list[tuple[Any, Any]]) -> Any:
    """Return what is read of a map of these pairs."""
    decoder = gob.Decoder()
    decoder.receive(gob.Encoder().encode(go_type, gob.MapValue(pairs)))
    return decoder.next_value()


@pytest.mark.parametrize("key", [gob.BOOL, gob.INT, gob.UINT, gob.FLOAT, gob.COMPLEX, gob.BYTES])
def test_keyed(key: gob.GoType) -> None:
    """A map with scalar keys is a dict that knows that its keys are not strings, also when it is empty."""
    values: dict[gob.GoType, Any] = {gob.BYTES: b"k", gob.BOOL: True, gob.FLOAT: 1.0, gob.COMPLEX: 1j}
    value = sent(gob.MapOf(key, gob.INT), [(values.get(key, 1), 5)])

    assert value == {values.get(key, 1): 5}
    assert isinstance(value, gob.KeyedMap)
    assert isinstance(sent(gob.MapOf(key, gob.INT), []), gob.KeyedMap)


def test_string_keys() -> None:
    """A map with string keys is a plain dict."""
    assert type(sent(gob.MapOf(gob.STRING, gob.INT), [("k", 1)])) is dict


@pytest.mark.parametrize(
    ("key", "first", "second"),
    [
        (gob.STRING, "a", "b"),
        (POINT, {"X": 1}, {"Y": 1}),
        (gob.ArrayOf(gob.INT, 2), [1, 2], [2, 1]),
        (PLACES, {"List": [{"X": 1}]}, {"List": [{"Y": 1}]}),
        (PLACES, {"List": [{}], "Map": {1: {}}}, {"List": [{}], "Map": {1: {"X": 1}}}),
        (gob.MapOf(POINT, gob.INT), gob.MapValue([({}, 1)]), gob.MapValue([({}, 2)])),
        (gob.INTERFACE, gob.Interface("int", 1, gob.INT), gob.Interface("Point", {"X": 1}, POINT)),
        (gob.INTERFACE, gob.Interface("int", 1, gob.INT), gob.Interface("Scalar", 1, gob.INT)),
        (gob.INTERFACE, gob.Interface("int", 1, gob.INT), None),
    ],
)
def test_key_twice(key: gob.GoType, first: Any, second: Any) -> None:
    """Of a key that is there twice the last value stays, as in Go; keys are equal where Go's are."""
    value = sent(gob.MapOf(key, gob.INT), [(first, 1), (second, 2), (first, 3)])

    pairs = value.pairs if isinstance(value, gob.MapValue) else list(value.items())
    assert pairs == [(first, 3), (second, 2)]
