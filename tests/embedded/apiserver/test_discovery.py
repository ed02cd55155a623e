"""Discovery and OpenAPI: what is served is what is told, and definitions change it."""

from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

_WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]},
        "versions": [
            {
                "name": name,
                "served": name != "v1alpha1",
                "storage": name == "v1",
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
            }
            for name in ("v1alpha1", "v1beta1", "v1")
        ],
    },
}


def test_definition_is_served_at_once(server: ApiServer, ask: Any) -> None:
    """A posted definition is established, in discovery, in OpenAPI, and takes objects."""
    posted = ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _WIDGETS).json()
    group = ask("GET", "/apis/example.com").json()
    resources = ask("GET", "/apis/example.com/v1").json()["resources"]
    schemas = ask("GET", "/openapi/v3/apis/example.com/v1").json()["components"]["schemas"]
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}

    assert {condition["type"] for condition in posted["status"]["conditions"]} == {"NamesAccepted", "Established"}
    assert [version["version"] for version in group["versions"]] == ["v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1"
    assert [entry["name"] for entry in resources] == ["widgets", "widgets/status"]
    assert schemas["com.example.v1.Widget"]["x-kubernetes-group-version-kind"][0]["kind"] == "Widget"
    assert ask("POST", "/apis/example.com/v1/namespaces/shop/widgets", widget).status == 201
    assert server.read("wd", "shop", "a")["kind"] == "Widget"


def test_deleted_definition_takes_its_objects_along(server: ApiServer, ask: Any) -> None:
    """Without its definition a kind is not served, and made again it is empty."""
    server.create(_WIDGETS)
    server.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "shop"}})
    server.delete("CustomResourceDefinition", "", "widgets.example.com")

    assert ask("GET", "/apis/example.com/v1/namespaces/shop/widgets/a").status == 404
    assert ask("GET", "/apis/example.com").status == 404
    server.create(_WIDGETS)
    assert server.list("Widget") == []


def test_every_kind_of_discovery_can_be_listed(ask: Any) -> None:
    """Each resource that discovery names answers a list with its own kind."""
    pages = [ask("GET", "/api/v1").json()]
    for group in ask("GET", "/apis").json()["groups"]:
        pages += [ask("GET", f"/apis/{version['groupVersion']}").json() for version in group["versions"]]

    for page in pages:
        root = "/api/" if page["groupVersion"] == "v1" else "/apis/"
        for resource in page["resources"]:
            if "/" not in resource["name"]:
                answer = ask("GET", f"{root}{page['groupVersion']}/{resource['name']}")
                assert (answer.status, answer.json()["kind"]) == (200, f"{resource['kind']}List"), resource


def test_wrong_definitions_are_refused(server: ApiServer, ask: Any) -> None:
    """A definition of another name, or without a storage version, is 422 and serves nothing."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    nameless = _WIDGETS | {"metadata": {"name": "other.example.com"}}
    storeless = _WIDGETS | {"spec": _WIDGETS["spec"] | {"versions": _WIDGETS["spec"]["versions"][:2]}}

    assert [ask("POST", path, body).status for body in (nameless, storeless)] == [422, 422]
    assert server.registry.find("example.com", "widgets") is None


def test_absent_groups_are_not_served() -> None:
    """A group that was left out has no stand-ins."""
    with ApiServer(absent_groups=["gateway.networking.k8s.io"]) as server:
        assert server.registry.find("gateway.networking.k8s.io", "httproutes") is None
        assert server.registry.find("argoproj.io", "rollouts") is not None
