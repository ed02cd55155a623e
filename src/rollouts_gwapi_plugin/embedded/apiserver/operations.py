"""The verbs of the API over the store: get, list, create, update, patch, apply, delete.

One path for everybody: the HTTP server and the direct calls of tests come through the same methods. Each write happens
under the store's lock, from the read of the state before to the commit; a dry run ends just before the commit.
"""

from collections.abc import Callable
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver import metadata as meta
from rollouts_gwapi_plugin.embedded.apiserver.admission import admit, check_declared, check_user_metadata, validate
from rollouts_gwapi_plugin.embedded.apiserver.apply import Removal, merge_applied
from rollouts_gwapi_plugin.embedded.apiserver.causes import invalid_value
from rollouts_gwapi_plugin.embedded.apiserver.commit import Commits
from rollouts_gwapi_plugin.embedded.apiserver.decode import check_identity, check_name
from rollouts_gwapi_plugin.embedded.apiserver.fields import applied_fields, object_schema
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate, same
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Registry
from rollouts_gwapi_plugin.embedded.apiserver.ownership import Claims, Manager, set_claims, without_times
from rollouts_gwapi_plugin.embedded.apiserver.preconditions import check_delete, check_version
from rollouts_gwapi_plugin.embedded.apiserver.schema import fill_defaults, prune
from rollouts_gwapi_plugin.embedded.apiserver.selectors import Predicate
from rollouts_gwapi_plugin.embedded.apiserver.status import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    success,
)
from rollouts_gwapi_plugin.embedded.apiserver.store import Store, Stored
from rollouts_gwapi_plugin.embedded.apiserver.targets import Options, Target
from rollouts_gwapi_plugin.model.base import JsonObject

# Who owns what after a write: a function of the state before (None where there was none) and the state after.
Claimant = Callable[[JsonObject | None, JsonObject], Claims]


class Operations:
    """See the module's text; `strict_namespaces` refuses objects in namespaces that were not created."""

    def __init__(self, registry: Registry, store: Store, *, strict_namespaces: bool = False) -> None:
        self.registry = registry
        self.store = store
        self._commits = Commits(registry, store, strict_namespaces=strict_namespaces)

    def get(self, target: Target) -> Stored:
        """Find an object, or raise 404."""
        stored = self.store.get(target.kind.key, target.place)
        if stored is None:
            raise not_found(target.kind, target.name)
        return stored

    def list(self, target: Target, matches: Predicate) -> tuple[list[Stored], int]:
        """Find all that match, and the version that the answer is of."""
        with self.store.condition:
            rows = self.store.all(target.kind.key, target.namespace)
            return [row for row in rows if matches(row.value)], self.store.version

    def create(self, target: Target, value: JsonObject, options: Options) -> JsonObject:
        """Make an object."""
        check_identity(value, target)
        if value["metadata"].get("resourceVersion"):
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        with self.store.condition:
            return self._create(target, value, options, _updating(target, options))

    def update(self, target: Target, value: JsonObject, options: Options) -> JsonObject:
        """Replace an object, or its status."""
        check_identity(value, target)
        check_name(value, target)
        with self.store.condition:
            before = self.get(target)
            check_version(target, value["metadata"], before.value["metadata"])
            return self._replace(target, before, value, options, _updating(target, options))

    def patch(self, target: Target, change: Callable[[JsonObject], Any], options: Options) -> JsonObject:
        """Apply a patch, given as a function of the object at the target's version."""
        with self.store.condition:
            before = self.get(target)
            value = check_identity(change(self.at_version(before, target)), target)
            check_name(value, target)
            metadata, old = value["metadata"], before.value["metadata"]
            if metadata.get("resourceVersion") not in {None, "", old["resourceVersion"]}:
                raise conflict(target.kind, target.name)
            if metadata.get("uid") not in {None, "", old["uid"]}:
                cause = invalid_value(("metadata", "uid"), metadata["uid"], "field is immutable")
                raise invalid(target.kind, target.name, [cause])
            return self._replace(target, before, value, options, _updating(target, options))

    def apply(self, target: Target, wanted: JsonObject, options: Options) -> JsonObject:
        """Server-side apply: merge what the manager wants, and take out what it no longer names."""
        if "managedFields" in (wanted.get("metadata") or {}):
            raise bad_request("metadata.managedFields must be nil")
        if "apiVersion" not in wanted:
            raise bad_request(f"invalid object type: /, Kind={wanted.get('kind', '')}")
        check_identity(wanted, target)
        check_name(wanted, target)
        check_declared(wanted, target)
        with self.store.condition:
            before = self.store.get(target.kind.key, target.place)
            given = wanted["metadata"].pop("resourceVersion", "")
            if before is not None and given and given != before.value["metadata"]["resourceVersion"]:
                raise conflict(target.kind, target.name)
            return self._apply(target, before, wanted, options)

    def delete(self, target: Target, preconditions: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Delete an object, or mark it where finalizers hold it."""
        with self.store.condition:
            before = self.get(target)
            metadata = before.value["metadata"]
            check_delete(target, metadata, preconditions)
            if metadata.get("finalizers"):
                return self._mark_deleted(target, before, dry_run=dry_run)
            last = before if dry_run else self._commits.remove(target)
            if target.kind.deleted_object:
                return self.at_version(last, target)
            return success(target.kind, target.name, metadata["uid"])

    def at_version(self, stored: Stored, target: Target) -> JsonObject:
        """Convert to the target's version: the apiVersion changes, then that version's schema prunes and fills in."""
        value: JsonObject = duplicate(stored.value)
        if value["apiVersion"] != target.api_version:
            value["apiVersion"] = target.api_version
            if target.version.schema is not None:
                prune(value, target.version.schema)
                fill_defaults(value, target.version.schema)
        return value

    def _create(self, target: Target, value: JsonObject, options: Options, claim: Claimant) -> JsonObject:
        metadata = value["metadata"]
        admit(value, target, options)
        if target.version.status and target.kind.custom:
            value.pop("status", None)
        meta.stamp(metadata, generation=target.kind.generation)
        set_claims(metadata, claim(None, value))
        self._commits.check_namespace(target)
        place = (target.namespace, metadata.get("name", ""))
        if self.store.get(target.kind.key, place) is not None:
            raise already_exists(target.kind, place[1])
        validate(value, target)
        if options.dry_run:
            return value
        return self.at_version(self._commits.put(target, place, value), target)

    def _replace(
        self, target: Target, before: Stored, value: JsonObject, options: Options, claim: Claimant
    ) -> JsonObject:
        old = self.at_version(before, target)
        admit(value, target, options)
        check_user_metadata(value["metadata"], old["metadata"], target)
        if target.version.status and target.subresource != "status":
            _copy_field("status", old, value)
        claims = claim(old, value)
        if target.subresource == "status":
            status_before, value = value, duplicate(old)
            _copy_field("status", status_before, value)
        meta.keep_system_fields(value["metadata"], old["metadata"])
        set_claims(value["metadata"], claims)
        if same(_comparable(old), _comparable(value)):
            return old
        if target.kind.generation and target.subresource != "status" and _spec_changed(old, value):
            value["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        validate(value, target, old)
        if options.dry_run:
            return value
        if value["metadata"].get("deletionTimestamp") and not value["metadata"].get("finalizers"):
            self._commits.remove(target)
            return value
        return self.at_version(self._commits.put(target, target.place, value), target)

    def _apply(self, target: Target, before: Stored | None, wanted: JsonObject, options: Options) -> JsonObject:
        manager = Manager("Apply", options.manager, target.api_version, target.subresource)
        schema = target.version.schema
        old = self.at_version(before, target) if before else None
        claims = Claims.read(old["metadata"].get("managedFields")) if old else Claims()
        if old is not None and not claims.entries:
            claims.claim_all(Manager("Update", "before-first-apply", target.api_version), old, schema)
        named = applied_fields(wanted, object_schema(schema))
        removal = Removal(claims.fields_of(manager) - named, claims.fields_of_others(manager) | named)
        merged = merge_applied(old, wanted, schema, removal)
        claims.apply(manager, old, merged, wanted, schema, force=options.force)
        if before is None:
            return self._create(target, merged, options, lambda _old, _new: claims)
        return self._replace(target, before, merged, options, lambda _old, _new: claims)

    def _mark_deleted(self, target: Target, before: Stored, *, dry_run: bool) -> JsonObject:
        metadata = before.value["metadata"]
        if metadata.get("deletionTimestamp") or dry_run:
            return self.at_version(before, target)
        marked = metadata | {"deletionTimestamp": meta.now(), "deletionGracePeriodSeconds": 0}
        if "generation" in metadata:
            marked["generation"] = metadata["generation"] + 1
        stored = self._commits.put(target, target.place, before.value | {"metadata": marked})
        return self.at_version(stored, target)


def _updating(target: Target, options: Options) -> Claimant:
    """Give the claims after an update or create; an object whose managers were reset has none until an apply."""
    manager = Manager("Update", options.manager, target.api_version, target.subresource)

    def claim(old: JsonObject | None, new: JsonObject) -> Claims:
        given = new["metadata"].get("managedFields")
        live = old["metadata"].get("managedFields") if old else None
        if (old is not None and not live) or given == [{}]:
            return Claims()
        claims = Claims.read((given or live) if old else None)
        claims.update(manager, old, new, target.version.schema)
        return claims

    return claim


def _copy_field(name: str, source: JsonObject, value: JsonObject) -> None:
    if name in source:
        value[name] = source[name]
    else:
        value.pop(name, None)


def _spec_changed(old: JsonObject, new: JsonObject) -> bool:
    return not same(*({k: v for k, v in value.items() if k not in {"metadata", "status"}} for value in (old, new)))


def _comparable(value: JsonObject) -> JsonObject:
    return value | {"metadata": value["metadata"] | {"managedFields": without_times(value["metadata"])}}
