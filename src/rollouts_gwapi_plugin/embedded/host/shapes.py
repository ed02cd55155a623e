"""How JSON becomes gob: a shape is a Go type together with the way from JSON to its values.

The controller holds Go structs and gob sends their fields under Go's names; here objects are JSON. A shape names the
Go type and converts: `struct({"stableRS": ("StableRS", text), ...})`. What has no place in the shape is left out,
what is null is absent, and a struct that Go holds by value is there even where the JSON lacks it (`by_value`). The
encoder drops zeros.
"""

import datetime as dt
import json
import struct as packing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rollouts_gwapi_plugin.wire.gob import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    STRING,
    Field,
    GoType,
    MapOf,
    Opaque,
    SliceOf,
    StructOf,
)
from rollouts_gwapi_plugin.wire.gob.types import OpaqueOf

# time.Time's binary form: version 1, seconds since the year 1, nanoseconds, zone in minutes. The API machinery reads
# times as local ones, so in a container, whose clock is UTC, the zone is 0 and not the -1 that stands for UTC itself.
_TIME = packing.Struct(">Bqih")
_YEAR_ONE = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
_LOCAL_ZONE = 0


@dataclass(frozen=True)
class Shape:
    """A Go type and the way to its values; `always` says that Go holds it by value."""

    go_type: GoType
    convert: Callable[[Any], Any]
    always: bool = False


integer = Shape(INT, int)
number = Shape(FLOAT, float)
boolean = Shape(BOOL, bool)
text = Shape(STRING, str)
# json.RawMessage: the controller keeps the compact form that the API server sent.
raw_json = Shape(BYTES, lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _time(value: str) -> Opaque:
    since = dt.datetime.fromisoformat(value) - _YEAR_ONE
    return Opaque(_TIME.pack(1, since.days * 86400 + since.seconds, since.microseconds * 1000, _LOCAL_ZONE))


time = Shape(OpaqueOf("Time"), _time)
# intstr.IntOrString: 0 is a number, 1 a string.
int_or_string = Shape(
    StructOf("IntOrString", (Field("Type", INT), Field("IntVal", INT), Field("StrVal", STRING))),
    lambda value: {"Type": 1, "StrVal": value} if isinstance(value, str) else {"Type": 0, "IntVal": value},
)


def list_of(element: Shape) -> Shape:
    """Return the shape of a slice."""
    return Shape(SliceOf(element.go_type), lambda values: [element.convert(value) for value in values])


def map_of(element: Shape) -> Shape:
    """Return the shape of a map with string keys."""
    return Shape(
        MapOf(STRING, element.go_type), lambda values: {name: element.convert(value) for name, value in values.items()}
    )


def by_value(shape: Shape) -> Shape:
    """Return the shape of a struct that is no pointer: absent means empty."""
    return Shape(shape.go_type, shape.convert, always=True)


def struct(name: str, fields: Mapping[str, Shape | tuple[str, Shape]]) -> Shape:
    """Return the shape of a struct; a field's Go name is its JSON name with a capital unless it is given."""
    rows = {
        json_name: (json_name[0].upper() + json_name[1:], given) if isinstance(given, Shape) else given
        for json_name, given in fields.items()
    }

    def convert(value: Mapping[str, Any]) -> dict[str, Any]:
        converted = {}
        for json_name, (go_name, shape) in rows.items():
            found = value.get(json_name)
            if found is None and shape.always:
                found = {}
            if found is not None:
                converted[go_name] = shape.convert(found)
        return converted

    return Shape(StructOf(name, tuple(Field(go_name, shape.go_type) for go_name, shape in rows.values())), convert)
