"""Validation by a structural schema: types and limits by jsonschema, then what Kubernetes adds to JSON schema.

A `Checker` is made once a schema. Its causes are in the words of the API server. On an update, what is wrong with a
value that was there before is let pass (ratcheting): a CustomResourceDefinition that became stricter does not lock
objects in.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import Any

from jsonschema import Draft4Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from rollouts_gwapi_plugin.embedded.apiserver import causes
from rollouts_gwapi_plugin.embedded.apiserver.causes import UNCHECKED_RULES, Cause
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import Path, path_text, same
from rollouts_gwapi_plugin.embedded.apiserver.rules import broken_rules
from rollouts_gwapi_plugin.embedded.apiserver.schema import EMBEDDED, TYPE_FIELDS
from rollouts_gwapi_plugin.model.base import JsonObject

INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
_SINGLE = ("additionalProperties", "items", "not")
_SEVERAL = ("allOf", "anyOf", "oneOf")
_PLAIN = (
    "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maxProperties", "maximum",
    "minItems", "minLength", "minProperties", "minimum", "multipleOf", "pattern", "required", "uniqueItems",
)  # fmt: skip
_FORMATS = FormatChecker(formats=())


class Checker:
    """Validates objects by one schema."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self.has_rules = _has_rules(schema)
        self._validator = Draft4Validator(_json_schema(schema, root=True), format_checker=_FORMATS)

    def check(self, value: JsonObject, before: JsonObject | None = None) -> list[Cause]:
        """Find what is wrong; `before` is the state that an update replaces."""
        errors = _one_a_text(list(self._validator.iter_errors(value)))
        found = list(dict.fromkeys(cause for error in errors for cause in _causes(error)))
        found += _duplicates(value, self._schema, ())
        found = self._fresh(found, value, before)
        if any(cause.blocks_rules for cause in found):
            return [*found, UNCHECKED_RULES] if self.has_rules else found
        return found + self._fresh(broken_rules(value, self._schema, ()), value, before)

    def _fresh(self, found: list[Cause], value: JsonObject, before: JsonObject | None) -> list[Cause]:
        if before is None or not found:
            return found
        return [cause for cause in found if not _unchanged(cause.path, value, before, self._schema)]


def _json_schema(schema: JsonObject, *, root: bool = False) -> JsonObject:
    """Rewrite as JSON schema, draft 4: Kubernetes' `nullable` and int-or-string become types."""
    result: JsonObject = {key: schema[key] for key in _PLAIN if key in schema}
    if schema.get(INT_OR_STRING):
        result["type"] = ["integer", "string"]
    elif "type" in schema:
        result["type"] = [schema["type"]]
    if schema.get("nullable"):
        if "type" in result:
            result["type"].append("null")
        if "enum" in result:
            result["enum"] = [*result["enum"], None]
    if "pattern" in result:
        # Go's `$` is the very end of the text, Python's may stand before a last line break.
        result["pattern"] = re.sub(r"(?<!\\)\$$", r"\\Z", result["pattern"])
    # The root's own fields are checked as metadata, whatever the schema says.
    skipped = TYPE_FIELDS if root or schema.get(EMBEDDED) else frozenset()
    if "properties" in schema:
        fields = schema["properties"].items()
        result["properties"] = {key: _json_schema(field) for key, field in fields if key not in skipped}
    result |= {key: _json_schema(schema[key]) for key in _SINGLE if isinstance(schema.get(key), dict)}
    result |= {key: [_json_schema(one) for one in schema[key]] for key in _SEVERAL if key in schema}
    return result


def _one_a_text(errors: list[ValidationError]) -> list[ValidationError]:
    """Keep one complaint about a text, as the API server does: too long, else too short, else not of the pattern."""
    order = ("maxLength", "minLength", "pattern")
    worst: dict[Path, int] = {}
    for error in errors:
        if error.validator in order:
            path = tuple(error.absolute_path)
            worst[path] = min(worst.get(path, len(order)), order.index(error.validator))
    return [
        error
        for error in errors
        if error.validator not in order or order.index(error.validator) == worst[tuple(error.absolute_path)]
    ]


def _causes(error: ValidationError) -> Iterator[Cause]:
    path: Path = tuple(error.absolute_path)
    value: Any = error.instance
    limit: Any = error.validator_value
    match error.validator:
        case "required":
            yield from (causes.required_value((*path, name)) for name in limit if name not in value)
        case "type":
            kind = _type_name(value)
            wanted = ",".join(name for name in limit if name != "null")
            yield causes.wrong_type(path, kind, f'{_body(path)} must be of type {wanted}: "{kind}"')
        case "format":
            yield causes.wrong_type(path, value, f'{_body(path)} must be of type {limit}: "{value}"')
        case "enum":
            yield causes.unsupported_value(path, value, [one for one in limit if one is not None])
        case "maxLength":
            yield causes.too_long(path, limit)
        case "maxItems" | "maxProperties":
            yield causes.too_many(path, len(value), limit)
        case "minItems" | "minProperties":
            what = "items" if error.validator == "minItems" else "properties"
            yield causes.invalid_value(path, len(value), f"{_body(path)} should have at least {limit} {what}")
        case _:
            yield causes.invalid_value(path, value, f"{_body(path)} {_complaint(error)}")


def _complaint(error: ValidationError) -> str:
    schema = error.schema if isinstance(error.schema, dict) else {}
    texts: dict[str, Callable[[Any], str]] = {
        "minimum": lambda limit: f"should be greater than{_or_equal(schema, 'exclusiveMinimum')} {limit}",
        "maximum": lambda limit: f"should be less than{_or_equal(schema, 'exclusiveMaximum')} {limit}",
        "multipleOf": lambda limit: f"should be a multiple of {limit}",
        "minLength": lambda limit: f"should be at least {limit} chars long",
        "pattern": lambda limit: "should match '" + re.sub(r"\\Z$", "$", limit) + "'",
        "uniqueItems": lambda _: "shouldn't contain duplicates",
        "anyOf": lambda _: "must validate at least one schema (anyOf)",
        "oneOf": lambda _: "must validate one and only one schema (oneOf)",
        "allOf": lambda _: "must validate all the schemas (allOf)",
        "not": lambda _: "must not validate the schema (not)",
    }
    text = texts.get(str(error.validator))
    return text(error.validator_value) if text else error.message


def _or_equal(schema: JsonObject, keyword: str) -> str:
    return "" if schema.get(keyword) else " or equal to"


def _body(path: Path) -> str:
    return f"{path_text(path)} in body"


def _type_name(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return names.get(type(value), "null")


def _duplicates(value: Any, schema: JsonObject, path: Path) -> list[Cause]:
    """Find items of sets and list maps that are there twice."""
    found: list[Cause] = []
    if isinstance(value, dict):
        properties, additional = schema.get("properties", {}), schema.get("additionalProperties")
        for key, entry in value.items():
            field = properties.get(key, additional)
            if isinstance(field, dict):
                found += _duplicates(entry, field, (*path, key))
    elif isinstance(value, list):
        items, keys, seen = schema.get("items", {}), schema.get(LIST_KEYS, []), []
        for index, entry in enumerate(value):
            found += _duplicates(entry, items, (*path, index))
            identity = _identity(entry, schema.get(LIST_TYPE), keys)
            if identity is not None and identity in seen:
                found.append(causes.duplicate_value((*path, index), identity))
            seen.append(identity)
    return found


def _identity(entry: Any, list_type: str | None, keys: list[str]) -> Any:
    if list_type == "set":
        return entry
    if list_type == "map" and isinstance(entry, dict):
        return {key: entry[key] for key in sorted(keys) if key in entry}
    return None


def _has_rules(schema: Any) -> bool:
    if isinstance(schema, dict):
        return "x-kubernetes-validations" in schema or any(_has_rules(entry) for entry in schema.values())
    return isinstance(schema, list) and any(_has_rules(entry) for entry in schema)


def _unchanged(path: Path, value: Any, before: Any, schema: JsonObject) -> bool:
    """Tell whether a value on the path, or one that holds it, is what it was; lists are compared as a whole."""
    for step in path:
        if before is not None and same(value, before):
            return True
        if isinstance(value, list) and isinstance(step, int):
            value, before = _same_item(value[step], before, schema)
            schema = schema.get("items", {})
        elif isinstance(value, dict) and step in value:
            value = value[step]
            before = before.get(step) if isinstance(before, dict) else None
            schema = schema.get("properties", {}).get(step) or schema.get("additionalProperties") or {}
        else:
            return False
    return before is not None and same(value, before)


def _same_item(item: Any, before: Any, schema: JsonObject) -> tuple[Any, Any]:
    """Find the item of a list map that has the same keys; items of other lists have no past."""
    if schema.get(LIST_TYPE) != "map" or not isinstance(before, list):
        return item, None
    keys = schema.get(LIST_KEYS, [])
    identity = _identity(item, "map", keys)
    return item, next((one for one in before if _identity(one, "map", keys) == identity), None)


@_FORMATS.checks("date", raises=ValueError)
def _is_date(value: object) -> bool:
    return not isinstance(value, str) or bool(dt.date.fromisoformat(value))


@_FORMATS.checks("date-time", raises=ValueError)
def _is_date_time(value: object) -> bool:
    return not isinstance(value, str) or bool(dt.datetime.fromisoformat(value))
