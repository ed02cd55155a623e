"""JSON merge patch (RFC 7396) and JSON patch (RFC 6902); each returns a new value and leaves its input alone."""

from collections.abc import Sequence
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate, same
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError, bad_request, patch_failed

# The API server's own bound on the operations of one JSON patch.
MAX_OPERATIONS = 10_000


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


def apply_operations(value: Any, operations: Any) -> Any:
    """Apply a JSON patch; nothing of it is done where one operation can't be."""
    if not isinstance(operations, list) or not all(isinstance(entry, dict) for entry in operations):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
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
        if not same(_get(holder, path, "test"), operation.get("value")):
            raise patch_failed(f"testing value {operation['path']} failed: test failed")
    elif kind == "add":
        _add(holder, path, duplicate(operation.get("value")))
    elif kind == "replace":
        _get(holder, path, "replace")
        _set(holder, path, duplicate(operation.get("value")))
    elif kind == "remove":
        _remove(holder, path)
    elif kind == "copy":
        _add(holder, path, duplicate(_get(holder, _pointer(operation.get("from")), "copy")))
    elif kind == "move":
        source = _pointer(operation.get("from"))
        moved = _get(holder, source, "move")
        _remove(holder, source)
        _add(holder, path, moved)
    else:
        raise patch_failed(f"Unexpected kind: {kind}")


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise patch_failed(f"json patch: not a pointer: {text!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")]


def _get(holder: dict[str, Any], path: Sequence[str], verb: str) -> Any:
    value: Any = holder
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list):
            value = value[_index(step, len(value) - 1)]
        else:
            raise patch_failed(f"{verb} operation does not apply: doc is missing path: {'/'.join(path)}: missing value")
    return value


def _add(holder: dict[str, Any], path: Sequence[str], value: Any) -> None:
    parent = _get(holder, path[:-1], "add")
    if isinstance(parent, list):
        position = len(parent) if path[-1] == "-" else _index(path[-1], len(parent))
        parent.insert(position, value)
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise patch_failed(f"add operation does not apply: doc is missing path: {'/'.join(path)}: missing value")


def _set(holder: dict[str, Any], path: Sequence[str], value: Any) -> None:
    parent = _get(holder, path[:-1], "replace")
    if isinstance(parent, list):
        parent[_index(path[-1], len(parent) - 1)] = value
    else:
        parent[path[-1]] = value


def _remove(holder: dict[str, Any], path: Sequence[str]) -> None:
    _get(holder, path, "remove")
    parent = _get(holder, path[:-1], "remove")
    if isinstance(parent, list):
        del parent[_index(path[-1], len(parent) - 1)]
    else:
        del parent[path[-1]]


def _index(step: str, highest: int) -> int:
    if not step.isdigit() or int(step) > highest:
        raise patch_failed(f"Unable to access invalid index: {step}: invalid index referenced")
    return int(step)
