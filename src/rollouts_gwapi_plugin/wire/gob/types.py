"""Go types, as far as gob tells them apart: what the encoder needs to know beside a value.

Types are compared by what they are, structs by identity: so a struct can have a field of its own type. Give it its
fields after it was made, `node.fields = (Field("Next", node),)`.
"""

from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from rollouts_gwapi_plugin.wire.gob import registry


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A type that every stream knows by this number; Go's int8 to int64 are one type, and so on."""

    name: str
    number: int


BOOL = BuiltIn("bool", registry.BOOL)
INT = BuiltIn("int", registry.INT)
UINT = BuiltIn("uint", registry.UINT)
FLOAT = BuiltIn("float64", registry.FLOAT)
BYTES = BuiltIn("[]byte", registry.BYTES)
STRING = BuiltIn("string", registry.STRING)
COMPLEX = BuiltIn("complex128", registry.COMPLEX)
INTERFACE = BuiltIn("interface", registry.INTERFACE)


@dataclass(frozen=True, slots=True)
class SliceOf:
    """A slice; a slice of bytes is BYTES."""

    element: "GoType"
    name: str = ""
    kind: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array."""

    element: "GoType"
    length: int
    name: str = ""
    kind: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map."""

    key: "GoType"
    element: "GoType"
    name: str = ""
    kind: ClassVar[int] = 4


@dataclass(frozen=True, slots=True)
class Field:
    """An exported field of a struct; a pointer has the type that it points to."""

    name: str
    type: "GoType"


@dataclass(eq=False, slots=True)
class StructOf:
    """A struct."""

    name: str
    fields: tuple[Field, ...] = field(default=(), repr=False)
    kind: ClassVar[int] = 3


@dataclass(frozen=True, slots=True)
class OpaqueOf:
    """A type that encodes itself; the kind says by which of Go's interfaces, 5 GobEncoder, 6 BinaryMarshaler."""

    name: str
    kind: int = 5


GoType: TypeAlias = BuiltIn | SliceOf | ArrayOf | MapOf | StructOf | OpaqueOf

# What a function without a result answers, and the body of an error reply.
EMPTY_STRUCT = StructOf("")
