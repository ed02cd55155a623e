"""The pods of one version: a server for each container port, all under the version's name.

Takes a pod template; while the context is open its ports are served, each by what its name says: `grpc…` is gRPC
without TLS, `https…` and `tls…` HTTPS where a certificate is given, all others HTTP. A template without ports gets one
for HTTP.
"""

import ssl
from contextlib import ExitStack
from types import TracebackType
from typing import Protocol, Self

from rollouts_gwapi_plugin.embedded.backends import Arrivals, EchoBackend
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Address, Pod
from rollouts_gwapi_plugin.model.base import JsonObject

VERSION_LABEL = "version"


class Backend(Protocol):
    """A server of any protocol."""

    arrivals: Arrivals

    @property
    def address(self) -> Address:
        """Host and port."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class VersionPods:
    """Pods of one template; they all share one server a port, since they answer alike."""

    def __init__(self, name: str, template: JsonObject, tls: ssl.SSLContext | None) -> None:
        self.name = name
        self.labels: dict[str, str] = (template.get("metadata") or {}).get("labels") or {}
        self._backends = [(port, _backend(name, port, tls)) for port in container_ports(template)]
        self._stack = ExitStack()

    def pod(self, namespace: str, labels: dict[str, str]) -> Pod:
        """Return a pod with further labels."""
        ports: dict[str | int, Address] = {}
        for port, backend in self._backends:
            ports |= {port["containerPort"]: backend.address, port.get("name", ""): backend.address}
        return Pod(namespace, {**self.labels, **labels}, self._backends[0][1].address, ports=ports)

    def times(self, request_id: str) -> int:
        """Return how often a request arrived."""
        return sum(backend.arrivals.times(request_id) for _, backend in self._backends)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for _, backend in self._backends:
                stack.enter_context(backend)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def container_ports(template: JsonObject) -> list[JsonObject]:
    """Return the ports of all containers."""
    containers = (template.get("spec") or {}).get("containers") or []
    found = [port for container in containers for port in container.get("ports") or []]
    return found or [{"name": "http", "containerPort": 80}]


def version_name(template: JsonObject) -> str:
    """Return what a version is called: its label `version`, else the tag of its image, else nothing."""
    label: str = ((template.get("metadata") or {}).get("labels") or {}).get(VERSION_LABEL, "")
    containers = (template.get("spec") or {}).get("containers") or [{}]
    return label or str(containers[0].get("image", "")).rpartition(":")[2]


def _backend(name: str, port: JsonObject, tls: ssl.SSLContext | None) -> Backend:
    protocol = str(port.get("name", ""))
    if protocol.startswith("grpc"):
        # The gRPC libraries take half a second to import.
        from rollouts_gwapi_plugin.embedded.grpc_backend import GrpcBackend  # noqa: PLC0415

        return GrpcBackend(name)
    return EchoBackend(name, tls=tls if protocol.startswith(("https", "tls")) else None)
