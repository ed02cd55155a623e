"""Which routes a Gateway's listeners take. Pure.

Takes a route and a Gateway as raw objects; returns one `Attachment` for each parentRef that names the Gateway: the
listeners that take the route, or why none does, in the reasons of the `Accepted` condition. A listener sees the route
with the hostnames that both have.
"""

from dataclasses import dataclass

from rollouts_gwapi_plugin.embedded.dataplane.references import GATEWAY_GROUP
from rollouts_gwapi_plugin.model.base import JsonObject

_KINDS_BY_PROTOCOL = {
    "HTTP": {"HTTPRoute", "GRPCRoute"},
    "HTTPS": {"HTTPRoute", "GRPCRoute"},
    "TLS": {"TLSRoute", "TCPRoute"},
    "TCP": {"TCPRoute"},
    "UDP": {"UDPRoute"},
}


@dataclass(frozen=True)
class Attachment:
    """What became of one parentRef: the names of the listeners, or a reason and a message why there is none."""

    parent_ref: JsonObject
    listeners: tuple[str, ...]
    reason: str = "Accepted"
    message: str = "the route is accepted"


def attachments(route: JsonObject, gateway: JsonObject) -> list[Attachment]:
    """Return what became of each parentRef of the route that names the Gateway."""
    return [
        _attach(route, ref, gateway)
        for ref in (route.get("spec") or {}).get("parentRefs") or []
        if _names(route, ref, gateway)
    ]


def seen_by_listener(route: JsonObject, listener: JsonObject) -> JsonObject | None:
    """Return the route with the hostnames that the listener shares; None if both have some and share none."""
    own, wanted = (route.get("spec") or {}).get("hostnames") or [], listener.get("hostname") or ""
    if not wanted:
        return route
    shared = [common for name in own if (common := _narrower(name.lower(), wanted.lower()))] if own else [wanted]
    return {**route, "spec": {**route["spec"], "hostnames": shared}} if shared else None


def _narrower(first: str, second: str) -> str:
    """Return the narrower of two hostnames of which one covers the other, empty if neither does."""
    if _covers(second, first):
        return first
    return second if _covers(first, second) else ""


def _covers(wide: str, narrow: str) -> bool:
    return wide == narrow or (wide.startswith("*.") and narrow.endswith(wide[1:]))


def _names(route: JsonObject, ref: JsonObject, gateway: JsonObject) -> bool:
    metadata = gateway["metadata"]
    return (
        (ref.get("group") if ref.get("group") is not None else GATEWAY_GROUP) == GATEWAY_GROUP
        and (ref.get("kind") or "Gateway") == "Gateway"
        and ref["name"] == metadata["name"]
        and (ref.get("namespace") or route["metadata"].get("namespace", "")) == metadata.get("namespace", "")
    )


def _attach(route: JsonObject, ref: JsonObject, gateway: JsonObject) -> Attachment:
    listeners = [
        listener
        for listener in gateway["spec"]["listeners"]
        if ref.get("sectionName") in {None, "", listener["name"]} and ref.get("port") in {None, 0, listener["port"]}
    ]
    if not listeners:
        return Attachment(ref, (), "NoMatchingParent", "no listener has the parentRef's sectionName and port")
    listeners = [listener for listener in listeners if _allows(listener, route, gateway)]
    if not listeners:
        return Attachment(ref, (), "NotAllowedByListeners", "no listener allows the route's kind and namespace")
    listeners = [listener for listener in listeners if seen_by_listener(route, listener) is not None]
    if not listeners:
        return Attachment(ref, (), "NoMatchingListenerHostname", "no listener has one of the route's hostnames")
    return Attachment(ref, tuple(listener["name"] for listener in listeners))


def _allows(listener: JsonObject, route: JsonObject, gateway: JsonObject) -> bool:
    allowed = listener.get("allowedRoutes") or {}
    kinds = {entry["kind"] for entry in allowed.get("kinds") or []} or _KINDS_BY_PROTOCOL.get(
        listener["protocol"], set()
    )
    # `Selector` needs the labels of namespaces, which this data plane does not watch: it allows none.
    namespaces = (allowed.get("namespaces") or {}).get("from") or "Same"
    same = route["metadata"].get("namespace", "") == gateway["metadata"].get("namespace", "")
    return route["kind"] in kinds and (namespaces == "All" or (namespaces == "Same" and same))
