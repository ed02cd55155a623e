"""What an API server takes of a kind: read from its OpenAPI v3 document of a group and version.

Takes the document and a path such as `spec.rules[].name`; returns whether the kind's schema keeps the field, or how
many items a list may have. A CRD drops ("prunes") every field that its schema does not name, silently, unless the
schema says that it keeps unknown ones.
"""

from typing import Any

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ResourceType

_KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_KINDS = "x-kubernetes-group-version-kind"
# A schema of a CRD is inlined but for metadata; a chain of references longer than this is a loop.
_MAX_REFERENCES = 16


def kind_schema(document: JsonObject, resource: ResourceType) -> JsonObject | None:
    """Return the schema of a kind, None where the document has none."""
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    for schema in _schemas(document).values():
        if isinstance(schema, dict) and wanted in (schema.get(_KINDS) or []):
            return schema
    return None


def keeps(document: JsonObject, schema: JsonObject, path: str) -> bool:
    """Return whether a field is kept; `[]` after a name means the items of a list."""
    here = _resolved(document, schema)
    for part in path.split("."):
        if here.get(_KEEPS_UNKNOWN):
            return True
        properties = here.get("properties")
        if not isinstance(properties, dict):
            # A map of anything keeps its keys; an object without any schema is kept whole, too.
            return "additionalProperties" in here or here.get("type") in {None, "object"}
        name = part.removesuffix("[]")
        if name not in properties:
            return False
        here = _resolved(document, properties[name])
        if part.endswith("[]"):
            here = _resolved(document, here.get("items") or {})
    return True


def most_items(document: JsonObject, schema: JsonObject, path: str) -> int | None:
    """Return how many items the list at a path may have, None where the schema does not say."""
    here = _resolved(document, schema)
    for part in path.split("."):
        properties = here.get("properties")
        below = properties.get(part.removesuffix("[]")) if isinstance(properties, dict) else None
        here = _resolved(document, below)
        if part.endswith("[]"):
            here = _resolved(document, here.get("items"))
    most = here.get("maxItems")
    return most if type(most) is int else None


def has(value: Any, path: str) -> bool:
    """Return whether an object has a value at the path, in any item of the lists on the way."""
    name, _, rest = path.partition(".")
    if not isinstance(value, dict) or value.get(name.removesuffix("[]")) is None:
        return False
    inner = value[name.removesuffix("[]")]
    if name.endswith("[]"):
        return isinstance(inner, list) and (bool(inner) if not rest else any(has(item, rest) for item in inner))
    return has(inner, rest) if rest else True


def _schemas(document: JsonObject) -> JsonObject:
    components = document.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    return schemas if isinstance(schemas, dict) else {}


def _resolved(document: JsonObject, schema: Any) -> JsonObject:
    """Follow `$ref`, also where it stands alone in an allOf."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, dict):
            return {}
        alone = schema.get("allOf")
        if isinstance(alone, list) and len(alone) == 1 and "properties" not in schema:
            schema = alone[0]
        elif "$ref" in schema:
            schema = _schemas(document).get(str(schema["$ref"]).rpartition("/")[2], {})
        else:
            return schema
    return {}
