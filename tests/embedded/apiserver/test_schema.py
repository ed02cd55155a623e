"""Pruning and defaults by structural schemas."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate
from rollouts_gwapi_plugin.embedded.apiserver.schema import fill_defaults, misshapen, prune

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "default": 1},
                "b": {"type": "object", "default": {}, "properties": {"c": {"type": "string", "default": "x"}}},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {}}},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {}}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"default": 2}}}},
                "null": {"type": "string", "nullable": True, "default": "y"},
                "plain": {"type": "string"},
            },
        }
    },
}
_KEYS = st.sampled_from(["a", "b", "c", "open", "map", "list", "null", "plain", "unknown"])
_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_KEYS, below, max_size=4),
    max_leaves=20,
)


def test_unknown_fields_go_and_are_named() -> None:
    """Fields that no schema knows are dropped at every depth, with their paths."""
    value = {"kind": "K", "spec": {"x": 1, "map": {"k": {"a": 1, "z": 1}}, "list": [{}, {"z": 1}]}}

    assert sorted(prune(value, _SCHEMA)) == ["spec.list[1].z", "spec.map.k.z", "spec.x"]
    assert value == {"kind": "K", "spec": {"map": {"k": {"a": 1}}, "list": [{}, {}]}}


def test_preserved_fields_stay() -> None:
    """Below x-kubernetes-preserve-unknown-fields everything stays as it is."""
    value = {"spec": {"open": {"a": {}, "z": [{"y": {"x": None}}]}, "any": [{"y": [{"x": 1}]}]}}

    assert prune(value, _SCHEMA) == []
    assert value == {"spec": {"open": {"a": {}, "z": [{"y": {"x": None}}]}, "any": [{"y": [{"x": 1}]}]}}


def test_defaults_reach_into_defaults() -> None:
    """An absent object with a default gets the defaults of its own fields, too."""
    value: dict[str, Any] = {"spec": {"list": [{}, {"a": 7}]}}
    fill_defaults(value, _SCHEMA)

    assert value == {"spec": {"a": 1, "b": {"c": "x"}, "null": "y", "list": [{"a": 2}, {"a": 7}]}}


def test_null_counts_as_absent_unless_nullable() -> None:
    """A null is replaced by the default, dropped where there is none, and kept where it is allowed."""
    value = {"spec": {"a": None, "null": None, "plain": None, "b": {"c": "z"}}}
    fill_defaults(value, _SCHEMA)

    assert value == {"spec": {"a": 1, "null": None, "b": {"c": "z"}}}


@given(_VALUES)
def test_doing_it_twice_is_doing_it_once(spec: Any) -> None:
    """A pruned and filled value is left alone by pruning and filling."""
    value = {"spec": spec}
    prune(value, _SCHEMA)
    fill_defaults(value, _SCHEMA)
    again = duplicate(value)

    assert prune(again, _SCHEMA) == []
    fill_defaults(again, _SCHEMA)
    assert again == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"spec": {"list": 7}}, ".spec.list: expected list, got &{7}"),
        ({"spec": []}, ".spec: expected map, got &{[]}"),
        ({"spec": {"list": [{}], "a": "text"}}, ""),
    ],
)
def test_wrong_shapes_are_named(value: Any, expected: str) -> None:
    """A scalar where a list or map belongs is told with its path."""
    assert misshapen(value, _SCHEMA) == expected
