"""Type definitions as they travel: values of Go's `wireType`.

`read_definition` takes a message and the position after the type's number, and returns the definition and the position
after it. A definition may name types that are defined later, so numbers are looked up when a value of the type is read.

Most of the bytes of a connection's first call are definitions, so the exact form in which Go writes them is read by
hand; whatever looks different goes through `_read_record`, which reads any encoding of a `wireType` and tells what is
wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from rollouts_gwapi_plugin.wire.gob.varint import (
    LONGEST,
    ONE_BYTE,
    SMALL,
    Fault,
    missing,
    read_int,
    read_long_uint,
    read_uint,
)


@dataclass(frozen=True, slots=True)
class ArrayDefinition:
    """A fixed number of elements; the number travels with each value, too."""

    element: int
    length: int


@dataclass(frozen=True, slots=True)
class SliceDefinition:
    """Any number of elements."""

    element: int


@dataclass(frozen=True, slots=True)
class MapDefinition:
    """Any number of pairs."""

    key: int
    element: int


@dataclass(frozen=True, slots=True)
class StructDefinition:
    """Fields by number, each with its name and type."""

    fields: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class OpaqueDefinition:
    """Bytes of the type's own making."""


Definition: TypeAlias = ArrayDefinition | SliceDefinition | MapDefinition | StructDefinition | OpaqueDefinition

_ARRAY, _SLICE, _STRUCT, _MAP, _OPAQUE = 1, 2, 3, 4, 5
_LAST = 7
_OPAQUE_DEFINITION = OpaqueDefinition()


def read_definition(data: bytearray, position: int) -> tuple[Definition, int]:
    """Read a definition; raise `Fault` where there is none."""
    kind = data[position]
    try:
        if kind == _STRUCT:
            return _read_struct(data, position + 1)
        if _ARRAY <= kind <= _LAST:
            return _read_plain(data, position + 1, kind)
    except (_UnusualForm, IndexError):
        pass
    record, end = _read_record(data, position, _WIRE_TYPE)
    return _definition_of(record, position), end


class _UnusualForm(Exception):  # noqa: N818 - not an error: the general reader is asked then
    """The bytes are not in the form in which Go writes a definition."""


def _expect(data: bytearray, position: int, expected: int) -> int:
    """Step over a byte that must be this one."""
    if data[position] != expected:
        raise _UnusualForm
    return position + 1


def _skip_common(data: bytearray, position: int) -> int:
    """Step over the field CommonType: the name, which unnamed types lack, and the number, which is known already."""
    position = _expect(data, position, 1)
    if data[position] == 1:
        size, position = read_uint(data, position + 1)
        position = _expect(data, position + size, 1)
    else:
        position = _expect(data, position, 2)
    first = data[position]
    if SMALL <= first < 256 - LONGEST:
        raise _UnusualForm
    return _expect(data, position + (1 if first < SMALL else 257 - first), 0)


def _read_plain(data: bytearray, position: int, kind: int) -> tuple[Definition, int]:
    """Read the rest of a definition that is not a struct's."""
    position = _skip_common(data, position)
    definition: Definition = _OPAQUE_DEFINITION
    if kind < _OPAQUE:
        element, position = read_int(data, _expect(data, position, 1))
        if kind == _SLICE:
            definition = SliceDefinition(element)
        elif kind == _MAP:
            value, position = read_int(data, _expect(data, position, 1))
            definition = MapDefinition(element, value)
        else:
            length, position = read_int(data, _expect(data, position, 1))
            if length < 0:
                raise _UnusualForm
            definition = ArrayDefinition(element, length)
    return definition, _expect(data, _expect(data, position, 0), 0)


def _read_struct(data: bytearray, position: int) -> tuple[Definition, int]:
    """Read the rest of a struct's definition."""
    position = _skip_common(data, position)
    fields: list[tuple[str, int]] = []
    if data[position] == 1:
        count, position = read_uint(data, position + 1)
        for _ in range(count):
            if data[position] != 1:
                raise _UnusualForm
            size = data[position + 1]
            position += 2
            if not 0 < size < SMALL:
                raise _UnusualForm
            name = data[position : position + size].decode("utf-8", "surrogateescape")
            position += size
            if data[position] != 1:
                raise _UnusualForm
            number = data[position + 1]
            position += 2
            if number == ONE_BYTE:
                number = data[position]
                position += 1
            elif number >= SMALL:
                number, position = read_long_uint(data, position - 1)
            if data[position]:
                raise _UnusualForm
            position += 1
            fields.append((name, ~(number >> 1) if number & 1 else number >> 1))
    return StructDefinition(fields), _expect(data, _expect(data, position, 0), 0)


def _read_text(data: bytearray, position: int) -> tuple[str, int]:
    size, position = read_uint(data, position)
    end = position + size
    if end > len(data):
        raise missing(data, position, size)
    return data[position:end].decode("utf-8", "surrogateescape"), end


def _read_fields(data: bytearray, position: int) -> tuple[list[dict[str, Any]], int]:
    count, position = read_uint(data, position)
    fields = []
    for _ in range(count):
        field, position = _read_record(data, position, _FIELD)
        fields.append(field)
    return fields, position


_Shape: TypeAlias = "tuple[tuple[str, Callable[[bytearray, int], tuple[Any, int]] | _Shape], ...]"
_COMMON: _Shape = (("Name", _read_text), ("Id", read_int))
_FIELD: _Shape = (("Name", _read_text), ("Id", read_int))
_OPAQUE_TYPE: _Shape = (("Common", _COMMON),)
_WIRE_TYPE: _Shape = (
    ("ArrayT", (("Common", _COMMON), ("Elem", read_int), ("Len", read_int))),
    ("SliceT", (("Common", _COMMON), ("Elem", read_int))),
    ("StructT", (("Common", _COMMON), ("Field", _read_fields))),
    ("MapT", (("Common", _COMMON), ("Key", read_int), ("Elem", read_int))),
    ("GobEncoderT", _OPAQUE_TYPE),
    ("BinaryMarshalerT", _OPAQUE_TYPE),
    ("TextMarshalerT", _OPAQUE_TYPE),
)


def _read_record(data: bytearray, position: int, shape: _Shape) -> tuple[dict[str, Any], int]:
    """Read one of the structs that definitions are made of, however it is encoded."""
    record: dict[str, Any] = {}
    number = -1
    while True:
        delta, position = read_uint(data, position)
        if not delta:
            return record, position
        number += delta
        if number >= len(shape):
            raise Fault(position, f"a type definition with field {number}, which there is not")
        name, reader = shape[number]
        if callable(reader):
            record[name], position = reader(data, position)
        else:
            record[name], position = _read_record(data, position, reader)


def _definition_of(record: dict[str, Any], position: int) -> Definition:
    """Return the definition that a `wireType` stands for."""
    if len(record) != 1:
        raise Fault(position, f"a type definition of {len(record)} kinds")
    ((kind, body),) = record.items()
    if kind == "ArrayT":
        length = body.get("Len", 0)
        if length < 0:
            raise Fault(position, f"an array of {length} elements")
        return ArrayDefinition(body.get("Elem", 0), length)
    if kind == "SliceT":
        return SliceDefinition(body.get("Elem", 0))
    if kind == "MapT":
        return MapDefinition(body.get("Key", 0), body.get("Elem", 0))
    if kind != "StructT":
        return _OPAQUE_DEFINITION
    fields = [(field.get("Name", ""), field.get("Id", 0)) for field in body.get("Field", ())]
    if any(not name for name, _ in fields):
        raise Fault(position, "a struct with a field that has no name")
    return StructDefinition(fields)
