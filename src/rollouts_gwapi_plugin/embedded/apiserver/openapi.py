"""OpenAPI v3: one document a group and version, made from the schemas of its kinds.

It has what clients look for: the schema of each kind by its group, version and kind, and for each path the operations
with the query parameters that they take (kubectl asks these before it leaves validation to the server).
"""

import hashlib
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.answers import Answer, json_answer
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate, encode
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Kind, Registry, Version
from rollouts_gwapi_plugin.model.base import JsonObject

Row = tuple[Kind, Version]
_GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
_OPERATIONS = {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")


def openapi_page(registry: Registry, place: str, server_version: str) -> Answer | None:
    """Give the list of documents, or the document of one place such as `apis/apps/v1`; None where there is none."""
    documents = _documents(registry)
    if not place:
        paths = {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={_state(rows)}"} for name, rows in documents.items()
        }
        return json_answer(200, {"paths": paths})
    rows = documents.get(place)
    return json_answer(200, _document(rows, server_version)) if rows else None


def short_hash(data: bytes) -> str:
    """Name a state of something."""
    return hashlib.sha256(data).hexdigest()[:16].upper()


def _state(rows: list[Row]) -> str:
    return short_hash(encode([[kind.plural, version.schema] for kind, version in rows]))


def _documents(registry: Registry) -> dict[str, list[Row]]:
    documents: dict[str, list[Row]] = {}
    for kind in registry.all():
        for version in kind.versions:
            if version.served:
                place = f"apis/{kind.group}/{version.name}" if kind.group else f"api/{version.name}"
                documents.setdefault(place, []).append((kind, version))
    return documents


def _document(rows: list[Row], server_version: str) -> JsonObject:
    schemas: JsonObject = {}
    paths: JsonObject = {}
    for kind, version in rows:
        schema = duplicate(version.schema) if version.schema else {"type": "object"}
        schemas[_name(kind, version)] = schema | {_GROUP_VERSION_KIND: [_identity(kind, version)]}
        paths |= _paths(kind, version)
    info = {"title": "Kubernetes", "version": server_version}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _name(kind: Kind, version: Version) -> str:
    prefix = ".".join(reversed(kind.group.split("."))) if kind.group else "io.k8s.api.core"
    return f"{prefix}.{version.name}.{kind.kind}"


def _identity(kind: Kind, version: Version) -> JsonObject:
    return {"group": kind.group, "version": version.name, "kind": kind.kind}


def _paths(kind: Kind, version: Version) -> JsonObject:
    root = f"/apis/{kind.group}/{version.name}" if kind.group else f"/api/{version.name}"
    collection = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    one = {method: _operation(kind, version, action) for method, action in _OPERATIONS.items()}
    many = {"get": _operation(kind, version, "list"), "post": _operation(kind, version, "post")}
    paths = {collection: many, f"{collection}/{{name}}": one}
    if version.status:
        paths[f"{collection}/{{name}}/status"] = {key: one[key] for key in ("get", "put", "patch")}
    return paths


def _operation(kind: Kind, version: Version, action: str) -> JsonObject:
    names = _WRITE_PARAMETERS if action in {"post", "put", "patch"} else ()
    parameters: list[Any] = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    reference = {"$ref": f"#/components/schemas/{_name(kind, version)}"}
    content = {"application/json": {"schema": reference}}
    return {
        "x-kubernetes-action": action,
        _GROUP_VERSION_KIND: _identity(kind, version),
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content}},
    }
