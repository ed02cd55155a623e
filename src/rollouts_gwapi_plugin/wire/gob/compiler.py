"""Which closure reads, or walks, values of a type; and the two types that closures alone can't do.

Interfaces are read here, since they reach outside of the message: the type of what is in them may be defined on the
spot, and the value then goes on in a later message. The stream (`Continuation`) appends that message to the bytes that
are being read, so positions only grow; if it has not come yet, the stream gives up by an exception of its own and reads
the value again from its start when there is more.
"""

from typing import NoReturn, Protocol

from rollouts_gwapi_plugin.wire.gob import registry
from rollouts_gwapi_plugin.wire.gob.definitions import StructDefinition
from rollouts_gwapi_plugin.wire.gob.limits import INTERFACE_NAME_BYTES, Limits
from rollouts_gwapi_plugin.wire.gob.readers import BUILT_IN_READERS, Reader, reader_of, single_reader
from rollouts_gwapi_plugin.wire.gob.registry import TypeRegistry
from rollouts_gwapi_plugin.wire.gob.values import Interface, Projection
from rollouts_gwapi_plugin.wire.gob.varint import Fault, missing, read_int, read_uint
from rollouts_gwapi_plugin.wire.gob.walkers import BUILT_IN_WALKERS, Walker, walker_of


class Continuation(Protocol):
    """What reading an interface needs of the stream."""

    def offset_of(self, position: int) -> int:
        """Return where in the stream a position is."""

    def append_next(self, data: bytearray) -> None:
        """Append the next message that is not a definition to the bytes that are being read."""


class Compiler:
    """Makes and keeps the readers and walkers of one stream."""

    def __init__(self, types: TypeRegistry, limits: Limits, stream: Continuation) -> None:
        self._types = types
        self._limits = limits
        self._stream = stream
        # Structs and elements that may still be built for this value.
        self.left = limits.values
        self._walkers: dict[int, Walker] = {**BUILT_IN_WALKERS, registry.INTERFACE: self._walk_interface}
        self._readers: dict[tuple[int, int], Reader] = {}
        self._readers_at_top: dict[tuple[int, int], Reader] = {}
        # Readers are kept by the identity of their projection, so it must live as long as they do.
        self._projections: dict[int, Projection | None] = {}

    def begin(self) -> None:
        """Get ready for a new value."""
        self.left = self._limits.values

    def too_deep(self, position: int) -> Fault:
        """Return the fault of a value with too many levels."""
        return Fault(position, f"more than {self._limits.nesting} levels")

    def enter(self, position: int, levels: int, count: int) -> None:
        """Count elements before they are built; raise `Fault` where there are too many, or too deep."""
        self.left -= count
        if not levels or self.left < 0:
            self.refuse(position, levels)

    def refuse(self, position: int, levels: int) -> NoReturn:
        """Raise the fault of a value with too many levels, or else with too many structs and elements."""
        if not levels:
            raise self.too_deep(position)
        raise Fault(position, f"more than {self._limits.values} structs and elements in a value")

    def walker(self, number: int, position: int) -> Walker:
        """Return the walker of a type."""
        walker = self._walkers.get(number)
        if walker is None:
            walker = self._walkers[number] = walker_of(self, self._types.get(number, position))
        return walker

    def reader(self, number: int, position: int, projection: Projection | None) -> Reader:
        """Return the reader of a type."""
        if number in BUILT_IN_READERS:
            return BUILT_IN_READERS[number]
        key = number, id(projection)
        reader = self._readers.get(key)
        if reader is None:
            if number == registry.INTERFACE:
                reader = self._interface_reader(projection)
            else:
                reader = reader_of(self, self._types.get(number, position), projection)
            self._projections[id(projection)] = projection
            self._readers[key] = reader
        return reader

    def reader_at_top(self, number: int, position: int, projection: Projection | None) -> Reader:
        """Return the reader of a type whose value stands alone: in a message, or in an interface."""
        key = number, id(projection)
        reader = self._readers_at_top.get(key)
        if reader is None:
            self._types.check(number, position)
            reader = self.reader(number, position, projection)
            if not self._is_struct(number, position):
                reader = single_reader(reader)
            self._readers_at_top[key] = reader
            self._projections[id(projection)] = projection
        return reader

    def _is_struct(self, number: int, position: int) -> bool:
        return number not in registry.BUILT_IN and isinstance(self._types.get(number, position), StructDefinition)

    def _interface_reader(self, projection: Projection | None) -> Reader:
        def read(data: bytearray, position: int, levels: int) -> tuple[Interface | None, int]:
            start, end = self._read_name(data, position)
            if start == end:
                return None, end
            name = data[start:end].decode("utf-8", "surrogateescape")
            number, position = self._read_content_type(data, end)
            self.enter(position, levels, 1)
            value, position = self.reader_at_top(number, position, projection)(data, position, levels - 1)
            return Interface(name, value), position

        return read

    def _walk_interface(self, data: bytearray, position: int, levels: int) -> int:
        start, end = self._read_name(data, position)
        if start == end:
            return end
        number, position = self._read_content_type(data, end)
        if not levels:
            raise self.too_deep(position)
        if not self._is_struct(number, position):
            zero, position = read_uint(data, position)
            if zero:
                raise Fault(position, "a lone value must start with 0")
        return self.walker(number, position)(data, position, levels - 1)

    @staticmethod
    def _read_name(data: bytearray, position: int) -> tuple[int, int]:
        """Return where the name of a registered type begins and ends."""
        size, position = read_uint(data, position)
        if size > INTERFACE_NAME_BYTES:
            raise Fault(position, f"a type name of {size} bytes; {INTERFACE_NAME_BYTES} are the most")
        if position + size > len(data):
            raise missing(data, position, size)
        return position, position + size

    def _read_content_type(self, data: bytearray, position: int) -> tuple[int, int]:
        """Read the number of the type in an interface, and the types that are defined before it.

        A definition closes its message, and the value goes on in a later one; inside of another interface it can't, and
        the length of the rest follows instead. The length of the value, which comes last, counts only up to the first
        definition in it, so it is no use.
        """
        number, position = read_int(data, position)
        while number < 0:
            position = self._types.define(-number, data, position, self._stream.offset_of(position))
            if position == len(data):
                self._stream.append_next(data)
            else:
                _, position = read_uint(data, position)
            number, position = read_int(data, position)
        if number == registry.INTERFACE:
            raise Fault(position, "an interface in an interface")
        _, position = read_uint(data, position)
        return number, position
