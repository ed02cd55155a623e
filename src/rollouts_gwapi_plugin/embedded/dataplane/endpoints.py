"""Where a Service's traffic goes: the pods that its selector takes, as a table in memory.

Takes a Service as a raw object; returns the addresses of the ready pods of its namespace whose labels have all of its
selector. A Service with the annotation `embedded.rollouts-gwapi-plugin/endpoints: "127.0.0.1:8081,127.0.0.1:8082"` goes
there instead. Every pod has one address; ports of the Service only have to exist. Thread-safe.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rollouts_gwapi_plugin.model.base import JsonObject

ENDPOINTS_ANNOTATION = "embedded.rollouts-gwapi-plugin/endpoints"
Address = tuple[str, int]


@dataclass(frozen=True)
class Pod:
    """A pod that serves at an address."""

    namespace: str
    labels: Mapping[str, str]
    address: Address
    ready: bool = True
    name: str = field(default="", compare=False)


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

    def addresses(self, service: JsonObject) -> list[Address]:
        """Return the addresses behind a Service, none where nothing is ready."""
        metadata, selector = service["metadata"], (service.get("spec") or {}).get("selector") or {}
        listed = (metadata.get("annotations") or {}).get(ENDPOINTS_ANNOTATION)
        if listed:
            return [_address(entry) for entry in listed.split(",")]
        with self._lock:
            pods = self._pods
        return [
            pod.address
            for pod in pods
            if selector
            and pod.ready
            and pod.namespace == metadata.get("namespace", "")
            and all(pod.labels.get(name) == value for name, value in selector.items())
        ]

    def next_address(self, service: JsonObject) -> Address | None:
        """Return the address whose turn it is, None where nothing is ready."""
        addresses = self.addresses(service)
        if not addresses:
            return None
        with self._lock:
            self._turn += 1
            return addresses[self._turn % len(addresses)]


def _address(entry: str) -> Address:
    host, _, port = entry.strip().rpartition(":")
    return host, int(port)
