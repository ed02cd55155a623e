"""Server-side apply: what a manager wants is merged into what there is, what it no longer wants is taken out."""

from dataclasses import dataclass
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.fields import (
    LIST_TYPE,
    MAP_TYPE,
    FieldPath,
    children,
    field_schema,
    item_step,
    object_schema,
)
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate
from rollouts_gwapi_plugin.model.base import JsonObject


@dataclass(frozen=True)
class Removal:
    """The fields that a manager gave up, and those that others hold on to."""

    abandoned: set[FieldPath]
    kept: set[FieldPath]

    def is_kept(self, path: FieldPath) -> bool:
        """Tell whether anybody owns a field, or one below it."""
        return any(owned[: len(path)] == path for owned in self.kept)


def merge_applied(
    live: JsonObject | None, wanted: JsonObject, schema: JsonObject | None, removal: Removal
) -> JsonObject:
    """Merge; then take out what the manager named before, names no more, and nobody else owns."""
    complete = object_schema(schema)
    merged: JsonObject = _merge(live if live is not None else {}, wanted, complete)
    if removal.abandoned:
        _remove(merged, complete, (), removal)
    return merged


def _merge(live: Any, wanted: Any, schema: JsonObject) -> Any:
    if isinstance(wanted, dict) and isinstance(live, dict) and schema.get(MAP_TYPE) != "atomic":
        result = duplicate(live)
        for key, entry in wanted.items():
            result[key] = _merge(live[key], entry, field_schema(schema, key)) if key in live else duplicate(entry)
        return result
    if isinstance(wanted, list) and isinstance(live, list) and schema.get(LIST_TYPE) in {"map", "set"}:
        return _merge_lists(live, wanted, schema)
    return duplicate(wanted)


def _merge_lists(live: list[Any], wanted: list[Any], schema: JsonObject) -> list[Any]:
    """Keep the order of both: items of `live` alone stay before what followed them, the rest as in `wanted`."""
    old = {item_step(entry, schema): entry for entry in live}
    new = {item_step(entry, schema): entry for entry in wanted}
    waiting = list(old)
    result = []
    for step, entry in new.items():
        while waiting and waiting[0] not in new:
            result.append(duplicate(old[waiting.pop(0)]))
        if step in waiting:
            waiting.remove(step)
        result.append(_merge(old[step], entry, schema.get("items", {})) if step in old else duplicate(entry))
    return result + [duplicate(old[step]) for step in waiting]


def _remove(value: Any, schema: JsonObject, path: FieldPath, removal: Removal) -> bool:
    """Take abandoned fields out in place; tell whether the value itself is to go."""
    if path in removal.abandoned and not removal.is_kept(path):
        return True
    below = list(children(value, schema))
    gone = {step for step, entry, field in below if _remove(entry, field, (*path, step), removal)}
    if isinstance(value, dict):
        for step in gone:
            del value[step.removeprefix("f:")]
    elif isinstance(value, list) and gone:
        value[:] = [entry for entry in value if item_step(entry, schema) not in gone]
    # A node goes with the last field below it.
    return bool(below) and len(gone) == len(below)
