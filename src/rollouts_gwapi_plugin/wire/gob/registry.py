"""The types that a stream has defined: kept as bytes until a value needs them.

A definition is read once, when the first value of its type is. The same definition may come by again where a value is
read a second time from its start; a second definition of a type is an error.
"""

from rollouts_gwapi_plugin.wire.gob.definitions import (
    ArrayDefinition,
    Definition,
    MapDefinition,
    SliceDefinition,
    StructDefinition,
    read_definition,
)
from rollouts_gwapi_plugin.wire.gob.limits import Limits
from rollouts_gwapi_plugin.wire.gob.varint import Fault, missing

# Numbers below are Go's own; it numbers the types of a program from here.
FIRST_USER_TYPE = 64
BOOL, INT, UINT, FLOAT, BYTES, STRING, COMPLEX, INTERFACE = range(1, 9)
BUILT_IN = range(BOOL, INTERFACE + 1)


class TypeRegistry:
    """The user's types of one stream by their numbers."""

    def __init__(self, limits: Limits, *, strict: bool) -> None:
        self._limits = limits
        self._strict = strict
        # Where in the stream each type is defined.
        self._offsets: dict[int, int] = {}
        # The definitions that nobody asked for yet, and those that somebody did.
        self._kept: dict[int, bytearray] = {}
        self._definitions: dict[int, Definition] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def keep(self, number: int, raw: bytearray, offset: int) -> None:
        """Keep a definition that is a message of its own; `offset` is where its bytes start in the stream."""
        self._bytes += len(raw)
        if number < FIRST_USER_TYPE or number in self._offsets or self._is_full():
            raise self._refused(number, 0)
        self._offsets[number] = offset
        self._kept[number] = raw
        if self._strict:
            self._definitions[number] = _read_whole(self._kept.pop(number))

    def define(self, number: int, data: bytearray, position: int, offset: int) -> int:
        """Read a definition in the midst of a message; return the position after it."""
        definition, end = read_definition(data, position)
        if self._offsets.get(number) != offset:
            self._bytes += end - position
            if number < FIRST_USER_TYPE or number in self._offsets or self._is_full():
                raise self._refused(number, position)
            self._offsets[number] = offset
            self._definitions[number] = definition
        return end

    def _is_full(self) -> bool:
        return len(self._offsets) >= self._limits.types or self._bytes > self._limits.definition_bytes

    def _refused(self, number: int, position: int) -> Fault:
        """Return why a definition is not taken."""
        if number < FIRST_USER_TYPE:
            return Fault(position, f"a definition of type {number}; numbers below {FIRST_USER_TYPE} are Go's own")
        if number in self._offsets:
            return Fault(position, f"a second definition of type {number}")
        if self._bytes > self._limits.definition_bytes:
            return Fault(position, f"more than {self._limits.definition_bytes} bytes of type definitions")
        return Fault(position, f"more than {self._limits.types} types")

    def get(self, number: int, position: int) -> Definition:
        """Return a type's definition; `position` is where a value of it begins."""
        definition = self._definitions.get(number)
        if definition is None:
            if number not in self._kept:
                raise Fault(position, f"a value of type {number}, which is not defined")
            try:
                definition = self._definitions[number] = _read_whole(self._kept.pop(number))
            except Fault as fault:
                place = self._offsets[number] + fault.position
                text = f"the definition of type {number} is broken at byte {place}: {fault.text}"
                raise Fault(position, text) from fault
        return definition

    def check(self, number: int, position: int) -> None:
        """If strict, read all definitions below a type; raise `Fault` where one is missing."""
        if not self._strict:
            return
        seen = set(BUILT_IN)
        waiting = [number]
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                waiting.extend(_named_by(self.get(current, position)))


def _read_whole(raw: bytearray) -> Definition:
    """Read a definition that is all that there is."""
    try:
        definition, end = read_definition(raw, 0)
    except IndexError:
        raise missing(raw, len(raw), 1) from None
    if end != len(raw):
        raise Fault(end, f"{len(raw) - end} bytes after a type definition")
    return definition


def _named_by(definition: Definition) -> list[int]:
    """Return the numbers of the types that a definition names."""
    if isinstance(definition, StructDefinition):
        return [number for _, number in definition.fields]
    if isinstance(definition, MapDefinition):
        return [definition.key, definition.element]
    if isinstance(definition, ArrayDefinition | SliceDefinition):
        return [definition.element]
    return []
