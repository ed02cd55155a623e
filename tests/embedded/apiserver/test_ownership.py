"""Managed fields: who owns what after any sequence of updates and applies."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer, StatusError
from rollouts_gwapi_plugin.embedded.apiserver.fields import field_values, from_fields_v1, object_schema, to_fields_v1
from rollouts_gwapi_plugin.embedded.apiserver.ownership import Claims

_DATA = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2"]), max_size=4)
_MANAGERS = st.sampled_from(["one", "two", "three"])
_STEPS = st.lists(st.tuples(st.sampled_from(["update", "apply", "force"]), _MANAGERS, _DATA), min_size=1, max_size=8)
_PATHS = st.sets(st.lists(st.sampled_from(["f:a", "f:b", 'k:{"n":1}', 'v:"x"']), min_size=1, max_size=3).map(tuple))


@given(_PATHS)
def test_fields_v1_is_read_as_it_was_written(paths: set[tuple[str, ...]]) -> None:
    """Any set of paths survives the notation of managedFields."""
    assert from_fields_v1(to_fields_v1(paths)) == paths


def _map(data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": data}


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_owners_and_fields_agree(steps: list[tuple[str, str, dict[str, str]]]) -> None:
    """Owned fields exist; an apply without force takes nothing from others; what an applier named is there."""
    server = ApiServer()
    try:
        for how, manager, data in steps:
            before = server.find("ConfigMap", "shop", "a")
            try:
                _write(server, how, manager, data)
            except StatusError as error:
                assert (error.code, how) == (409, "apply")  # noqa: PT017 - a refusal is one of the outcomes
                assert server.find("ConfigMap", "shop", "a") == before
                continue
            _check(server, how, data)
    finally:
        server.stop()


def _write(server: ApiServer, how: str, manager: str, data: dict[str, str]) -> None:
    if how == "update":
        server.load([_map(data)], manager=manager)
    else:
        server.apply(_map(data), manager=manager, force=how == "force")


def _check(server: ApiServer, how: str, data: dict[str, str]) -> None:
    after = server.find("ConfigMap", "shop", "a")
    assert after is not None
    fields = field_values(after, object_schema(None))
    claims = Claims.read(after["metadata"].get("managedFields"))
    owned = set().union(*(claim.fields for claim in claims.entries.values()))
    assert {path for path in owned if len(path) > 1} <= fields.keys()
    if how == "update":
        assert after.get("data", {}) == data
    else:
        assert data.items() <= after.get("data", {}).items()


def test_gitops_apply_and_plugin_write(server: ApiServer, web: dict[str, Any]) -> None:
    """Another manager's write of the rules makes the next apply a conflict that names it; force resets the rules."""
    server.apply(web, manager="gitops")
    changed = [
        {"backendRefs": [{"name": "stable", "port": 80, "weight": 80}, {"name": "canary", "port": 80, "weight": 20}]}
    ]
    server.edit("HTTPRoute", "shop", "web", lambda route: route["spec"].update(rules=changed), manager="plugin")

    with pytest.raises(
        StatusError, match=r'conflict with "plugin" using gateway\.networking\.k8s\.io/v1: \.spec\.rules'
    ):
        server.apply(web, manager="gitops")
    reset = server.apply(web, manager="gitops", force=True)

    assert reset["spec"]["rules"][0]["backendRefs"][1]["weight"] == 0
    assert [entry["manager"] for entry in reset["metadata"]["managedFields"]] == ["gitops"]
