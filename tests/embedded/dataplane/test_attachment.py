"""Which listeners take a route, and why not."""

from typing import Any

import pytest
import yaml

from rollouts_gwapi_plugin.embedded.dataplane.attachment import attachments, seen_by_listener

GATEWAY = yaml.safe_load("""
metadata: {name: edge, namespace: infra}
spec:
  listeners:
  - {name: open, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
  - {name: own, protocol: HTTP, port: 81}
  - {name: named, protocol: HTTP, port: 82, hostname: "*.example.com", allowedRoutes: {namespaces: {from: All}}}
  - name: grpc
    protocol: HTTP
    port: 83
    allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}
  - {name: chosen, protocol: HTTP, port: 84, allowedRoutes: {namespaces: {from: Selector}}}
""")


def route(
    ref: dict[str, Any], namespace: str = "shop", hostnames: tuple[str, ...] = (), kind: str = "HTTPRoute"
) -> Any:
    """Return a route with one parentRef."""
    spec = {"parentRefs": [{"name": "edge", "namespace": "infra", **ref}], "hostnames": list(hostnames)}
    return {"kind": kind, "metadata": {"namespace": namespace, "name": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("built", "listeners", "reason"),
    [
        (route({}), ("open", "named"), "Accepted"),
        (route({}, namespace="infra"), ("open", "own", "named"), "Accepted"),
        (route({}, kind="GRPCRoute"), ("open", "named", "grpc"), "Accepted"),
        (route({"sectionName": "open"}), ("open",), "Accepted"),
        (route({"port": 82}), ("named",), "Accepted"),
        (route({"sectionName": "open", "port": 81}), (), "NoMatchingParent"),
        (route({"sectionName": "own"}), (), "NotAllowedByListeners"),
        (route({"sectionName": "chosen"}), (), "NotAllowedByListeners"),
        (route({"sectionName": "grpc"}), (), "NotAllowedByListeners"),
        (route({"sectionName": "open"}, kind="TCPRoute"), (), "NotAllowedByListeners"),
        (route({"sectionName": "named"}, hostnames=("a.org",)), (), "NoMatchingListenerHostname"),
        (route({"sectionName": "named"}, hostnames=("a.org", "a.example.com")), ("named",), "Accepted"),
    ],
)
def test_attachment(built: dict[str, Any], listeners: tuple[str, ...], reason: str) -> None:
    """A route attaches to the listeners that its parentRef, kind, namespace and hostnames allow, or says why not."""
    (found,) = attachments(built, GATEWAY)

    assert (found.listeners, found.reason) == (listeners, reason)


@pytest.mark.parametrize("ref", [{"name": "other"}, {"namespace": "shop"}, {"kind": "Service", "group": ""}])
def test_other_parents_are_not_ours(ref: dict[str, Any]) -> None:
    """A parentRef to another Gateway, namespace or kind is left to its own controller."""
    assert attachments(route(ref), GATEWAY) == []


@pytest.mark.parametrize(
    ("of_route", "of_listener", "shared"),
    [
        ((), "", []),
        (("a.org",), "", ["a.org"]),
        ((), "*.example.com", ["*.example.com"]),
        (("a.example.com", "b.org"), "*.example.com", ["a.example.com"]),
        (("*.a.example.com",), "*.example.com", ["*.a.example.com"]),
        (("*.example.com",), "a.example.com", ["a.example.com"]),
        (("*.example.com",), "*.a.example.com", ["*.a.example.com"]),
        (("*.Example.com",), "*.example.com", ["*.example.com"]),
        (("*.org",), "*.com", None),
        (("example.com",), "*.example.com", None),
    ],
)
def test_shared_hostnames(of_route: tuple[str, ...], of_listener: str, shared: list[str] | None) -> None:
    """A listener sees a route by the hostnames that both cover."""
    seen = seen_by_listener(route({}, hostnames=of_route), {"name": "x", "hostname": of_listener})

    assert (seen and seen["spec"]["hostnames"]) == shared
