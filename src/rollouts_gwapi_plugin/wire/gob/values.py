"""What gob values become in Python.

========================================  =====================================================================
bool, int, uint, float, complex           `bool`, `int`, `float`, `complex`
string                                    `str`; bytes that are not UTF-8 are kept as surrogate escapes
[]byte                                    `bytes`
slice, array                              `list`
struct                                    `dict` of the Go field names that were sent
map with string keys                      `dict`
map with other scalar or []byte keys      `KeyedMap`, a dict
map with struct, array, interface keys    `MapValue`, pairs
interface                                 `Interface`, or None for nil
GobEncoder, BinaryMarshaler, ...          `Opaque`
========================================  =====================================================================
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from rollouts_gwapi_plugin.wire.gob.types import GoType

# The fields to build: None is "all that is below". It passes through interfaces, pointers, slices, arrays and maps.
Projection: TypeAlias = Mapping[str, "Projection | None"]


class NeedData(enum.Enum):
    """The type of `NEED_DATA`; None is a value (a nil interface)."""

    NEED_DATA = enum.auto()


NEED_DATA: Final[Literal[NeedData.NEED_DATA]] = NeedData.NEED_DATA


@dataclass(frozen=True, slots=True)
class Interface:
    """A value in an interface, under the name that its type is registered by.

    To be encoded it needs its type, too; a decoded one has none, and two that differ in nothing else are equal.
    """

    name: str
    value: Any
    go_type: "GoType | None" = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Bytes of a type that encodes itself (`time.Time` and others)."""

    data: bytes


class KeyedMap(dict[Any, Any]):
    """A map whose keys are not strings, so that an empty one can be told from an empty struct."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MapValue:
    """A map whose keys can't be keys of a dict; as in a map, each key is there once."""

    pairs: list[tuple[Any, Any]]
