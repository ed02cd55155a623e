"""CustomResourceDefinitions: from the object to the row in the registry, and the status that the API server writes."""

from rollouts_gwapi_plugin.embedded.apiserver.causes import Cause, invalid_value, required_value
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import Path
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Kind, Version
from rollouts_gwapi_plugin.embedded.apiserver.metadata import now
from rollouts_gwapi_plugin.model.base import JsonObject


def check_definition(definition: JsonObject) -> list[Cause]:
    """Find what keeps a definition from being served; only what tests and people get wrong."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    missing: list[Path] = [("spec", "names", key) for key in ("plural", "kind") if not names.get(key)]
    missing += [("spec", key) for key in ("group", "scope") if not spec.get(key)]
    if missing:
        return [required_value(path) for path in missing]
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    causes: list[Cause] = []
    if definition["metadata"].get("name") != wanted:
        name = definition["metadata"].get("name")
        causes.append(invalid_value(("metadata", "name"), name, 'must be spec.names.plural+"."+spec.group'))
    storage = [version for version in spec.get("versions", []) if version.get("storage")]
    if len(storage) != 1:
        versions = spec.get("versions", [])
        why = "must have exactly one version marked as storage version"
        causes.append(invalid_value(("spec", "versions"), versions, why))
    return causes


def kind_of(definition: JsonObject) -> Kind:
    """Build the registry's row."""
    spec = definition["spec"]
    names = spec["names"]
    return Kind(
        group=spec["group"],
        plural=names["plural"],
        kind=names["kind"],
        versions=tuple(_version(version, definition) for version in spec["versions"]),
        namespaced=spec.get("scope") == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
    )


def set_status(definition: JsonObject) -> None:
    """Write the status of an accepted and established definition; one that will be refused stays as it is."""
    if check_definition(definition):
        return
    names = definition["spec"]["names"]
    old = definition.get("status", {})
    storage = next(version["name"] for version in definition["spec"]["versions"] if version.get("storage"))
    stored = list(old.get("storedVersions") or [])
    definition["status"] = {
        "acceptedNames": {"listKind": f"{names['kind']}List", "singular": names["kind"].lower()} | names,
        "conditions": old.get("conditions") or [_condition("NamesAccepted"), _condition("Established")],
        "storedVersions": stored if storage in stored else [*stored, storage],
    }


def _condition(kind: str) -> JsonObject:
    reason, message = {
        "NamesAccepted": ("NoConflicts", "no conflicts found"),
        "Established": ("InitialNamesAccepted", "the initial names have been accepted"),
    }[kind]
    return {"type": kind, "status": "True", "lastTransitionTime": now(), "reason": reason, "message": message}


def _deprecation(version: JsonObject, definition: JsonObject) -> str:
    spec = definition["spec"]
    default = f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    return str(version.get("deprecationWarning") or default)


def _version(version: JsonObject, definition: JsonObject) -> Version:
    return Version(
        name=version["name"],
        served=bool(version.get("served")),
        storage=bool(version.get("storage")),
        schema=version.get("schema", {}).get("openAPIV3Schema"),
        status="status" in (version.get("subresources") or {}),
        deprecation=_deprecation(version, definition) if version.get("deprecated") else "",
    )
