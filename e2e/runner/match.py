"""Is the expected part of an object in the object? Every difference is said with its path.

A mapping matches if each of its keys does (`null`: is absent); a list if it has the same length and each item matches
in order; a string `~ expression` is a regular expression that must be found; anything else must be equal.
"""

import re
from typing import Any

_EXPRESSION = "~ "


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    """Return what differs; nothing where the expected part is there."""
    if isinstance(expected, dict):
        return _mapping(expected, found, path)
    if isinstance(expected, list):
        return _sequence(expected, found, path)
    if isinstance(expected, str) and expected.startswith(_EXPRESSION):
        expression = expected.removeprefix(_EXPRESSION)
        return [] if re.search(expression, str(found)) else [f"{path}: {found!r} does not match {expression!r}"]
    return [] if expected == found else [f"{path}: {found!r} instead of {expected!r}"]


def _mapping(expected: dict[str, Any], found: Any, path: str) -> list[str]:
    if not isinstance(found, dict):
        return [f"{path}: {found!r} instead of a mapping"]
    result: list[str] = []
    for key, value in expected.items():
        place = f"{path}.{key}" if path else key
        if value is None:
            result += [f"{place}: {found[key]!r} instead of nothing"] if found.get(key) is not None else []
        elif key not in found and not isinstance(value, dict):
            result.append(f"{place}: absent instead of {value!r}")
        else:
            result += differences(value, found.get(key, {}), place)
    return result


def _sequence(expected: list[Any], found: Any, path: str) -> list[str]:
    if not isinstance(found, list):
        return [f"{path}: {found!r} instead of a list"]
    if len(found) != len(expected):
        return [f"{path}: {len(found)} items instead of {len(expected)}"]
    pairs = enumerate(zip(expected, found, strict=True))
    return [text for index, (want, have) in pairs for text in differences(want, have, f"{path}[{index}]")]
