"""Building values: one closure a wire type and projection, made when the first value of the type comes.

A reader takes the message, a position and the levels that a value may still have, and returns the value and the
position after it. Past the end of the message it raises IndexError, at anything else that is wrong `Fault`. Nothing is
set aside for a length that was only announced: lists grow by what was read.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from rollouts_gwapi_plugin.wire.gob import registry
from rollouts_gwapi_plugin.wire.gob.definitions import (
    ArrayDefinition,
    Definition,
    MapDefinition,
    SliceDefinition,
    StructDefinition,
)
from rollouts_gwapi_plugin.wire.gob.values import Interface, KeyedMap, MapValue, Opaque, Projection
from rollouts_gwapi_plugin.wire.gob.varint import SMALL, Fault, float_of, missing, read_int, read_long_uint, read_uint
from rollouts_gwapi_plugin.wire.gob.walkers import Walker, check_length, field_of

if TYPE_CHECKING:
    from rollouts_gwapi_plugin.wire.gob.compiler import Compiler

Reader: TypeAlias = Callable[[bytearray, int, int], tuple[Any, int]]


def _read_bool(data: bytearray, position: int, levels: int) -> tuple[bool, int]:  # noqa: ARG001 - all are called alike
    value, position = read_uint(data, position)
    return value != 0, position


def _read_int(data: bytearray, position: int, levels: int) -> tuple[int, int]:  # noqa: ARG001 - as _read_bool
    return read_int(data, position)


def _read_uint(data: bytearray, position: int, levels: int) -> tuple[int, int]:  # noqa: ARG001 - as _read_bool
    return read_uint(data, position)


def _read_float(data: bytearray, position: int, levels: int) -> tuple[float, int]:  # noqa: ARG001 - as _read_bool
    bits, position = read_uint(data, position)
    return float_of(bits), position


def _read_complex(data: bytearray, position: int, levels: int) -> tuple[complex, int]:  # noqa: ARG001 - as _read_bool
    real, position = read_uint(data, position)
    imaginary, position = read_uint(data, position)
    return complex(float_of(real), float_of(imaginary)), position


def _read_bytes(data: bytearray, position: int, levels: int) -> tuple[bytes, int]:  # noqa: ARG001 - as _read_bool
    size, position = read_uint(data, position)
    end = position + size
    if end > len(data):
        raise missing(data, position, size)
    return bytes(data[position:end]), end


def _read_string(data: bytearray, position: int, levels: int) -> tuple[str, int]:  # noqa: ARG001 - as _read_bool
    size = data[position]
    position += 1
    if size >= SMALL:
        size, position = read_long_uint(data, position - 1)
    end = position + size
    if end > len(data):
        raise missing(data, position, size)
    return data[position:end].decode("utf-8", "surrogateescape"), end


def _read_opaque(data: bytearray, position: int, levels: int) -> tuple[Opaque, int]:
    value, position = _read_bytes(data, position, levels)
    return Opaque(value), position


BUILT_IN_READERS: dict[int, Reader] = {
    registry.BOOL: _read_bool,
    registry.INT: _read_int,
    registry.UINT: _read_uint,
    registry.FLOAT: _read_float,
    registry.BYTES: _read_bytes,
    registry.STRING: _read_string,
    registry.COMPLEX: _read_complex,
}


def reader_of(compiler: "Compiler", definition: Definition, projection: Projection | None) -> Reader:
    """Return the reader of a defined type."""
    if isinstance(definition, StructDefinition):
        if projection is None:
            return _struct_reader(compiler, definition)
        return _projected_reader(compiler, definition, projection)
    if isinstance(definition, MapDefinition):
        return _map_reader(compiler, definition, projection)
    if isinstance(definition, ArrayDefinition):
        return _list_reader(compiler, definition.element, definition.length, projection)
    if isinstance(definition, SliceDefinition):
        return _list_reader(compiler, definition.element, None, projection)
    return _read_opaque


def _struct_reader(compiler: "Compiler", definition: StructDefinition) -> Reader:
    fields: dict[int, tuple[str, Reader]] = {}

    def read(data: bytearray, position: int, levels: int) -> tuple[dict[str, Any], int]:
        compiler.left -= 1
        if not levels or compiler.left < 0:
            compiler.refuse(position, levels)
        levels -= 1
        value: dict[str, Any] = {}
        number = -1
        while True:
            delta = data[position]
            position += 1
            if delta >= SMALL:
                delta, position = read_long_uint(data, position - 1)
            if not delta:
                return value, position
            number += delta
            try:
                name, reader = fields[number]
            except KeyError:
                name, type_number = field_of(definition, number, position)
                reader = compiler.reader(type_number, position, None)
                fields[number] = name, reader
            value[name], position = reader(data, position, levels)

    return read


def _projected_reader(compiler: "Compiler", definition: StructDefinition, projection: Projection) -> Reader:
    readers: dict[int, tuple[str, Reader]] = {}
    walkers: dict[int, Walker] = {}

    def learn(number: int, position: int) -> None:
        name, type_number = field_of(definition, number, position)
        if name in projection:
            readers[number] = name, compiler.reader(type_number, position, projection[name])
        else:
            walkers[number] = compiler.walker(type_number, position)

    def read(data: bytearray, position: int, levels: int) -> tuple[dict[str, Any], int]:
        compiler.left -= 1
        if not levels or compiler.left < 0:
            compiler.refuse(position, levels)
        levels -= 1
        value: dict[str, Any] = {}
        number = -1
        while True:
            delta = data[position]
            position += 1
            if delta >= SMALL:
                delta, position = read_long_uint(data, position - 1)
            if not delta:
                return value, position
            number += delta
            if number not in readers and number not in walkers:
                learn(number, position)
            if number in walkers:
                position = walkers[number](data, position, levels)
            else:
                name, reader = readers[number]
                value[name], position = reader(data, position, levels)

    return read


def _list_reader(compiler: "Compiler", element: int, length: int | None, projection: Projection | None) -> Reader:
    reader: Reader | None = None

    def read(data: bytearray, position: int, levels: int) -> tuple[list[Any], int]:
        nonlocal reader
        count, position = read_uint(data, position)
        compiler.enter(position, levels, count)
        check_length(count, length, position)
        if reader is None:
            reader = compiler.reader(element, position, projection)
        values = []
        levels -= 1
        for _ in range(count):
            value, position = reader(data, position, levels)
            values.append(value)
        return values, position

    return read


# Keys of these types are keys of a dict.
_SCALARS = frozenset({registry.BOOL, registry.INT, registry.UINT, registry.FLOAT, registry.COMPLEX, registry.BYTES})


def _map_reader(compiler: "Compiler", definition: MapDefinition, projection: Projection | None) -> Reader:
    readers: tuple[Reader, Reader] | None = None
    plain = dict if definition.key == registry.STRING else KeyedMap

    def read(data: bytearray, position: int, levels: int) -> tuple[dict[Any, Any], int]:
        nonlocal readers
        count, position = read_uint(data, position)
        compiler.enter(position, levels, count)
        if readers is None:
            key_reader = compiler.reader(definition.key, position, None)
            readers = key_reader, compiler.reader(definition.element, position, projection)
        read_key, read_element = readers
        levels -= 1
        value: dict[Any, Any] = plain()
        for _ in range(count):
            key, position = read_key(data, position, levels)
            value[key], position = read_element(data, position, levels)
        return value, position

    if definition.key in _SCALARS or definition.key == registry.STRING:
        return read
    return _pairs_reader(compiler, definition, projection)


def _pairs_reader(compiler: "Compiler", definition: MapDefinition, projection: Projection | None) -> Reader:
    readers: tuple[Reader, Reader] | None = None

    def read(data: bytearray, position: int, levels: int) -> tuple[MapValue, int]:
        nonlocal readers
        count, position = read_uint(data, position)
        compiler.enter(position, levels, count)
        if readers is None:
            key_reader = compiler.reader(definition.key, position, None)
            readers = key_reader, compiler.reader(definition.element, position, projection)
        read_key, read_element = readers
        levels -= 1
        pairs: dict[Any, tuple[Any, Any]] = {}
        for _ in range(count):
            key, position = read_key(data, position, levels)
            value, position = read_element(data, position, levels)
            pairs[_hashable(key)] = key, value
        return MapValue(list(pairs.values())), position

    return read


def _hashable(key: Any) -> Any:
    """Return something that is equal where two keys are, as Go compares them."""
    if isinstance(key, list):
        return tuple(map(_hashable, key))
    if isinstance(key, dict):
        return tuple((name, _hashable(value)) for name, value in key.items())
    if isinstance(key, Interface):
        return key.name, _hashable(key.value)
    if isinstance(key, MapValue):
        return tuple((_hashable(name), _hashable(value)) for name, value in key.pairs)
    return key


def single_reader(reader: Reader) -> Reader:
    """Return the reader of a value at the top that is not a struct: a zero stands before it."""

    def read(data: bytearray, position: int, levels: int) -> tuple[Any, int]:
        zero, position = read_uint(data, position)
        if zero:
            raise Fault(position, "a lone value must start with 0")
        return reader(data, position, levels)

    return read
