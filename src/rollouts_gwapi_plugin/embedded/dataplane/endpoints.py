"""Where a Service's traffic goes: the pods that its selector takes, as a table in memory.

Takes a Service as a raw object; returns the addresses of the ready pods of its namespace whose labels have all of its
selector. A Service with the annotation `embedded.rollouts-gwapi-plugin/endpoints: "127.0.0.1:8081,127.0.0.1:8082"` goes
there instead. A port of the Service leads to the pod's address for its `targetPort` (a number or a name), where the pod
has one of its own, else to the pod's only address. Thread-safe.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rollouts_gwapi_plugin.model.base import JsonObject

ENDPOINTS_ANNOTATION = "embedded.rollouts-gwapi-plugin/endpoints"
Address = tuple[str, int]


@dataclass(frozen=True)
class Pod:
    """A pod that serves at an address; `ports` has those of further container ports, by number and by name."""

    namespace: str
    labels: Mapping[str, str]
    address: Address
    ready: bool = True
    name: str = field(default="", compare=False)
    ports: Mapping[str | int, Address] = field(default_factory=dict)

    def address_of(self, target_port: str | int) -> Address:
        """Return where a container port is served."""
        return self.ports.get(target_port, self.address)


class Endpoints:
    """The pods of a cluster."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._pods = tuple(pods)
        self._turn = 0
        self._lock = threading.Lock()

    def replace(self, pods: Iterable[Pod]) -> None:
        """Put other pods in place of all."""
        with self._lock:
            self._pods = tuple(pods)

    def addresses(self, service: JsonObject, port: int = 0) -> list[Address]:
        """Return the addresses behind a port of a Service, none where nothing is ready."""
        metadata, selector = service["metadata"], (service.get("spec") or {}).get("selector") or {}
        listed = (metadata.get("annotations") or {}).get(ENDPOINTS_ANNOTATION)
        if listed:
            return [_address(entry) for entry in listed.split(",")]
        target = _target_port(service, port)
        with self._lock:
            pods = self._pods
        return [
            pod.address_of(target)
            for pod in pods
            if selector
            and pod.ready
            and pod.namespace == metadata.get("namespace", "")
            and all(pod.labels.get(name) == value for name, value in selector.items())
        ]

    def next_address(self, service: JsonObject, port: int = 0) -> Address | None:
        """Return the address whose turn it is, None where nothing is ready."""
        addresses = self.addresses(service, port)
        if not addresses:
            return None
        with self._lock:
            self._turn += 1
            return addresses[self._turn % len(addresses)]


def _target_port(service: JsonObject, port: int) -> str | int:
    ports = (service.get("spec") or {}).get("ports") or []
    targets: list[str | int] = [entry.get("targetPort") or port for entry in ports if entry.get("port") == port]
    return targets[0] if targets else port


def _address(entry: str) -> Address:
    host, _, port = entry.strip().rpartition(":")
    return host, int(port)
