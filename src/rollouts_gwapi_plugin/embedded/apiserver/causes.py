"""What is wrong with one field of an object, in the words of the API server."""

from dataclasses import dataclass
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import Path, encode, path_text
from rollouts_gwapi_plugin.model.base import JsonObject

# Said once beside faults that keep the rules of a schema from being checked.
_UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)


@dataclass(frozen=True)
class Cause:
    """One fault: `reason` is the API's word for it, `path` where it is."""

    reason: str
    message: str
    path: Path

    @property
    def field(self) -> str:
        """The path as text."""
        return path_text(self.path)

    @property
    def blocks_rules(self) -> bool:
        """Whether the rules of the schema are not checked because of it."""
        return self.reason in _BLOCKING

    def as_json(self) -> JsonObject:
        """Write the cause as it stands in `details.causes`."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


UNCHECKED_RULES = Cause("FieldValueInvalid", _UNCHECKED, ("<nil>",))


def invalid_value(path: Path, value: Any, why: str) -> Cause:
    """Say that a value is of the right type and not allowed."""
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {why}", path)


def wrong_type(path: Path, value: Any, why: str) -> Cause:
    """Say that a value is of the wrong type or format."""
    return Cause("FieldValueTypeInvalid", f"Invalid value: {_shown(value)}: {why}", path)


def required_value(path: Path, why: str = "") -> Cause:
    """Say that there is no value."""
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", path)


def unsupported_value(path: Path, value: Any, supported: list[Any]) -> Cause:
    """Say that a value is none of those that can be."""
    names = ", ".join(_shown(one) for one in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {names}", path)


def duplicate_value(path: Path, value: Any) -> Cause:
    """Say that a value, or its key, is there already."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", path)


def forbidden_value(path: Path, why: str) -> Cause:
    """Say that a field may not be set, or not be changed."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", path)


def too_long(path: Path, limit: int) -> Cause:
    """Say that a text is too long."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)


def too_many(path: Path, count: int, limit: int) -> Cause:
    """Say that there are too many of them."""
    items = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {items}", path)


def _shown(value: Any) -> str:
    return encode(value).decode()
