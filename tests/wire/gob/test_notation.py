"""The JSON notation of values."""

import json
import math
from typing import Any

import pytest

from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.notation import to_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        ((1 << 64) - 1, "18446744073709551615"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e22, "1e+22"),
        (math.nan, '{"$float": "NaN"}'),
        (math.inf, '{"$float": "+Inf"}'),
        (-math.inf, '{"$float": "-Inf"}'),
        (complex(1, -math.inf), '{"$complex": [1.0, {"$float": "-Inf"}]}'),
        ("ä\x00", '"ä\\u0000"'),
        ("a\udcff", '{"$string": "61ff"}'),
        (b"\x00\xff", '{"$bytes": "00ff"}'),
        (gob.Opaque(b"\x01"), '{"$opaque": "01"}'),
        ([], "[]"),
        ([1, "a", [b""]], '[1, "a", [{"$bytes": ""}]]'),
        ({}, "{}"),
        ({"A": {"B": 1.5}}, '{"A": {"B": 1.5}}'),
        ({"b": 1, "\udcff": 2, "ä": 3}, '{"$map": [["b", 1], ["ä", 3], [{"$string": "ff"}, 2]]}'),
        (gob.KeyedMap(), '{"$map": []}'),
        (gob.KeyedMap({10: "a", 9: "b", -1: "c"}), '{"$map": [[-1, "c"], [10, "a"], [9, "b"]]}'),
        (gob.MapValue([({"Y": 1, "X": 2}, 1), ({}, 2)]), '{"$map": [[{"Y": 1, "X": 2}, 1], [{}, 2]]}'),
        (gob.Interface("T", None), '{"$iface": "T", "$value": null}'),
        (gob.Interface("\udc80", [1]), '{"$iface": {"$string": "80"}, "$value": [1]}'),
    ],
)
def test_notation(value: Any, expected: str) -> None:
    """Each value has its JSON; what is ordered by keys is ordered by their JSON."""
    assert json.dumps(to_json(value), ensure_ascii=False) == expected


def test_no_value() -> None:
    """What no decoder returns has no notation."""
    with pytest.raises(TypeError, match="no gob value"):
        to_json(object())
