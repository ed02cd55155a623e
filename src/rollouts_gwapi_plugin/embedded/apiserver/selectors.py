"""Label selectors and field selectors of a list, as predicates over objects.

The grammar of labels is `a=b,c!=d,e in (f,g),h notin (i),j,!k`; what can't be read is refused in the API's words.
"""

import re
from collections.abc import Callable
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.kinds import Kind
from rollouts_gwapi_plugin.embedded.apiserver.status import bad_request
from rollouts_gwapi_plugin.model.base import JsonObject

Predicate = Callable[[JsonObject], bool]
_Check = Callable[[JsonObject], bool]

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SYMBOLS = frozenset({"", "=", "==", "!=", "!", "(", ")", ",", "<", ">"})
# What the API server selects by for every kind, and for some core kinds beside it.
_FIELDS = ("metadata.name", "metadata.namespace")
_MORE_FIELDS = {
    "Event": ("involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid", "reason"),
    "Namespace": ("status.phase",),
    "Pod": ("spec.nodeName", "status.phase"),
    "Secret": ("type",),
}


def label_selector(text: str) -> Predicate:
    """Read a label selector; an empty one matches all."""
    checks = _Reader(text).checks() if text.strip() else []

    def matches(value: JsonObject) -> bool:
        labels = value["metadata"].get("labels") or {}
        return all(check(labels) for check in checks)

    return matches


def field_selector(text: str, kind: Kind) -> Predicate:
    """Read `metadata.name=x,metadata.namespace!=y`; an empty one matches all."""
    known = _FIELDS + (_MORE_FIELDS.get(kind.kind, ()) if not kind.custom else ())
    checks: list[tuple[tuple[str, ...], bool, str]] = []
    for part in filter(None, text.split(",")):
        name, equal, wanted = _equation(part)
        if name not in known:
            quoted = ", ".join(f'"{one}"' for one in known)
            plain = f"field label not supported: {name}"
            raise bad_request(plain if kind.custom else f'"{name}" is not a known field selector: only {quoted}')
        checks.append((tuple(name.split(".")), equal, wanted))

    def matches(value: JsonObject) -> bool:
        return all((_dig(value, path) == wanted) is equal for path, equal, wanted in checks)

    return matches


class _Reader:
    """Reads a label selector token by token."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)

    def _next(self) -> str:
        return self._tokens.pop(0) if self._tokens else ""

    def _peek(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def checks(self) -> list[_Check]:
        """Read all requirements."""
        found = []
        while True:
            if self._peek() in _SYMBOLS - {"!"}:
                raise bad_request(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            separator = self._next()
            if not separator:
                return found
            if separator != ",":
                raise bad_request(f"found '{separator}', expected: ',' or 'end of string'")

    def _requirement(self) -> _Check:
        key = self._next()
        if key == "!":
            key = self._identifier()
            return lambda labels: key not in labels
        if self._peek() in {"", ","}:
            return lambda labels: key in labels
        operator = self._next()
        if operator in {"in", "notin"}:
            values = self._values()
            return lambda labels: (labels.get(key) in values) is (operator == "in")
        if operator in {"=", "==", "!="}:
            value = self._next() if self._peek() not in {"", ","} else ""
            return lambda labels: (labels.get(key) == value) is (operator != "!=")
        raise self._unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def _identifier(self) -> str:
        token = self._next()
        if token in _SYMBOLS:
            raise self._unparsable(f"found '{token}', expected: identifier")
        return token

    def _values(self) -> set[str]:
        if self._peek() != "(":
            raise self._unparsable(f"found '{self._peek()}' expected: '('")
        self._next()
        values = set()
        while True:
            values.add(self._next() if self._peek() not in _SYMBOLS else "")
            separator = self._next()
            if separator == ")":
                return values
            if separator != ",":
                raise self._unparsable(f"found '{separator}', expected: ',' or ')'")

    @staticmethod
    def _unparsable(why: str) -> Exception:
        return bad_request(f"unable to parse requirement: {why}")


def _equation(part: str) -> tuple[str, bool, str]:
    for operator, equal in (("!=", False), ("==", True), ("=", True)):
        name, found, wanted = part.partition(operator)
        if found:
            return name.strip(), equal, wanted.strip()
    raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")


def _dig(value: Any, path: tuple[str, ...]) -> str:
    for step in path:
        value = value.get(step, "") if isinstance(value, dict) else ""
    return value if isinstance(value, str) else ""
