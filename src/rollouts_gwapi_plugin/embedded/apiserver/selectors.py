"""Label selectors and field selectors of a list, as predicates over objects."""

import re
from collections.abc import Callable
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.status import bad_request
from rollouts_gwapi_plugin.model.base import JsonObject

Predicate = Callable[[JsonObject], bool]

_NAME = r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_SET = re.compile(rf"\s*(?P<key>{_NAME})\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)\s*")
_EQUALITY = re.compile(rf"\s*(?P<key>{_NAME})\s*(?P<operator>==|=|!=)\s*(?P<value>{_VALUE})\s*")
_EXISTS = re.compile(rf"\s*(?P<absent>!)?\s*(?P<key>{_NAME})\s*")
# What the API server selects by for every kind; other fields are asked of single core kinds only.
_FIELDS = {"metadata.name", "metadata.namespace"}
_EXTRA_FIELDS = {
    "Event": {"involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid", "reason"},
    "Pod": {"spec.nodeName", "status.phase"},
    "Namespace": {"status.phase"},
    "Secret": {"type"},
}


def label_selector(text: str) -> Predicate:
    """Read `a=b,c!=d,e in (f,g),h,!i`."""
    checks = [_requirement(part) for part in _split(text)] if text.strip() else []

    def matches(value: JsonObject) -> bool:
        labels = value["metadata"].get("labels") or {}
        return all(check(labels) for check in checks)

    return matches


def field_selector(text: str, kind: str, api_version: str) -> Predicate:
    """Read `metadata.name=x,metadata.namespace!=y`."""
    checks: list[tuple[tuple[str, ...], bool, str]] = []
    for part in filter(None, text.split(",")):
        name, operator, wanted = _partition(part)
        if name not in _FIELDS | _EXTRA_FIELDS.get(kind, set()):
            raise bad_request(
                f'Unable to find "{api_version}, Kind={kind}" that match label selector "", field '
                f'selector "{text}": field label not supported: {name}'
            )
        checks.append((tuple(name.split(".")), operator, wanted))

    def matches(value: JsonObject) -> bool:
        return all((_dig(value, path) == wanted) is equal for path, equal, wanted in checks)

    return matches


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def _requirement(part: str) -> Callable[[JsonObject], bool]:
    if found := _SET.fullmatch(part):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["operator"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUALITY.fullmatch(part):
        key, value = found["key"], found["value"]
        if found["operator"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.fullmatch(part):
        key, absent = found["key"], bool(found["absent"])
        return lambda labels: (key in labels) is not absent
    raise bad_request(
        f"unable to parse requirement: found '{part.strip()}', expected: identifier, in, notin, =, ==, !="
    )


def _partition(part: str) -> tuple[str, bool, str]:
    for operator, equal in (("!=", False), ("==", True), ("=", True)):
        name, found, wanted = part.partition(operator)
        if found:
            return name.strip(), equal, wanted.strip()
    raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")


def _dig(value: Any, path: tuple[str, ...]) -> str:
    for step in path:
        value = value.get(step, "") if isinstance(value, dict) else ""
    return value if isinstance(value, str) else ""
