"""An Event is posted where core/v1 has them."""

from collections.abc import Callable
from typing import Any

from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.event_post import post_event


def test_event_is_created_in_its_namespace(api: Any, connect: Callable[..., KubeClient]) -> None:
    """An Event is one POST to the namespace's events."""
    post_event(connect(api), "shop", {"metadata": {"name": "web.1", "namespace": "shop"}, "reason": "X"})

    assert [(request.method, request.path) for request in api.requests] == [("POST", "/api/v1/namespaces/shop/events")]
    assert api.requests[0].body["reason"] == "X"
