"""JSON values: copies, paths into them, equality as the API sees it."""

import json
from typing import Any

Path = tuple[str | int, ...]


def duplicate(value: Any) -> Any:
    """Copy a JSON value; several times faster than copy.deepcopy."""
    if isinstance(value, dict):
        return {key: duplicate(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [duplicate(entry) for entry in value]
    return value


def encode(value: Any) -> bytes:
    """Encode compactly, as the API server does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def path_text(path: Path) -> str:
    """Write a path as the API's messages do: `spec.rules[0].name`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal; unlike Python's `==`, true is not 1."""
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.keys() != right.keys():
            return False
        return all(same(entry, right[key]) for key, entry in left.items())
    if isinstance(left, list):
        if not isinstance(right, list) or len(left) != len(right):
            return False
        return all(same(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)
