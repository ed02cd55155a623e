"""Whatever a client sends, the server answers as an API server: never with an error of its own."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.apiserver.answers import Answer
from rollouts_gwapi_plugin.embedded.apiserver.asked import APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

_KEYS = st.sampled_from(
    [
        "metadata",
        "spec",
        "status",
        "rules",
        "ports",
        "data",
        "labels",
        "name",
        "namespace",
        "finalizers",
        "managedFields",
        "ownerReferences",
        "backendRefs",
        "matches",
        "names",
        "versions",
        "group",
        "op",
        "path",
        "value",
        "from",
        "x",
        "manager",
        "operation",
        "fieldsV1",
        "subjects",
        "roleRef",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "A b", "1", "/spec", "add", "All"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_KEYS, below, max_size=4),
    max_leaves=12,
)
_TYPES = st.sampled_from(
    [JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH, "application/yaml", "text/plain", ""]
)
_METHODS = st.sampled_from(["POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS"])
_QUERIES = st.dictionaries(
    st.sampled_from(["fieldManager", "force", "dryRun", "labelSelector", "fieldSelector", "limit", "continue",
                     "fieldValidation", "resourceVersion"]),
    st.sampled_from(["", "a", "true", "All", "1", "Strict", "metadata.name=a", "a in (b", "é"]),
    max_size=3,
)  # fmt: skip
# What the real API server itself answers with a 500.
_REAL_500 = ("failed to create typed patch object", "resourceVersion")


@pytest.fixture(scope="module")
def busy() -> Iterator[ApiServer]:
    """Start a server that keeps what the examples leave behind: later ones meet it."""
    with ApiServer() as running:
        for kind in ("ConfigMap", "Service"):
            spec = {"spec": {"ports": [{"port": 80}]}} if kind == "Service" else {"data": {"a": "b"}}
            running.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "n"}} | spec)
        yield running


def _answer(server: ApiServer, method: str, path: str, **parts: Any) -> Answer:
    request = server.requests.begin(method, path, parts.get("query", {}), {"content-type": parts.get("type", JSON)})
    request.raw_body = parts.get("body", b"")
    api = server._api
    return api.answer(request, api.identify(request))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_body_is_taken_or_refused(busy: ApiServer, data: st.DataObject) -> None:
    """Any JSON, as any object of any kind by any method, gets an answer of the API."""
    kind = data.draw(st.sampled_from(busy.registry.all()))
    name = data.draw(st.sampled_from(["", "/a", "/a/status", "/b"]))
    root = f"/apis/{kind.group}/{kind.preferred}" if kind.group else f"/api/{kind.preferred}"
    path = f"{root}/namespaces/n/{kind.plural}{name}" if kind.namespaced else f"{root}/{kind.plural}{name}"
    body = data.draw(_VALUES)
    if isinstance(body, dict) and data.draw(st.booleans()):
        body = {"apiVersion": kind.api_version(kind.preferred), "kind": kind.kind, "metadata": {"name": "a"}} | body
    method, query, media = data.draw(_METHODS), data.draw(_QUERIES), data.draw(_TYPES)

    answer = _answer(busy, method, path, query=query, type=media, body=json.dumps(body).encode())

    _check(answer)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_METHODS, st.text("/apisv1.nmeco{}%", max_size=40), st.binary(max_size=20), _TYPES)
def test_any_path_and_bytes_are_answered(busy: ApiServer, method: str, path: str, body: bytes, media: str) -> None:
    """Any path with any bytes gets an answer of the API, and so do any bytes for an object."""
    _check(_answer(busy, method, f"/{path}", body=body, type=media))
    _check(_answer(busy, method, "/api/v1/namespaces/n/configmaps/a", body=body, type=media))


def _check(answer: Answer) -> None:
    assert answer.head()
    if answer.stream is not None:
        return
    if answer.code == 500:
        assert any(text in answer.body.decode() for text in _REAL_500), answer.body
    if answer.content_type == JSON:
        json.loads(answer.body)
