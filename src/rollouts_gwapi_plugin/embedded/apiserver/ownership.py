"""`managedFields`: which manager wrote which field, kept by updates and asked by server-side apply.

An entry is known by manager, operation, apiVersion and subresource. An update gives its manager what it changed and
takes that from all others. An apply gives its manager exactly what it names; where another manager owns one of these
with another value, the apply is refused, or takes it by force.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.fields import (
    FieldPath,
    applied_fields,
    field_values,
    from_fields_v1,
    object_schema,
    path_words,
    to_fields_v1,
)
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import same
from rollouts_gwapi_plugin.embedded.apiserver.metadata import now
from rollouts_gwapi_plugin.embedded.apiserver.status import apply_conflict
from rollouts_gwapi_plugin.model.base import JsonObject


@dataclass(frozen=True, order=True)
class Manager:
    """Who owns fields; ordered as the API lists them."""

    operation: str
    name: str
    api_version: str
    subresource: str = ""

    @property
    def words(self) -> str:
        """How conflicts name it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return text if self.operation == "Apply" else f"{text} using {self.api_version}"


@dataclass
class _Claim:
    fields: set[FieldPath]
    time: str


@dataclass
class Claims:
    """All entries of one object."""

    entries: dict[Manager, _Claim] = field(default_factory=dict)

    @classmethod
    def read(cls, managed: Any) -> "Claims":
        """Read `managedFields`; what is not an entry is left out."""
        claims = cls()
        for entry in managed or ():
            if entry.get("manager") or entry.get("operation"):
                manager = Manager(
                    entry.get("operation", ""),
                    entry.get("manager", ""),
                    entry.get("apiVersion", ""),
                    entry.get("subresource", ""),
                )
                claims.entries[manager] = _Claim(from_fields_v1(entry.get("fieldsV1") or {}), entry.get("time", ""))
        return claims

    def write(self) -> list[JsonObject]:
        """Write `managedFields`, in the API's order."""
        rows = sorted(self.entries.items(), key=lambda row: (row[0].operation, row[1].time, row[0]))
        return [_entry(manager, claim) for manager, claim in rows if claim.fields]

    def update(self, manager: Manager, before: JsonObject | None, after: JsonObject, schema: JsonObject | None) -> None:
        """Note an update: the manager owns what it changed or added, nobody else does."""
        changed, removed = _difference(before, after, schema, manager.subresource)
        claim = self.entries.setdefault(manager, _Claim(set(), now()))
        if changed - claim.fields or removed & claim.fields:
            claim.time = now()
        for other, theirs in self.entries.items():
            if other != manager:
                theirs.fields -= changed
            theirs.fields -= removed
        claim.fields |= changed
        self._drop_empty()

    def claim_all(self, manager: Manager, value: JsonObject, schema: JsonObject | None) -> None:
        """Give a manager all fields of an object."""
        fields = set(field_values(value, object_schema(schema)))
        self.entries[manager] = _Claim(fields, now())

    def conflicts(self, manager: Manager, changed: set[FieldPath]) -> list[tuple[str, str]]:
        """Name the fields of others that a manager is about to change, as (whose, which)."""
        return [
            (other.words, path_words(path))
            for other, theirs in sorted(self.entries.items())
            if other != manager
            for path in sorted(theirs.fields & changed)
        ]

    def _drop_empty(self) -> None:
        self.entries = {manager: claim for manager, claim in self.entries.items() if claim.fields}

    def fields_of(self, manager: Manager) -> set[FieldPath]:
        """Give the fields that a manager owns."""
        claim = self.entries.get(manager)
        return set(claim.fields) if claim else set()

    def fields_of_others(self, manager: Manager) -> set[FieldPath]:
        """Give the fields that anybody else owns."""
        sets = [claim.fields for other, claim in self.entries.items() if other != manager]
        return set().union(*sets)

    def apply(
        self,
        manager: Manager,
        before: JsonObject | None,
        merged: JsonObject,
        wanted: JsonObject,
        schema: JsonObject | None,
        *,
        force: bool,
    ) -> None:
        """Note an apply of `wanted`, merged into `before` as `merged`; raise 409 where others own fields of it."""
        changed, removed = _difference(before, merged, schema, manager.subresource)
        found = self.conflicts(manager, changed)
        if found and not force:
            raise apply_conflict(found)
        for other, theirs in self.entries.items():
            if other != manager:
                theirs.fields -= changed | removed
        fields = _owned_roots(applied_fields(wanted, object_schema(schema)), manager.subresource)
        old = self.entries.get(manager)
        self.entries[manager] = old if old and old.fields == fields else _Claim(fields, now())
        self._drop_empty()


def _difference(
    before: JsonObject | None, after: JsonObject, schema: JsonObject | None, subresource: str
) -> tuple[set[FieldPath], set[FieldPath]]:
    """Give the fields that were changed or added, and those that are gone."""
    complete = object_schema(schema)
    old = field_values(before, complete) if before is not None else {}
    new = field_values(after, complete)
    changed = {path for path, value in new.items() if path not in old or _differs(old[path], value)}
    return _owned_roots(changed, subresource), _owned_roots(set(old.keys() - new.keys()), subresource)


def _differs(old: Any, new: Any) -> bool:
    return old is not new and not same(old, new)


def _owned_roots(paths: set[FieldPath], subresource: str) -> set[FieldPath]:
    """Keep what the request's path can write: the status, or all but the status."""
    if subresource == "status":
        return {path for path in paths if path[0] in {"f:status", "f:metadata"}}
    return paths


def _entry(manager: Manager, claim: _Claim) -> JsonObject:
    entry: JsonObject = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": claim.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields_v1(claim.fields),
    }
    return entry | ({"subresource": manager.subresource} if manager.subresource else {})


def set_claims(metadata: JsonObject, claims: Claims) -> None:
    """Write the claims into an object's metadata."""
    managed = claims.write()
    if managed:
        metadata["managedFields"] = managed
    else:
        metadata.pop("managedFields", None)


def without_times(metadata: Mapping[str, Any]) -> list[JsonObject]:
    """Give `managedFields` for comparing: a write that changes only times is none."""
    return [
        {key: value for key, value in entry.items() if key != "time"} for entry in metadata.get("managedFields") or ()
    ]
