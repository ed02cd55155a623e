"""Which fields an object has, as sets of paths, and the notation of `managedFields` (FieldsV1).

A path is a tuple of FieldsV1 steps: `f:spec`, `k:{"name":"a"}`, `v:"x"`. Lists and maps that the schema calls atomic
are one field; list maps and sets are taken apart. In FieldsV1 a `.` marks that a node itself is in the set, not only
what is below it.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import encode
from rollouts_gwapi_plugin.embedded.apiserver.schema import EMBEDDED
from rollouts_gwapi_plugin.model.base import JsonObject

FieldPath = tuple[str, ...]
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
_TEXT: JsonObject = {"type": "string"}
METADATA: JsonObject = {
    "properties": {
        "name": _TEXT,
        "namespace": _TEXT,
        "generateName": _TEXT,
        "labels": {"additionalProperties": _TEXT},
        "annotations": {"additionalProperties": _TEXT},
        "finalizers": {LIST_TYPE: "set", "items": _TEXT},
        "ownerReferences": {
            LIST_TYPE: "map",
            LIST_KEYS: ["uid"],
            "items": {"properties": {}, MAP_TYPE: "atomic"},
        },
    }
}
# What nobody owns: the object's identity, and what the API server itself writes.
_UNOWNED = frozenset(
    ("f:metadata", f"f:{name}")
    for name in (
        "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion",
        "deletionTimestamp", "deletionGracePeriodSeconds",
    )
)  # fmt: skip
_UNOWNED_ROOTS = frozenset({("f:apiVersion",), ("f:kind",), ("f:metadata",)})
# A node that has fields below it; it equals any other such node.
_NODE = object()


def object_schema(schema: JsonObject | None) -> JsonObject:
    """Complete a kind's schema by that of its metadata; None stands for a schema that knows nothing."""
    properties = (schema or {}).get("properties", {})
    return {**(schema or {}), "properties": {**properties, "metadata": METADATA}}


def field_values(value: JsonObject, schema: JsonObject) -> dict[FieldPath, Any]:
    """Give every field with its value; nodes that have fields below them are there, too."""
    found: dict[FieldPath, Any] = {}
    _collect(value, schema, (), found)
    found.pop((), None)
    return {path: entry for path, entry in found.items() if not _is_unowned(path)}


def _collect(value: Any, schema: JsonObject, path: FieldPath, found: dict[FieldPath, Any]) -> None:
    below = list(children(value, schema))
    found[path] = _NODE if below else value
    for step, entry, field in below:
        _collect(entry, field, (*path, step), found)


def applied_fields(value: JsonObject, schema: JsonObject) -> set[FieldPath]:
    """Give the fields that a server-side apply claims: those with values, and items of lists and open maps."""
    found: set[FieldPath] = set()
    _claim(value, schema, (), found)
    return {path for path in found if path and not _is_unowned(path)}


def _claim(value: Any, schema: JsonObject, path: FieldPath, found: set[FieldPath]) -> None:
    below = list(children(value, schema))
    if not below:
        found.add(path)
    declared = schema.get("properties", {})
    for step, entry, field in below:
        _claim(entry, field, (*path, step), found)
        if step[:2] != "f:" or step[2:] not in declared:
            found.add((*path, step))


def children(value: Any, schema: JsonObject) -> Iterator[tuple[str, Any, JsonObject]]:
    """Give the fields below a value as (step, value, schema); none where the value is one field."""
    if isinstance(value, dict) and schema.get(MAP_TYPE) != "atomic":
        for key, entry in value.items():
            yield f"f:{key}", entry, field_schema(schema, key)
    elif isinstance(value, list) and schema.get(LIST_TYPE) in {"map", "set"}:
        for entry in value:
            yield item_step(entry, schema), entry, schema.get("items", {})


def field_schema(schema: JsonObject, key: str) -> JsonObject:
    """Find the schema of a field of a map."""
    if schema.get(EMBEDDED) and key == "metadata":
        return METADATA
    field = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
    return field if isinstance(field, dict) else {}


def item_step(entry: Any, schema: JsonObject) -> str:
    """Name an item of a set by its value, one of a list map by its keys."""
    if schema.get(LIST_TYPE) == "set":
        return f"v:{encode(entry).decode()}"
    fields = schema.get("items", {}).get("properties", {})
    keys = {
        key: entry[key] if key in entry else fields.get(key, {}).get("default")
        for key in sorted(schema.get(LIST_KEYS, ()))
        if key in entry or "default" in fields.get(key, {})
    }
    return f"k:{encode(keys).decode()}"


def _is_unowned(path: FieldPath) -> bool:
    return path in _UNOWNED_ROOTS or path[:2] in _UNOWNED


def to_fields_v1(paths: Iterable[FieldPath]) -> JsonObject:
    """Write a set of paths as FieldsV1."""
    tree: JsonObject = {}
    members = sorted(paths)
    for path in members:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return _without_lone_dots(tree)


def _without_lone_dots(node: JsonObject) -> JsonObject:
    if node.keys() == {"."}:
        return {}
    return {step: below if step == "." else _without_lone_dots(below) for step, below in node.items()}


def from_fields_v1(tree: JsonObject) -> set[FieldPath]:
    """Read FieldsV1."""
    found: set[FieldPath] = set()
    _read(tree, (), found)
    found.discard(())
    return found


def _read(tree: JsonObject, path: FieldPath, found: set[FieldPath]) -> None:
    if not tree:
        found.add(path)
    for step, below in tree.items():
        if step == ".":
            found.add(path)
        else:
            _read(below, (*path, step), found)


def path_words(path: FieldPath) -> str:
    """Write a path as conflicts name it: `.spec.ports[name="q"].number`."""
    text = ""
    for step in path:
        kind, rest = step[:2], step[2:]
        if kind == "f:":
            text += f".{rest}"
        elif kind == "v:":
            text += f"[={rest}]"
        else:
            pairs = json.loads(rest).items()
            text += "[" + ",".join(f"{key}={encode(entry).decode()}" for key, entry in pairs) + "]"
    return text
