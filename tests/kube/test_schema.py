"""Whether a schema keeps a field (CRDs name what they keep, unless they keep all), and how much a list may hold."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.kube.schema import has, keeps, kind_schema, most_items
from rollouts_gwapi_plugin.model.kube import ResourceType

ROUTES = ResourceType("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
FILTER = {
    "type": "object",
    "properties": {"requestMirror": {"type": "object", "properties": {"percent": {"type": "integer"}}}},
}
ROUTE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "x-kubernetes-group-version-kind": [{"group": ROUTES.group, "version": "v1", "kind": "HTTPRoute"}],
    "properties": {
        "metadata": {"allOf": [{"$ref": "#/components/schemas/ObjectMeta"}]},
        "spec": {
            "type": "object",
            "properties": {
                "rules": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "filters": {"type": "array", "items": FILTER}},
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "odd": 5,
                "loop": {"$ref": "#/components/schemas/Loop"},
            },
        },
    },
}
DOCUMENT = {
    "components": {
        "schemas": {
            "io.k8s.HTTPRoute": ROUTE_SCHEMA,
            "ObjectMeta": {"type": "object", "properties": {"labels": {"additionalProperties": {"type": "string"}}}},
            "Loop": {"$ref": "#/components/schemas/Loop"},
        }
    }
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.rules[].name", True),
        ("spec.rules[].retry", False),
        ("spec.rules[].filters[].requestMirror.percent", True),
        ("spec.rules[].filters[].requestMirror.fraction", False),
        ("spec.rules[].filters[].cors.allowOrigins", False),
        ("spec.none.deeper", False),
        ("spec.free.whatever.deep", True),
        ("spec.map.key", True),
        ("metadata.labels.some", True),
        ("metadata.other", False),
        ("spec.rules[].name.deeper", False),
        ("spec.odd.x", True),
        ("status", False),
    ],
)
def test_path_is_kept_as_the_schema_says(path: str, *, expected: bool) -> None:
    """A field is kept if each step is named, or stands where unknown fields are kept."""
    assert keeps(DOCUMENT, ROUTE_SCHEMA, path) is expected


def test_loop_of_references_ends() -> None:
    """A schema that refers to itself is an answer, not an endless loop."""
    assert keeps(DOCUMENT, ROUTE_SCHEMA, "spec.loop.x") is True


def test_schema_is_found_by_kind() -> None:
    """A kind's schema is found by group, version and kind, and absent otherwise, also in garbage."""
    other = ResourceType(ROUTES.group, "v1beta1", "httproutes", "HTTPRoute")
    found = [kind_schema(it, ROUTES) for it in ({}, {"components": None}, {"components": {"schemas": {"x": 1}}})]

    assert (kind_schema(DOCUMENT, ROUTES), kind_schema(DOCUMENT, other)) == (ROUTE_SCHEMA, None)
    assert found == [None, None, None]


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        ({"spec": {"rules": [{}, {"name": "a"}]}}, "spec.rules[].name", True),
        ({"spec": {"rules": [{}, {}]}}, "spec.rules[].name", False),
        ({"spec": {"rules": []}}, "spec.rules[]", False),
        ({"spec": {"rules": [1]}}, "spec.rules[]", True),
        ({"spec": {"rules": {"name": 1}}}, "spec.rules[].name", False),
        ({"spec": {"percent": 0}}, "spec.percent", True),
        ({"spec": None}, "spec.percent", False),
        ([], "spec", False),
    ],
)
def test_object_has_a_path(value: Any, path: str, *, expected: bool) -> None:
    """An object has a path if some item of each list on the way has the rest; 0 is a value, null is none."""
    assert has(value, path) is expected


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("spec.rules", 16),
        ("spec.rules[].matches", 64),
        ("spec.rules[].name", None),
        ("spec.other[].x", None),
        ("x", None),
    ],
)
def test_how_many_items_a_list_may_have(path: str, most: int | None) -> None:
    """As the schema says, also behind a reference; None where it does not, or has no such list."""
    rule = {"type": "object", "properties": {"name": {"type": "string"}, "matches": {"type": "array", "maxItems": 64}}}
    rules = {"type": "array", "maxItems": 16, "items": {"$ref": "#/components/schemas/Rule"}}
    schema = {"properties": {"spec": {"properties": {"rules": rules, "other": {"maxItems": True}}}}}

    assert most == most_items({"components": {"schemas": {"Rule": rule}}}, schema, path)
    assert most_items({}, {"properties": {"spec": {"maxItems": True}}}, "spec") is None
