"""encoding/gob: what Go sends for a value."""

from rollouts_gwapi_plugin.wire.gob.decode import Decoder
from rollouts_gwapi_plugin.wire.gob.encode import Encoder
from rollouts_gwapi_plugin.wire.gob.limits import Limits
from rollouts_gwapi_plugin.wire.gob.types import (
    BOOL,
    BYTES,
    COMPLEX,
    EMPTY_STRUCT,
    FLOAT,
    INT,
    INTERFACE,
    STRING,
    UINT,
    ArrayOf,
    Field,
    GoType,
    MapOf,
    OpaqueOf,
    SliceOf,
    StructOf,
)
from rollouts_gwapi_plugin.wire.gob.values import NEED_DATA, Interface, KeyedMap, MapValue, NeedData, Opaque, Projection

__all__ = [
    "BOOL",
    "BYTES",
    "COMPLEX",
    "EMPTY_STRUCT",
    "FLOAT",
    "INT",
    "INTERFACE",
    "NEED_DATA",
    "STRING",
    "UINT",
    "ArrayOf",
    "Decoder",
    "Encoder",
    "Field",
    "GoType",
    "Interface",
    "KeyedMap",
    "Limits",
    "MapOf",
    "MapValue",
    "NeedData",
    "Opaque",
    "OpaqueOf",
    "Projection",
    "SliceOf",
    "StructOf",
]
