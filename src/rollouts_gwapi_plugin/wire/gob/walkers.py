"""Stepping over values that nobody reads: one closure a wire type, made when the first value of the type comes.

A walker takes the message, a position and the levels that a value may still have, and returns the position after the
value. Values have to be walked, since nothing in gob says how long a struct is; they are checked as those that are
built.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from rollouts_gwapi_plugin.wire.gob import registry
from rollouts_gwapi_plugin.wire.gob.definitions import (
    ArrayDefinition,
    Definition,
    MapDefinition,
    SliceDefinition,
    StructDefinition,
)
from rollouts_gwapi_plugin.wire.gob.varint import SMALL, Fault, missing, read_long_uint, read_uint

if TYPE_CHECKING:
    from rollouts_gwapi_plugin.wire.gob.compiler import Compiler

Walker: TypeAlias = Callable[[bytearray, int, int], int]


def walk_number(data: bytearray, position: int, levels: int) -> int:  # noqa: ARG001 - all walkers are called alike
    """Step over a bool, an integer or a float."""
    first = data[position]
    if first < SMALL:
        return position + 1
    return read_long_uint(data, position)[1]


def walk_complex(data: bytearray, position: int, levels: int) -> int:
    """Step over two floats."""
    return walk_number(data, walk_number(data, position, levels), levels)


def walk_bytes(data: bytearray, position: int, levels: int) -> int:  # noqa: ARG001 - as walk_number
    """Step over a length and as many bytes: a string, a []byte, a value that encodes itself."""
    size = data[position]
    position += 1
    if size >= SMALL:
        size, position = read_long_uint(data, position - 1)
    end = position + size
    if end > len(data):
        raise missing(data, position, size)
    return end


BUILT_IN_WALKERS: dict[int, Walker] = {
    registry.BOOL: walk_number,
    registry.INT: walk_number,
    registry.UINT: walk_number,
    registry.FLOAT: walk_number,
    registry.BYTES: walk_bytes,
    registry.STRING: walk_bytes,
    registry.COMPLEX: walk_complex,
}


def walker_of(compiler: "Compiler", definition: Definition) -> Walker:
    """Return the walker of a defined type."""
    if isinstance(definition, StructDefinition):
        return _struct_walker(compiler, definition)
    if isinstance(definition, MapDefinition):
        return _map_walker(compiler, definition)
    if isinstance(definition, ArrayDefinition):
        return _list_walker(compiler, definition.element, definition.length)
    if isinstance(definition, SliceDefinition):
        return _list_walker(compiler, definition.element, None)
    return walk_bytes


def _struct_walker(compiler: "Compiler", definition: StructDefinition) -> Walker:
    walkers: dict[int, Walker] = {}

    def walk(data: bytearray, position: int, levels: int) -> int:
        if not levels:
            raise compiler.too_deep(position)
        levels -= 1
        number = -1
        while True:
            delta = data[position]
            position += 1
            if delta >= SMALL:
                delta, position = read_long_uint(data, position - 1)
            if not delta:
                return position
            number += delta
            try:
                walker = walkers[number]
            except KeyError:
                _, type_number = field_of(definition, number, position)
                walker = walkers[number] = compiler.walker(type_number, position)
            position = walker(data, position, levels)

    return walk


def field_of(definition: StructDefinition, number: int, position: int) -> tuple[str, int]:
    """Return name and type of a struct's field by its number."""
    if number >= len(definition.fields):
        raise Fault(position, f"field {number} of a struct of {len(definition.fields)} fields")
    return definition.fields[number]


def _list_walker(compiler: "Compiler", element: int, length: int | None) -> Walker:
    walker: Walker | None = None

    def walk(data: bytearray, position: int, levels: int) -> int:
        nonlocal walker
        if not levels:
            raise compiler.too_deep(position)
        count, position = read_uint(data, position)
        check_length(count, length, position)
        if walker is None:
            walker = compiler.walker(element, position)
        for _ in range(count):
            position = walker(data, position, levels - 1)
        return position

    return walk


def check_length(count: int, length: int | None, position: int) -> None:
    """Raise `Fault` if an array has not the length of its type."""
    if length is not None and count != length:
        raise Fault(position, f"{count} elements in an array of {length}")


def _map_walker(compiler: "Compiler", definition: MapDefinition) -> Walker:
    walkers: tuple[Walker, Walker] | None = None

    def walk(data: bytearray, position: int, levels: int) -> int:
        nonlocal walkers
        if not levels:
            raise compiler.too_deep(position)
        count, position = read_uint(data, position)
        if walkers is None:
            walkers = compiler.walker(definition.key, position), compiler.walker(definition.element, position)
        walk_key, walk_element = walkers
        for _ in range(count):
            position = walk_element(data, walk_key(data, position, levels - 1), levels - 1)
        return position

    return walk
