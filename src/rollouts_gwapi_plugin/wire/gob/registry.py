"""The types that a stream has defined: kept as bytes until a value needs them.

A definition is read once, when the first value of its type is. The same definition may come by again where a value is
read a second time from its start; a second definition of a type is an error.
"""

from dataclasses import dataclass

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


@dataclass(slots=True)
class _Entry:
    """Where a definition stands in the stream, its bytes, and what it means once it was asked for."""

    offset: int
    raw: bytearray
    definition: Definition | None = None


class TypeRegistry:
    """The user's types of one stream by their numbers."""

    def __init__(self, limits: Limits, *, strict: bool) -> None:
        self._limits = limits
        self._strict = strict
        self._entries: dict[int, _Entry] = {}
        self._bytes = 0

    def keep(self, number: int, raw: bytearray, offset: int) -> None:
        """Keep a definition that is a message of its own; `offset` is where its bytes start in the stream."""
        self._add(number, _Entry(offset, raw), len(raw), 0)
        if self._strict:
            self.get(number, 0)

    def define(self, number: int, data: bytearray, position: int, offset: int) -> int:
        """Read a definition in the midst of a message; return the position after it."""
        definition, end = read_definition(data, position)
        known = self._entries.get(number)
        if known is None or known.offset != offset:
            self._add(number, _Entry(offset, bytearray(), definition), end - position, position)
        return end

    def _add(self, number: int, entry: _Entry, size: int, position: int) -> None:
        if number < FIRST_USER_TYPE:
            raise Fault(position, f"a definition of type {number}; numbers below {FIRST_USER_TYPE} are Go's own")
        if number in self._entries:
            raise Fault(position, f"a second definition of type {number}")
        self._bytes += size
        if len(self._entries) >= self._limits.types:
            raise Fault(position, f"more than {self._limits.types} types")
        if self._bytes > self._limits.definition_bytes:
            raise Fault(position, f"more than {self._limits.definition_bytes} bytes of type definitions")
        self._entries[number] = entry

    def get(self, number: int, position: int) -> Definition:
        """Return a type's definition; `position` is where a value of it begins."""
        entry = self._entries.get(number)
        if entry is None:
            raise Fault(position, f"a value of type {number}, which is not defined")
        if entry.definition is None:
            entry.definition = self._read(number, entry, position)
            entry.raw = bytearray()
        return entry.definition

    @staticmethod
    def _read(number: int, entry: _Entry, position: int) -> Definition:
        try:
            definition, end = read_definition(entry.raw, 0)
        except IndexError:
            fault = missing(entry.raw, len(entry.raw), 1)
        except Fault as found:
            fault = found
        else:
            if end == len(entry.raw):
                return definition
            fault = Fault(end, f"{len(entry.raw) - end} bytes after a type definition")
        place = entry.offset + fault.position
        raise Fault(position, f"the definition of type {number} is broken at byte {place}: {fault.text}") from fault

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


def _named_by(definition: Definition) -> list[int]:
    """Return the numbers of the types that a definition names."""
    if isinstance(definition, StructDefinition):
        return [number for _, number in definition.fields]
    if isinstance(definition, MapDefinition):
        return [definition.key, definition.element]
    if isinstance(definition, ArrayDefinition | SliceDefinition):
        return [definition.element]
    return []
