"""What the gob tests share: values of drawn types, and a writer that cuts values into messages as Go does."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.varint import encode_int, encode_uint

SCALARS = [gob.BOOL, gob.INT, gob.UINT, gob.FLOAT, gob.COMPLEX, gob.BYTES, gob.STRING]
KEYS = st.sampled_from([gob.BOOL, gob.INT, gob.UINT, gob.FLOAT, gob.STRING])
# A struct and a slice that contain themselves, as in a list and in a tree.
NODE = gob.StructOf("Node")
NODE.fields = (gob.Field("Next", NODE), gob.Field("Kids", gob.SliceOf(NODE)), gob.Field("Value", gob.INT))
TEXT = st.text(st.characters(codec="utf-8"), max_size=5) | st.binary(max_size=3).map(
    lambda raw: raw.decode("utf-8", "surrogateescape")
)
Typed = tuple[gob.GoType, Any]


def structs(fields: st.SearchStrategy[gob.GoType]) -> st.SearchStrategy[gob.GoType]:
    """Draw structs of drawn fields."""
    return st.builds(
        lambda name, types: gob.StructOf(name, tuple(gob.Field(f"F{n}", one) for n, one in enumerate(types))),
        st.sampled_from(["", "main.S", "größe"]),
        st.lists(fields, max_size=4),
    )


def containers(inner: st.SearchStrategy[gob.GoType]) -> st.SearchStrategy[gob.GoType]:
    """Draw types made of drawn types."""
    keys = KEYS | structs(KEYS) | st.builds(gob.ArrayOf, KEYS, st.just(2))
    return st.one_of(
        st.builds(gob.SliceOf, inner, st.sampled_from(["", "main.L"])),
        st.builds(gob.ArrayOf, inner, st.integers(0, 3)),
        st.builds(gob.MapOf, keys, inner),
        structs(inner),
    )


TYPES: st.SearchStrategy[gob.GoType] = st.recursive(
    st.sampled_from([*SCALARS, gob.INTERFACE, NODE, gob.OpaqueOf("T"), gob.OpaqueOf("U", 6), gob.EMPTY_STRUCT]),
    containers,
    max_leaves=6,
)
CONTENT_TYPES: st.SearchStrategy[gob.GoType] = TYPES.filter(lambda go_type: go_type != gob.INTERFACE)
SIMPLE: dict[gob.GoType, st.SearchStrategy[Any]] = {
    gob.BOOL: st.booleans(),
    gob.INT: st.integers(-(1 << 63), (1 << 63) - 1),
    gob.UINT: st.integers(0, (1 << 64) - 1),
    gob.FLOAT: st.floats(),
    gob.COMPLEX: st.complex_numbers(),
    gob.BYTES: st.binary(max_size=5),
    gob.STRING: TEXT,
}


@st.composite
def values(draw: st.DrawFn, go_type: gob.GoType, levels: int = 4) -> Any:
    """Draw a value of a type."""
    if go_type in SIMPLE:
        return draw(SIMPLE[go_type])
    if isinstance(go_type, gob.OpaqueOf):
        return gob.Opaque(draw(st.binary(max_size=4)))
    if go_type == gob.INTERFACE:
        return draw(interfaces(levels))
    return draw(composites(go_type, levels))


@st.composite
def composites(draw: st.DrawFn, go_type: gob.GoType, levels: int) -> Any:
    """Draw a value of a struct or a container."""
    if isinstance(go_type, gob.StructOf):
        sent = [field for field in go_type.fields if levels and draw(st.booleans())]
        return {field.name: draw(values(field.type, levels - 1)) for field in sent}
    if isinstance(go_type, gob.MapOf):
        pairs = draw(st.lists(st.tuples(values(go_type.key, 1), values(go_type.element, levels - 1)), max_size=3))
        unique = {repr(meaning(go_type.key, key)): (key, value) for key, value in pairs}
        return gob.MapValue(list(unique.values()))
    assert isinstance(go_type, gob.SliceOf | gob.ArrayOf)
    most = 3 if levels > 0 else 0
    count = go_type.length if isinstance(go_type, gob.ArrayOf) else draw(st.integers(0, most))
    return [draw(values(go_type.element, levels - 1)) for _ in range(count)]


@st.composite
def interfaces(draw: st.DrawFn, levels: int) -> gob.Interface | None:
    """Draw nil, or a value of a drawn type under a name."""
    if levels <= 0 or draw(st.booleans()):
        return None
    content: gob.GoType = draw(CONTENT_TYPES)
    return gob.Interface(draw(st.sampled_from(["a", "main.B", "\udcff"])), draw(values(content, levels - 1)), content)


def typed(go_type: gob.GoType) -> st.SearchStrategy["Typed"]:
    """Draw a value beside its type."""
    return st.tuples(st.just(go_type), values(go_type))


TYPED: st.SearchStrategy[Typed] = TYPES.flatmap(typed)


def meaning(go_type: gob.GoType, value: Any, *, in_struct: bool = False) -> Any:
    """Return what a decoder makes of a value: in a struct, zeros are gone."""
    if isinstance(go_type, gob.StructOf):
        known = {field.name: field.type for field in go_type.fields}
        fields = {name: meaning(known[name], field, in_struct=True) for name, field in value.items()}
        return {name: fields[name] for name in known if name in fields and fields[name] is not ABSENT}
    if isinstance(go_type, gob.MapOf):
        return meaning_of_map(go_type, value)
    if in_struct and not value and not isinstance(go_type, gob.OpaqueOf | gob.ArrayOf):
        return ABSENT
    if isinstance(go_type, gob.ArrayOf | gob.SliceOf):
        return [meaning(go_type.element, element) for element in value]
    if isinstance(value, gob.Interface) and value.go_type:
        return gob.Interface(value.name, meaning(value.go_type, value.value))
    return value


def meaning_of_map(go_type: gob.MapOf, value: gob.MapValue) -> Any:
    """Return what a decoder makes of a map."""
    pairs = [(meaning(go_type.key, key), meaning(go_type.element, element)) for key, element in value.pairs]
    if isinstance(go_type.key, gob.StructOf | gob.ArrayOf):
        return gob.MapValue(pairs)
    return dict(pairs) if go_type.key == gob.STRING else gob.KeyedMap(pairs)


ABSENT = object()


class GoStyleWriter:
    """Writes values as Go's encoder does: a type that is new in the midst of a value is defined on the spot.

    The definition closes the message, and the value goes on in a later one; inside of an interface all stays in the
    message of the outer value. The encoder under test lends its definitions and its scalars.
    """

    def __init__(self) -> None:
        self._lender = gob.Encoder()
        self._known: set[int] = set()
        self._outputs = [bytearray()]

    def write(self, go_type: gob.GoType, value: Any) -> bytes:
        """Return the messages of a value."""
        stream = self._outputs[0]
        stream.clear()
        message = bytearray()
        self._describe(go_type, message)
        message += encode_int(self._number(go_type))
        self._top(message, go_type, value)
        close(stream, message)
        return bytes(stream)

    def _number(self, go_type: gob.GoType) -> int:
        return self._lender._number(go_type)

    def _describe(self, go_type: gob.GoType, message: bytearray) -> None:
        number = self._number(go_type)
        if isinstance(go_type, gob.types.BuiltIn) or number in self._known:
            return
        self._known.add(number)
        message += encode_int(-number) + self._lender._definition(go_type)
        close(self._outputs[-1], message)
        for named in gob.encode._named_by(go_type):
            self._describe(named, message)

    def _top(self, message: bytearray, go_type: gob.GoType, value: Any) -> None:
        if not isinstance(go_type, gob.StructOf):
            message += b"\x00"
        self._value(message, go_type, value)

    def _value(self, message: bytearray, go_type: gob.GoType, value: Any) -> None:
        if go_type == gob.INTERFACE:
            self._interface(message, value)
        elif isinstance(go_type, gob.StructOf):
            self._struct(message, go_type, value)
        elif isinstance(go_type, gob.MapOf):
            message += encode_uint(len(value.pairs))
            for key, element in value.pairs:
                self._value(message, go_type.key, key)
                self._value(message, go_type.element, element)
        elif isinstance(go_type, gob.SliceOf | gob.ArrayOf):
            message += encode_uint(len(value))
            for element in value:
                self._value(message, go_type.element, element)
        else:
            message += self._lender._value(go_type, value, "", 99)

    def _struct(self, message: bytearray, go_type: gob.StructOf, value: Any) -> None:
        delta = 1
        for field in go_type.fields:
            absent = field.name not in value or meaning(field.type, value[field.name], in_struct=True) is ABSENT
            if absent:
                delta += 1
                continue
            message += encode_uint(delta)
            self._value(message, field.type, value[field.name])
            delta = 1
        message += b"\x00"

    def _interface(self, message: bytearray, value: Any) -> None:
        if value is None:
            message += b"\x00"
            return
        name = value.name.encode("utf-8", "surrogateescape")
        message += encode_uint(len(name)) + name
        self._describe(value.go_type, message)
        message += encode_int(self._number(value.go_type))
        self._outputs.append(message)
        content = bytearray()
        self._top(content, value.go_type, value.value)
        self._outputs.pop()
        close(message, content)


def close(output: bytearray, message: bytearray) -> None:
    """Write a message with its length before it, and begin anew."""
    output += encode_uint(len(message)) + message
    message.clear()


@pytest.fixture(scope="session")
def typed_values() -> st.SearchStrategy[Typed]:
    """Return a strategy of types with a value of each."""
    return TYPED


@pytest.fixture(scope="session")
def meaning_of() -> Callable[..., Any]:
    """Return what a value of a type is after it has travelled."""
    return meaning


@pytest.fixture(scope="session")
def go_style() -> Callable[[], GoStyleWriter]:
    """Return a maker of writers that cut values into messages as Go does."""
    return GoStyleWriter


@pytest.fixture(scope="session")
def node() -> gob.StructOf:
    """Return a type that contains itself."""
    return NODE
