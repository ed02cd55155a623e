"""JSON merge patch (RFC 7396), JSON patch (RFC 6902), and the strategic merge patch of core kinds.

Each returns a new value and leaves its input alone.
"""

from collections.abc import Sequence
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate, same
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError, bad_request, patch_failed
from rollouts_gwapi_plugin.model.base import JsonObject

# The API server's own bound on the operations of one JSON patch.
MAX_OPERATIONS = 10_000
MERGE_KEY = "x-kubernetes-patch-merge-key"


def merge(value: Any, change: Any) -> Any:
    """Apply a merge patch: null removes, objects merge, all else replaces."""
    if not isinstance(change, dict):
        return duplicate(change)
    result = dict(value) if isinstance(value, dict) else {}
    for key, entry in change.items():
        if entry is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), entry)
    return result


def merge_strategic(value: Any, change: Any, schema: JsonObject) -> Any:
    """Apply a strategic merge patch: as a merge patch, but lists with keys in the schema are merged item by item."""
    if not isinstance(change, dict):
        return duplicate(change)
    if change.get("$patch") == "replace":
        return {key: duplicate(entry) for key, entry in change.items() if key != "$patch"}
    result = dict(value) if isinstance(value, dict) else {}
    for key, entry in change.items():
        field = schema.get("properties", {}).get(key) or schema.get("additionalProperties") or {}
        if key.startswith("$"):
            continue
        if entry is None:
            result.pop(key, None)
        elif isinstance(entry, list) and isinstance(result.get(key), list) and field.get(MERGE_KEY):
            result[key] = _merge_items(result[key], entry, field)
        else:
            result[key] = merge_strategic(result.get(key), entry, field)
    return result


def _merge_items(items: list[Any], changes: list[Any], field: JsonObject) -> list[Any]:
    key = field[MERGE_KEY]
    result = {item.get(key): item for item in items}
    for change in changes:
        if change.get("$patch") == "delete":
            result.pop(change.get(key), None)
        else:
            result[change.get(key)] = merge_strategic(result.get(change.get(key)), change, field.get("items", {}))
    return list(result.values())


def apply_operations(value: Any, operations: Any) -> Any:
    """Apply a JSON patch; nothing of it is done where one operation can't be."""
    if not isinstance(operations, list) or not all(isinstance(entry, dict) for entry in operations):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise StatusError(413, "RequestEntityTooLarge", message)
    holder = {"": duplicate(value)}
    for operation in operations:
        _apply(holder, operation)
    return holder[""]


def _apply(holder: dict[str, Any], operation: dict[str, Any]) -> None:
    kind = operation.get("op")
    path = _pointer(operation.get("path"))
    if kind == "test":
        if not same(_get(holder, path), operation.get("value")):
            raise patch_failed()
    elif kind == "add":
        _add(holder, path, duplicate(operation.get("value")))
    elif kind == "replace":
        _set(holder, path, duplicate(operation.get("value")))
    elif kind == "remove":
        _remove(holder, path)
    elif kind == "copy":
        _add(holder, path, duplicate(_get(holder, _pointer(operation.get("from")))))
    elif kind == "move":
        source = _pointer(operation.get("from"))
        moved = _get(holder, source)
        _remove(holder, source)
        _add(holder, path, moved)
    else:
        raise patch_failed()


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise patch_failed()
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")]


def _get(holder: dict[str, Any], path: Sequence[str]) -> Any:
    value: Any = holder
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list):
            value = value[_index(step, len(value) - 1)]
        else:
            raise patch_failed()
    return value


def _add(holder: dict[str, Any], path: Sequence[str], value: Any) -> None:
    parent = _get(holder, path[:-1])
    if isinstance(parent, list):
        position = len(parent) if path[-1] == "-" else _index(path[-1], len(parent))
        parent.insert(position, value)
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise patch_failed()


def _set(holder: dict[str, Any], path: Sequence[str], value: Any) -> None:
    parent = _get(holder, path[:-1])
    if isinstance(parent, list):
        parent[_index(path[-1], len(parent) - 1)] = value
    else:
        parent[path[-1]] = value


def _remove(holder: dict[str, Any], path: Sequence[str]) -> None:
    _get(holder, path)
    parent = _get(holder, path[:-1])
    if isinstance(parent, list):
        del parent[_index(path[-1], len(parent) - 1)]
    else:
        del parent[path[-1]]


def _index(step: str, highest: int) -> int:
    if not step.isdigit() or int(step) > highest:
        raise patch_failed()
    return int(step)
