"""Structural schemas: dropping what they do not know (pruning) and filling in defaults.

Both take a schema as it stands in a CustomResourceDefinition (OpenAPI v3 with Kubernetes' `x-kubernetes-` extensions)
and change the value that they are given in place.
"""

from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import Path, duplicate, path_text
from rollouts_gwapi_plugin.model.base import JsonObject

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
# What every object has at its root, whatever the schema says.
TYPE_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: JsonObject, schema: JsonObject) -> list[str]:
    """Drop the fields that the schema does not know; return their paths."""
    dropped: list[str] = []
    _prune(value, schema, (), dropped, root=True)
    return dropped


def _prune(value: Any, schema: JsonObject, path: Path, dropped: list[str], *, root: bool = False) -> None:
    if isinstance(value, list):
        # What is preserved of a list are its entries' fields.
        items = {PRESERVE: schema.get(PRESERVE), **schema.get("items", {})}
        for index, entry in enumerate(value):
            _prune(entry, items, (*path, index), dropped)
        return
    if not isinstance(value, dict):
        return
    if schema.get(EMBEDDED):
        root = True
    properties = schema.get("properties", {})
    additional = schema.get("additionalProperties")
    for key in list(value):
        if root and key in TYPE_FIELDS:
            continue
        if key in properties:
            _prune(value[key], properties[key], (*path, key), dropped)
        elif isinstance(additional, dict):
            _prune(value[key], additional, (*path, key), dropped)
        elif not schema.get(PRESERVE) and not additional:
            del value[key]
            dropped.append(path_text((*path, key)))


def misshapen(value: Any, schema: JsonObject, path: Path = ()) -> str:
    """Say where a list or a map is wanted and something else is there; empty where nothing is wrong."""
    wanted = {"array": (list, "list"), "object": (dict, "map")}.get(schema.get("type", ""))
    if wanted and value is not None and not isinstance(value, wanted[0]):
        return f".{path_text(path)}: expected {wanted[1]}, got &{{{value}}}"
    if isinstance(value, list):
        below = [((*path, index), entry, schema.get("items", {})) for index, entry in enumerate(value)]
    elif isinstance(value, dict):
        fields = schema.get("properties", {})
        below = [((*path, key), entry, fields[key]) for key, entry in value.items() if key in fields]
    else:
        return ""
    return next(filter(None, (misshapen(entry, field, at) for at, entry, field in below)), "")


def fill_defaults(value: Any, schema: JsonObject) -> None:
    """Set the schema's defaults where a field is absent; a null where none is allowed counts as absent."""
    if isinstance(value, list):
        items = schema.get("items")
        if items:
            for entry in value:
                fill_defaults(entry, items)
        return
    if not isinstance(value, dict):
        return
    properties = schema.get("properties", {})
    for key, field in properties.items():
        if "default" in field and key not in value:
            value[key] = duplicate(field["default"])
    additional = schema.get("additionalProperties")
    for key in list(value):
        field = properties.get(key, additional)
        if isinstance(field, dict):
            _fill_entry(value, key, field)


def _fill_entry(value: JsonObject, key: str, field: JsonObject) -> None:
    if value[key] is None and not field.get("nullable"):
        if "default" not in field:
            del value[key]
            return
        value[key] = duplicate(field["default"])
    fill_defaults(value[key], field)
