"""Validation by schema: ratcheting, order of complaints, and what blocks the rules."""

from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.validation import Checker

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 3, "pattern": "^[a-z]+$"},
                "other": {"type": "integer"},
                "items": {"type": "array", "items": {"type": "integer", "maximum": 5}},
                "keyed": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": {
                        "type": "object",
                        "properties": {"k": {"type": "string"}, "n": {"type": "integer", "maximum": 5}},
                    },
                },
            },
            "x-kubernetes-validations": [
                {"rule": "…", "message": "One or both of 'service' or 'method' must be specified"}
            ],
        }
    },
}
_CHECKER = Checker(
    {"type": "object", "properties": {"spec": {k: v for k, v in _SCHEMA["properties"]["spec"].items() if k[0] != "x"}}}
)


def _fields(checker: Checker, value: Any, before: Any = None) -> list[str]:
    return [cause.field for cause in checker.check({"spec": value}, None if before is None else {"spec": before})]


def test_unchanged_faults_pass_an_update() -> None:
    """What was wrong and stays as it was is let pass; what becomes wrong, or differently wrong, is not."""
    assert _fields(_CHECKER, {"name": "TOO LONG"}, {"name": "TOO LONG"}) == []
    assert _fields(_CHECKER, {"name": "TOO LONG", "other": 1}, {"name": "TOO LONG", "other": 2}) == []
    assert _fields(_CHECKER, {"name": "TOO BAD"}, {"name": "TOO LONG"}) == ["spec.name"]


def test_lists_are_ratcheted_as_their_type_says() -> None:
    """A changed plain list is checked whole; in a list map an item with the same key has a past."""
    assert _fields(_CHECKER, {"items": [9, 1]}, {"items": [9]}) == ["spec.items[0]"]
    old, new = [{"k": "a", "n": 9}], [{"k": "b", "n": 1}, {"k": "a", "n": 9}]
    assert _fields(_CHECKER, {"keyed": new}, {"keyed": old}) == []
    assert _fields(_CHECKER, {"keyed": [{"k": "b", "n": 9}]}, {"keyed": old}) == ["spec.keyed[0].n"]


def test_one_complaint_a_text() -> None:
    """A text that is too long is not told to miss the pattern as well."""
    (cause,) = _CHECKER.check({"spec": {"name": "TOO LONG"}})

    assert cause.message == "Too long: may not be more than 3 bytes"


def test_wrong_types_keep_rules_from_being_checked() -> None:
    """A wrong type is told with a note that rules were not checked; a wrong value is told beside broken rules."""
    checker = Checker(_SCHEMA)

    assert _fields(checker, {"name": 7}) == ["spec.name", "<nil>"]
    assert _fields(checker, {"name": "A"}) == ["spec.name", "spec"]


def test_end_of_pattern_is_the_end_of_the_text() -> None:
    """A line break at the end of a text does not slip past `$`."""
    assert _fields(_CHECKER, {"name": "a\n"}) == ["spec.name"]
