"""The Services of experiments: read only when a route does not have them yet, for their ports (decision D31)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import SERVICES
from rollouts_gwapi_plugin.routes.desired import Desired, ServicePort

Ports = tuple[ServicePort, ...]


@dataclass(frozen=True)
class ServiceReader:
    """Reads each Service once a call, however many routes need it."""

    client: KubeClient
    deadline: Deadline
    _read: dict[tuple[str, str], Ports] = field(default_factory=dict)

    def with_ports(self, desired: Desired, names: Sequence[str]) -> Desired:
        """Return `desired` with the ports of the named destinations, or with the reason why they can't be known.

        A missing Service is a reason, too: the controller may still be creating it, and a backend without a Service
        answers 500 for its share.
        """
        ports: dict[str, Ports] = {}
        for name in names:
            try:
                ports[name] = self._ports(desired.namespace, name)
            except PluginError as error:
                what = f"experiment Service {desired.namespace}/{name} can't be read, so its backends are not set"
                return replace(desired, destination_problem=f"{what}: {error}")
        destinations = tuple(
            replace(destination, ports=ports.get(destination.name, destination.ports))
            for destination in desired.destinations
        )
        return replace(desired, destinations=destinations, stable_ports=self._stable_ports(desired))

    def _stable_ports(self, desired: Desired) -> Ports:
        """Return stable's ports, which only help to find an experiment's port by name; without them numbers must do."""
        try:
            return self._ports(desired.namespace, desired.stable)
        except PluginError:
            return ()

    def _ports(self, namespace: str, name: str) -> Ports:
        if (namespace, name) not in self._read:
            service = self.client.get(SERVICES, namespace, name, deadline=self.deadline)
            self._read[namespace, name] = _ports_of(service)
        return self._read[namespace, name]


def _ports_of(service: JsonObject) -> Ports:
    listed = (service.get("spec") or {}).get("ports") or []
    return tuple(ServicePort(str(port.get("name") or ""), int(port["port"])) for port in listed)
