"""The verbs of the API over the store: create, update, patch, delete, get, list.

One path for everybody: the HTTP server and the direct calls of tests come through the same methods. Each write happens
under the store's lock, from the read of the state before to the commit; a dry run ends just before the commit.
"""

from collections.abc import Callable
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver import metadata as meta
from rollouts_gwapi_plugin.embedded.apiserver.admission import Options, Target, admit, check_shape, validate
from rollouts_gwapi_plugin.embedded.apiserver.definitions import kind_of
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate, same
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Registry
from rollouts_gwapi_plugin.embedded.apiserver.schema import prune
from rollouts_gwapi_plugin.embedded.apiserver.selectors import Predicate
from rollouts_gwapi_plugin.embedded.apiserver.status import (
    Cause,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    success,
)
from rollouts_gwapi_plugin.embedded.apiserver.store import Store, Stored
from rollouts_gwapi_plugin.model.base import JsonObject

NAMESPACES = ("", "namespaces")
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")


class Operations:
    """See the module's text; `strict_namespaces` refuses objects in namespaces that were not created."""

    def __init__(self, registry: Registry, store: Store, *, strict_namespaces: bool = False) -> None:
        self.registry = registry
        self.store = store
        self.strict_namespaces = strict_namespaces

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

    def create(self, target: Target, body: Any, options: Options) -> JsonObject:
        """Make an object."""
        value = check_shape(body, target)
        if target.kind.namespaced and not target.namespace:
            raise bad_request("an empty namespace may not be set during creation")
        metadata = value["metadata"]
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        admit(value, target, options)
        meta.stamp(metadata, generation=target.kind.generation)
        if target.version.status and target.kind.custom:
            value.pop("status", None)
        with self.store.condition:
            self._check_namespace(target)
            place = (target.namespace, metadata.get("name", ""))
            if self.store.get(target.kind.key, place) is not None:
                raise already_exists(target.kind, place[1])
            validate(value, target)
            if options.dry_run:
                return value
            return self._commit(target, place, value)

    def update(self, target: Target, body: Any, options: Options) -> JsonObject:
        """Replace an object, or its status."""
        value = check_shape(body, target)
        name = value["metadata"].setdefault("name", target.name)
        if name != target.name:
            raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
        with self.store.condition:
            before = self.get(target)
            self._check_version(target, value, before)
            return self._write(target, before, value, options)

    def patch(self, target: Target, change: Callable[[JsonObject], Any], options: Options) -> JsonObject:
        """Apply a patch, given as a function of the object at the target's version."""
        with self.store.condition:
            before = self.get(target)
            value = change(self.at_version(before, target))
            value = check_shape(value, target)
            given = value["metadata"].get("resourceVersion")
            if given and given != before.value["metadata"]["resourceVersion"]:
                raise conflict(target.kind, target.name)
            if value["metadata"].get("name") != target.name:
                raise bad_request("the name of the object does not match the name on the URL")
            return self._write(target, before, value, options)

    def delete(self, target: Target, preconditions: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Delete an object, or mark it where finalizers hold it."""
        with self.store.condition:
            before = self.get(target)
            metadata = before.value["metadata"]
            self._check_preconditions(target, metadata, preconditions)
            if metadata.get("finalizers"):
                if metadata.get("deletionTimestamp") or dry_run:
                    return before.value
                marked = metadata | {"deletionTimestamp": meta.now(), "deletionGracePeriodSeconds": 0}
                if target.kind.generation and "generation" in metadata:
                    marked["generation"] = metadata["generation"] + 1
                return self._commit(target, target.place, before.value | {"metadata": marked})
            if not dry_run:
                self._remove(target)
            return before.value if target.kind.deleted_object else success(target.kind, target.name, metadata["uid"])

    def at_version(self, stored: Stored, target: Target) -> JsonObject:
        """Convert to the target's version: only the apiVersion changes, then that version's schema is applied."""
        value: JsonObject = duplicate(stored.value)
        if value["apiVersion"] != target.api_version:
            value["apiVersion"] = target.api_version
            if target.version.schema is not None:
                prune(value, target.version.schema)
        return value

    def _write(self, target: Target, before: Stored, value: JsonObject, options: Options) -> JsonObject:
        old = self.at_version(before, target)
        admit(value, target, options)
        meta.keep_system_fields(value["metadata"], old["metadata"])
        if target.subresource == "status":
            value = (
                old | {"status": value["status"]}
                if "status" in value
                else {k: v for k, v in old.items() if k != "status"}
            )
        elif target.version.status:
            value.pop("status", None)
            if "status" in old:
                value["status"] = old["status"]
        if same(_unversioned(old), _unversioned(value)):
            return old
        if target.kind.generation and target.subresource != "status" and _spec_changed(old, value):
            value["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        validate(value, target)
        if options.dry_run:
            return value
        if value["metadata"].get("deletionTimestamp") and not value["metadata"].get("finalizers"):
            self._remove(target)
            return value
        return self._commit(target, target.place, value)

    def _commit(self, target: Target, place: tuple[str, str], value: JsonObject) -> JsonObject:
        value["apiVersion"] = target.kind.api_version(target.kind.storage.name)
        stored = self.store.put(target.kind.key, place, value)
        if target.kind.key == DEFINITIONS:
            self.registry.register(kind_of(stored.value))
        return self.at_version(stored, target)

    def _remove(self, target: Target) -> None:
        removed = self.store.remove(target.kind.key, target.place)
        if removed is None:
            return
        if target.kind.key == DEFINITIONS:
            self._remove_kind(kind_of(removed.value).key)
        if target.kind.key == NAMESPACES:
            for kind in self.registry.all():
                for row in self.store.all(kind.key, target.name) if kind.namespaced else ():
                    self.store.remove(kind.key, (target.name, row.value["metadata"]["name"]))

    def _remove_kind(self, key: tuple[str, str]) -> None:
        for row in self.store.all(key, ""):
            self.store.remove(key, (row.value["metadata"].get("namespace", ""), row.value["metadata"]["name"]))
        self.registry.withdraw(key)

    def _check_namespace(self, target: Target) -> None:
        if self.strict_namespaces and target.kind.namespaced:
            namespaces = self.registry.find(*NAMESPACES)
            if namespaces and self.store.get(NAMESPACES, ("", target.namespace)) is None:
                raise not_found(namespaces, target.namespace)

    @staticmethod
    def _check_version(target: Target, value: JsonObject, before: Stored) -> None:
        given = value["metadata"].get("resourceVersion")
        if not given:
            if target.kind.custom:
                text = "Invalid value: 0: must be specified for an update"
                cause = Cause("FieldValueInvalid", text, "metadata.resourceVersion")
                raise invalid(target.kind, target.name, [cause])
        elif given != before.value["metadata"]["resourceVersion"]:
            raise conflict(target.kind, target.name)
        uid, actual = value["metadata"].get("uid"), before.value["metadata"]["uid"]
        if uid and uid != actual:
            raise _precondition(target, "UID", uid, actual)

    @staticmethod
    def _check_preconditions(target: Target, metadata: JsonObject, preconditions: JsonObject) -> None:
        for key, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            wanted = preconditions.get(key)
            if wanted and wanted != metadata[key]:
                raise _precondition(target, label, wanted, metadata[key])


def _precondition(target: Target, label: str, wanted: str, actual: str) -> StatusError:
    why = f"Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {actual}"
    return conflict(target.kind, target.name, why)


def _spec_changed(old: JsonObject, new: JsonObject) -> bool:
    return not same(*({k: v for k, v in value.items() if k not in {"metadata", "status"}} for value in (old, new)))


def _unversioned(value: JsonObject) -> JsonObject:
    metadata = {key: entry for key, entry in value["metadata"].items() if key != "managedFields"}
    return value | {"metadata": metadata}
