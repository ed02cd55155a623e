"""Encoder of a gob stream: values in, bytes out, as Go writes them.

`encode` returns the definitions that the stream has not had yet, and the value, each a message of its own. The types of
values in interfaces are defined before the value, too, never in its midst: Go takes both, and no value spans messages.

In a struct zero is not sent, as in Go, but for structs, arrays and maps; a field that is absent from the dict, or None,
is not sent either. If a value does not fit its type, `GobError` says where, and the stream is as it was before the
call.
"""

from collections.abc import Callable, Iterable
from typing import Any

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire.gob.limits import NESTING
from rollouts_gwapi_plugin.wire.gob.registry import FIRST_USER_TYPE
from rollouts_gwapi_plugin.wire.gob.types import (
    BOOL,
    BYTES,
    COMPLEX,
    FLOAT,
    INT,
    INTERFACE,
    STRING,
    UINT,
    ArrayOf,
    BuiltIn,
    GoType,
    MapOf,
    OpaqueOf,
    SliceOf,
    StructOf,
)
from rollouts_gwapi_plugin.wire.gob.values import Interface, MapValue, Opaque
from rollouts_gwapi_plugin.wire.gob.varint import encode_float, encode_int, encode_uint

_INT64 = range(-(1 << 63), 1 << 63)
_UINT64 = range(1 << 64)


class Encoder:
    """Writes the values of one stream."""

    def __init__(self) -> None:
        self._numbers: dict[GoType, int] = {}
        self._definitions = bytearray()

    def encode(self, go_type: GoType, value: Any) -> bytes:
        """Return a value, and the definitions of its types that are new to the stream."""
        return self.encode_all([(go_type, value)])

    def encode_all(self, values: Iterable[tuple[GoType, Any]]) -> bytes:
        """Return several values; none of them is taken as sent if one can't be encoded."""
        known = len(self._numbers)
        encoded = bytearray()
        try:
            for go_type, value in values:
                self._definitions.clear()
                body = self._value_at_top(go_type, value, go_type_name(go_type), NESTING)
                message = encode_int(self._number(go_type)) + body
                encoded += self._definitions + encode_uint(len(message)) + message
        except GobError:
            for new in list(self._numbers)[known:]:
                del self._numbers[new]
            raise
        return bytes(encoded)

    def _number(self, go_type: GoType) -> int:
        """Return a type's number; define it, and all that it names, if it is new."""
        if isinstance(go_type, BuiltIn):
            return go_type.number
        if go_type not in self._numbers:
            self._define(go_type)
        return self._numbers[go_type]

    def _define(self, go_type: GoType) -> None:
        waiting = [go_type]
        while waiting:
            current = waiting.pop()
            if isinstance(current, BuiltIn) or current in self._numbers:
                continue
            self._numbers[current] = FIRST_USER_TYPE + len(self._numbers)
            waiting.extend(reversed(_named_by(current)))
        # Numbers first, so that types can name each other.
        for current in list(self._numbers)[self._numbers[go_type] - FIRST_USER_TYPE :]:
            message = encode_int(-self._numbers[current]) + self._definition(current)
            self._definitions += encode_uint(len(message)) + message

    def _definition(self, go_type: GoType) -> bytes:
        """Return the `wireType` of a type."""
        assert not isinstance(go_type, BuiltIn)  # noqa: S101 - for the type checker; built-in types have no definition
        name = go_type.name.encode()
        common = (b"\x01" + encode_uint(len(name)) + name + b"\x01" if name else b"\x02") + encode_int(
            self._numbers[go_type]
        )
        body = b""
        if isinstance(go_type, StructOf):
            body = self._field_definitions(go_type)
        elif isinstance(go_type, MapOf):
            body = b"\x01" + encode_int(self._number(go_type.key)) + b"\x01" + encode_int(self._number(go_type.element))
        elif isinstance(go_type, SliceOf | ArrayOf):
            body = b"\x01" + encode_int(self._number(go_type.element))
            if isinstance(go_type, ArrayOf) and go_type.length:
                body += b"\x01" + encode_int(go_type.length)
        return bytes((go_type.kind, 1)) + common + b"\x00" + body + b"\x00\x00"

    def _field_definitions(self, go_type: StructOf) -> bytes:
        if not go_type.fields:
            return b""
        body = b"\x01" + encode_uint(len(go_type.fields))
        for field in go_type.fields:
            name = field.name.encode()
            body += b"\x01" + encode_uint(len(name)) + name + b"\x01" + encode_int(self._number(field.type)) + b"\x00"
        return body

    def _value_at_top(self, go_type: GoType, value: Any, path: str, levels: int) -> bytes:
        """Return a value that stands alone; before one that is not a struct there is a zero."""
        body = self._value(go_type, value, path, levels)
        return body if isinstance(go_type, StructOf) else b"\x00" + body

    def _value(self, go_type: GoType, value: Any, path: str, levels: int) -> bytes:
        if not levels:
            raise GobError(f"can't encode {path[:100]}...: more than {NESTING} levels")
        if go_type == INTERFACE:
            return self._interface(value, path, levels - 1)
        if isinstance(go_type, BuiltIn):
            return _SCALARS[go_type](value, path)
        if isinstance(go_type, OpaqueOf):
            _check(value, Opaque, path, go_type)
            return _sized(value.data)
        if isinstance(go_type, StructOf):
            return self._struct(go_type, value, path, levels - 1)
        if isinstance(go_type, MapOf):
            return self._map(go_type, value, path, levels - 1)
        return self._list(go_type, value, path, levels - 1)

    def _struct(self, go_type: StructOf, value: Any, path: str, levels: int) -> bytes:
        _check(value, dict, path, go_type)
        names = {field.name for field in go_type.fields}
        unknown = sorted(str(name) for name in value if name not in names)
        if unknown:
            raise GobError(f"can't encode {path}: {go_type_name(go_type)} has no field {unknown[0]}")
        encoded = bytearray()
        delta = 1
        for field in go_type.fields:
            content = value.get(field.name)
            if content is None or _is_omitted(field.type, content):
                delta += 1
                continue
            encoded += encode_uint(delta) + self._value(field.type, content, f"{path}.{field.name}", levels)
            delta = 1
        return bytes(encoded) + b"\x00"

    def _list(self, go_type: SliceOf | ArrayOf, value: Any, path: str, levels: int) -> bytes:
        _check(value, list, path, go_type)
        if isinstance(go_type, ArrayOf) and len(value) != go_type.length:
            raise GobError(f"can't encode {path}: {len(value)} elements in an array of {go_type.length}")
        elements = (
            self._value(go_type.element, element, f"{path}[{index}]", levels) for index, element in enumerate(value)
        )
        return encode_uint(len(value)) + b"".join(elements)

    def _map(self, go_type: MapOf, value: Any, path: str, levels: int) -> bytes:
        if isinstance(value, MapValue):
            pairs: list[tuple[Any, Any]] = value.pairs
        else:
            _check(value, dict, path, go_type)
            pairs = list(value.items())
        encoded = bytearray(encode_uint(len(pairs)))
        for key, element in pairs:
            encoded += self._value(go_type.key, key, f"{path} key", levels)
            encoded += self._value(go_type.element, element, f"{path}[{key!r}]", levels)
        return bytes(encoded)

    def _interface(self, value: Any, path: str, levels: int) -> bytes:
        if value is None:
            return b"\x00"
        _check(value, Interface, path, INTERFACE)
        if value.go_type is None or value.go_type == INTERFACE:
            raise GobError(f"can't encode {path}: an interface with {value.name} needs the type of its value")
        body = self._value_at_top(value.go_type, value.value, f"{path}({value.name})", levels)
        return _string(value.name, path) + encode_int(self._number(value.go_type)) + _sized(body)


def go_type_name(go_type: GoType) -> str:
    """Return how an error names a type."""
    return go_type.name or type(go_type).__name__


def _named_by(go_type: GoType) -> list[GoType]:
    if isinstance(go_type, StructOf):
        return [field.type for field in go_type.fields]
    if isinstance(go_type, MapOf):
        return [go_type.key, go_type.element]
    if isinstance(go_type, SliceOf | ArrayOf):
        return [go_type.element]
    return []


def _is_omitted(go_type: GoType, value: Any) -> bool:
    """Tell whether Go leaves a field of this type and value out."""
    return not isinstance(go_type, StructOf | ArrayOf | MapOf | OpaqueOf) and (value in (0, "", b"") or value == [])


def _check(value: Any, wanted: type | tuple[type, ...], path: str, go_type: GoType) -> None:
    if not isinstance(value, wanted):
        raise GobError(f"can't encode {path}: {type(value).__name__} is no {go_type_name(go_type)}")


def _sized(data: bytes) -> bytes:
    return encode_uint(len(data)) + data


def _bool(value: Any, path: str) -> bytes:
    _check(value, bool, path, BOOL)
    return b"\x01" if value else b"\x00"


def _int(value: Any, path: str) -> bytes:
    _check(value, int, path, INT)
    if value not in _INT64:
        raise GobError(f"can't encode {path}: {value} needs more than 64 bits")
    return encode_int(value)


def _uint(value: Any, path: str) -> bytes:
    _check(value, int, path, UINT)
    if value not in _UINT64:
        raise GobError(f"can't encode {path}: {value} is no unsigned integer of 64 bits")
    return encode_uint(value)


def _float(value: Any, path: str) -> bytes:
    _check(value, (float, int), path, FLOAT)
    return encode_float(value)


def _complex(value: Any, path: str) -> bytes:
    _check(value, complex, path, COMPLEX)
    return encode_float(value.real) + encode_float(value.imag)


def _bytes(value: Any, path: str) -> bytes:
    _check(value, bytes, path, BYTES)
    return _sized(value)


def _string(value: Any, path: str) -> bytes:
    _check(value, str, path, STRING)
    return _sized(value.encode("utf-8", "surrogateescape"))


_SCALARS: dict[GoType, Callable[[Any, str], bytes]] = {
    BOOL: _bool,
    INT: _int,
    UINT: _uint,
    FLOAT: _float,
    COMPLEX: _complex,
    BYTES: _bytes,
    STRING: _string,
}
