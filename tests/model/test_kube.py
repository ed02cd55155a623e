"""How objects of the API are named."""

from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS, ObjectRef, ResourceType


def test_core_and_named_groups_have_paths_of_their_own() -> None:
    """The core group is under /api, without a group in apiVersion."""
    routes = ResourceType("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")

    assert ("v1", "/api/v1") == (CONFIG_MAPS.api_version, CONFIG_MAPS.path)
    assert ("gateway.networking.k8s.io/v1", "/apis/gateway.networking.k8s.io/v1") == (routes.api_version, routes.path)


def test_an_object_is_named_as_users_know_it() -> None:
    """Kind, namespace and name, as in every error."""
    assert "HTTPRoute shop/web" == str(ObjectRef("HTTPRoute", "shop", "web"))
