"""Which backendRefs a route may use: kind, Service, port and ReferenceGrant. Pure.

Takes Services and ReferenceGrants as raw objects; tells of each reference what is wrong with it, in the reasons of the
`ResolvedRefs` condition. Traffic to a reference with a problem gets 500; routing and status ask the same question here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rollouts_gwapi_plugin.model.base import JsonObject

GATEWAY_GROUP = "gateway.networking.k8s.io"


@dataclass(frozen=True, order=True)
class ServicePort:
    """A port of a Service, where a backendRef points."""

    namespace: str
    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}:{self.port}"


@dataclass(frozen=True)
class Problem:
    """Why a reference can't be used: a reason of the Gateway API and a sentence."""

    reason: str
    message: str


def target_of(route: JsonObject, ref: JsonObject) -> ServicePort:
    """Return where a reference points; its namespace defaults to the route's."""
    namespace = ref.get("namespace") or route["metadata"].get("namespace", "")
    return ServicePort(namespace, ref["name"], ref.get("port") or 0)


class References:
    """The Services and grants of one moment; immutable."""

    def __init__(self, services: Iterable[JsonObject] = (), grants: Iterable[JsonObject] = ()) -> None:
        self._ports = {
            (service["metadata"].get("namespace", ""), service["metadata"]["name"]): {
                port["port"] for port in (service.get("spec") or {}).get("ports") or []
            }
            for service in services
        }
        self._grants = list(grants)

    def problem(self, route: JsonObject, ref: JsonObject) -> Problem | None:
        """Return what is wrong with a reference of the route, None if nothing is."""
        group, kind = ref.get("group") or "", ref.get("kind") or "Service"
        if (group, kind) != ("", "Service"):
            return Problem("InvalidKind", f"{kind} of group {group!r} is no backend here; only Services are")
        target = target_of(route, ref)
        if target.namespace != route["metadata"].get("namespace", "") and not self._granted(route, target):
            return Problem("RefNotPermitted", f"no ReferenceGrant in {target.namespace} allows {target}")
        ports = self._ports.get((target.namespace, target.name))
        if ports is None:
            return Problem("BackendNotFound", f"Service {target.namespace}/{target.name} not found")
        if target.port not in ports:
            return Problem("BackendNotFound", f"Service {target.namespace}/{target.name} has no port {target.port}")
        return None

    def _granted(self, route: JsonObject, target: ServicePort) -> bool:
        source = (GATEWAY_GROUP, route["kind"], route["metadata"].get("namespace", ""))
        return any(
            source
            in {(entry.get("group"), entry.get("kind"), entry.get("namespace")) for entry in spec.get("from", [])}
            and any(
                (to.get("group") or "", to.get("kind")) == ("", "Service") and to.get("name") in {None, "", target.name}
                for to in spec.get("to", [])
            )
            for spec in (
                grant.get("spec") or {}
                for grant in self._grants
                if grant["metadata"].get("namespace", "") == target.namespace
            )
        )


def references_of(rule: JsonObject) -> list[JsonObject]:
    """Return all references of a rule: its backends, and the mirrors of the rule and of its backends."""
    backends = rule.get("backendRefs") or []
    filters = [*(rule.get("filters") or []), *(entry for ref in backends for entry in ref.get("filters") or [])]
    mirrors = [(entry.get("requestMirror") or {}).get("backendRef") for entry in filters]
    return [*backends, *(mirror for mirror in mirrors if mirror)]
