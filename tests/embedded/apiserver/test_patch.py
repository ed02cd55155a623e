"""Merge patch, JSON patch, and the strategic merge patch of core kinds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.apiserver import StatusError
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate, same
from rollouts_gwapi_plugin.embedded.apiserver.patch import apply_operations, merge, merge_strategic

_OBJECTS = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=2), below, max_size=4),
    max_leaves=15,
).filter(lambda value: isinstance(value, dict))


def _merge_patch(old: Any, new: Any) -> Any:
    """Make the patch that turns one object into another."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    patch |= {key: _merge_patch(old.get(key), entry) for key, entry in new.items() if not same(entry, old.get(key))}
    return patch


@given(_OBJECTS, _OBJECTS)
def test_merge_patch_leads_from_any_object_to_any_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Applying the difference of two objects to the first gives the second, and the first stays as it was."""
    before = duplicate(old)

    assert same(merge(old, _merge_patch(old, new)), new)
    assert same(old, before)


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_examples_of_the_rfc(before: Any, change: Any, after: Any) -> None:
    """RFC 7396's own examples."""
    assert merge(before, change) == after


@pytest.mark.parametrize(
    ("operations", "after"),
    [
        ([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/a", "value": {}}], {"a": {}}),
        ([{"op": "copy", "from": "/a", "path": "/b"}, {"op": "remove", "path": "/a/0"}], {"a": [2], "b": [1, 2]}),
        ([{"op": "move", "from": "/a/1", "path": "/a/0"}], {"a": [2, 1]}),
        (
            [{"op": "test", "path": "/a", "value": [1, 2]}, {"op": "add", "path": "/x~1y~0", "value": 1}],
            {"a": [1, 2], "x/y~": 1},
        ),
    ],
)
def test_json_patch_operations(operations: Any, after: Any) -> None:
    """Each operation does what RFC 6902 says."""
    assert apply_operations({"a": [1, 2]}, operations) == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": [1]},
        {"op": "test", "path": "/a/0", "value": True},
        {"op": "remove", "path": "/b"},
        {"op": "remove", "path": "/a/2"},
        {"op": "add", "path": "/a/3", "value": 1},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "replace", "path": "/a/x", "value": 1},
        {"op": "add", "path": "b", "value": 1},
        {"op": "unknown", "path": "/a"},
        {},
    ],
)
def test_json_patch_is_done_whole_or_not_at_all(operation: Any) -> None:
    """One operation that can't be done refuses the patch with 422 and leaves the value."""
    value = {"a": [1, 2]}

    with pytest.raises(StatusError) as caught:
        apply_operations(value, [{"op": "add", "path": "/z", "value": 1}, operation])

    assert caught.value.code == 422
    assert value == {"a": [1, 2]}


def test_strategic_merge_patch_merges_lists_by_key() -> None:
    """A list with a merge key is merged item by item; `$patch` deletes items and replaces maps."""
    schema = {
        "properties": {
            "ports": {"x-kubernetes-patch-merge-key": "port", "items": {}},
            "plain": {"items": {}},
        }
    }
    value = {"ports": [{"port": 80, "name": "a"}, {"port": 81}], "plain": [1, 2], "map": {"x": 1}}
    change = {
        "ports": [{"port": 80, "name": "b"}, {"port": 82}, {"port": 81, "$patch": "delete"}],
        "plain": [3],
        "map": {"$patch": "replace", "y": 2},
    }

    assert merge_strategic(value, change, schema) == {
        "ports": [{"port": 80, "name": "b"}, {"port": 82}],
        "plain": [3],
        "map": {"y": 2},
    }
