"""The last step of a write: into the store, and what follows from it for kinds and namespaces.

The caller holds the store's lock.
"""

from rollouts_gwapi_plugin.embedded.apiserver.definitions import kind_of
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Registry
from rollouts_gwapi_plugin.embedded.apiserver.schema import fill_defaults, prune
from rollouts_gwapi_plugin.embedded.apiserver.status import not_found
from rollouts_gwapi_plugin.embedded.apiserver.store import Store, Stored
from rollouts_gwapi_plugin.embedded.apiserver.targets import Target
from rollouts_gwapi_plugin.model.base import JsonObject

NAMESPACES = ("", "namespaces")
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")


class Commits:
    """Writes to the store; a CustomResourceDefinition adds or ends a kind, a namespace's end is that of all in it."""

    def __init__(self, registry: Registry, store: Store, *, strict_namespaces: bool) -> None:
        self._registry = registry
        self._store = store
        self._strict_namespaces = strict_namespaces

    def check_namespace(self, target: Target) -> None:
        """Raise 404 where objects need a namespace and there is none."""
        if self._strict_namespaces and target.kind.namespaced:
            namespaces = self._registry.find(*NAMESPACES)
            if namespaces and self._store.get(NAMESPACES, ("", target.namespace)) is None:
                raise not_found(namespaces, target.namespace)

    def put(self, target: Target, place: tuple[str, str], value: JsonObject) -> Stored:
        """Store a new state, in the storage version."""
        storage = target.kind.storage
        if storage is not target.version:
            value["apiVersion"] = target.kind.api_version(storage.name)
            if storage.schema is not None:
                prune(value, storage.schema)
                fill_defaults(value, storage.schema)
        stored = self._store.put(target.kind.key, place, value)
        if target.kind.key == DEFINITIONS:
            self._registry.register(kind_of(stored.value))
        return stored

    def remove(self, target: Target) -> Stored:
        """Remove an object that is there; return its last state."""
        removed = self._store.remove(target.kind.key, target.place)
        if target.kind.key == DEFINITIONS:
            self._remove_kind(kind_of(removed.value).key)
        elif target.kind.key == NAMESPACES:
            for kind in self._registry.all():
                if kind.namespaced:
                    self._remove_all(kind.key, target.name)
        return removed

    def _remove_kind(self, key: tuple[str, str]) -> None:
        self._remove_all(key, "")
        self._registry.withdraw(key)

    def _remove_all(self, key: tuple[str, str], namespace: str) -> None:
        for row in self._store.all(key, namespace):
            metadata = row.value["metadata"]
            self._store.remove(key, (metadata.get("namespace", ""), metadata["name"]))
