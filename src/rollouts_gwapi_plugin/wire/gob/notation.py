"""Values as JSON, for people and for comparing: what JSON can't say is an object with one key that starts with `$`.

============================  ==================================================
string that is not UTF-8      `{"$string": hex}`
NaN and infinities            `{"$float": "NaN"}`, `"+Inf"`, `"-Inf"`
complex                       `{"$complex": [real, imaginary]}`
[]byte                        `{"$bytes": hex}`
map whose keys are not UTF-8  `{"$map": [[key, value], ...]}`, sorted by the JSON of the key
interface                     null, or `{"$iface": name, "$value": value}`
value that encodes itself     `{"$opaque": hex}`
============================  ==================================================
"""

import json
import math
from collections.abc import Iterable
from typing import Any

from rollouts_gwapi_plugin.wire.gob.values import Interface, KeyedMap, MapValue, Opaque


def to_json(value: Any) -> Any:
    """Return a decoded value as something that `json` can write."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return _number(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, list):
        return [to_json(element) for element in value]
    if isinstance(value, dict):
        return _mapping(value)
    return _special(value)


def _special(value: Any) -> Any:
    if isinstance(value, Interface):
        return {"$iface": _text(value.name), "$value": to_json(value.value)}
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, Opaque):
        return {"$opaque": value.data.hex()}
    if isinstance(value, complex):
        return {"$complex": [_number(value.real), _number(value.imag)]}
    if isinstance(value, MapValue):
        return _pairs(value.pairs)
    raise TypeError(f"no gob value: {value!r}")


def _text(value: str) -> Any:
    raw = value.encode("utf-8", "surrogateescape")
    return value if _is_utf8(value) else {"$string": raw.hex()}


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: float) -> Any:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return {"$float": "NaN"}
    return {"$float": "+Inf" if value > 0 else "-Inf"}


def _mapping(value: dict[Any, Any]) -> Any:
    if isinstance(value, KeyedMap) or not all(map(_is_utf8, value)):
        return _pairs(value.items())
    return {key: to_json(element) for key, element in value.items()}


def _pairs(pairs: Iterable[tuple[Any, Any]]) -> Any:
    written = [[to_json(key), to_json(value)] for key, value in pairs]
    return {"$map": sorted(written, key=lambda pair: _compact(pair[0]))}


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
