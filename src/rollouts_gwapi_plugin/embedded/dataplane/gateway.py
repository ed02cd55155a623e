"""The reference Gateway: follows an API server, routes real requests by what it finds, writes route status.

`ReferenceGateway(connection, gateway, endpoints)` is a context manager; each listener of the Gateway object gets a port
of the loopback (`url("http")`): HTTP; gRPC, where an HTTP listener allows GRPCRoutes alone; TCP; and TLS, which is
passed through. After every change of routes, Services or grants the listeners get a new
configuration as a whole, then the routes' status is written with the generation that is now in effect, as a Gateway's
controller does. `wait_for` says when that has happened for a route. UDPRoutes get status only.

`lag` delays every change by that many seconds, and `writes_status` off makes a controller that reports nothing: how
slow and silent gateways look to a plugin. A VirtualGateway in the place of the Gateway serves Gloo Platform's
RouteTables instead.
"""

import datetime as dt
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from http import HTTPStatus
from types import TracebackType
from typing import Protocol, Self

from rollouts_gwapi_plugin.embedded.dataplane.attachment import attachments, seen_by_listener
from rollouts_gwapi_plugin.embedded.dataplane.connection_proxy import ConnectionListener
from rollouts_gwapi_plugin.embedded.dataplane.dealing import Dealer
from rollouts_gwapi_plugin.embedded.dataplane.decision import Configuration, Decision, decide
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Address, Endpoints
from rollouts_gwapi_plugin.embedded.dataplane.matching import RouteTable
from rollouts_gwapi_plugin.embedded.dataplane.proxy import Listener, Upstream
from rollouts_gwapi_plugin.embedded.dataplane.references import (
    GATEWAY_GROUP,
    References,
    ServicePort,
    references_of,
)
from rollouts_gwapi_plugin.embedded.dataplane.request import Request
from rollouts_gwapi_plugin.embedded.dataplane.routetable import (
    GLOO_GROUP,
    POLICY_GROUP,
    GlooObjects,
    GlooTables,
    as_gateway,
    table_status,
)
from rollouts_gwapi_plugin.embedded.dataplane.routetable import VERSIONS as GLOO_VERSIONS
from rollouts_gwapi_plugin.embedded.dataplane.status import route_status
from rollouts_gwapi_plugin.embedded.dataplane.watching import ApiConnection, Follower
from rollouts_gwapi_plugin.errors import Unavailable
from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.model.base import JsonObject

ROUTE_PLURALS = ("httproutes", "grpcroutes", "tcproutes", "tlsroutes", "udproutes")
GRANTS = "referencegrants"
TABLES = "routetables"
POLICIES = "mirrorpolicies"
VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")
START_SECONDS = 10.0


class RunningListener(Protocol):
    """A listener of any protocol."""

    @property
    def url(self) -> str:
        """Where it listens; the scheme is http, grpc, tcp or tls."""

    def start(self) -> None:
        """Begin to serve."""

    def stop(self) -> None:
        """Stop to serve."""


class ReferenceGateway:
    """One Gateway with its listeners."""

    def __init__(
        self,
        connection: ApiConnection,
        gateway: JsonObject,
        endpoints: Endpoints,
        *,
        ports: dict[str, int] | None = None,
        seed: int = 0,
    ) -> None:
        self.lag = 0.0
        self.writes_status = True
        self._connection = connection
        self._serves_tables = gateway.get("kind") == "VirtualGateway"
        self._gateway = as_gateway(gateway) if self._serves_tables else gateway
        self._endpoints = endpoints
        self._dealer = Dealer(seed)
        self._services: dict[tuple[str, str], JsonObject] = {}
        self._configurations: dict[str, Configuration] = {}
        self._effective: dict[tuple[str, str, str], int] = {}
        self._changed = threading.Event()
        self._stopped = threading.Event()
        self._programmed = threading.Condition()
        self._ports = ports or {}
        self._followers: dict[str, Follower] = {}
        self._listeners: dict[str, RunningListener] = {}
        self._stack = ExitStack()

    def url(self, listener: str = "") -> str:
        """Return the address of a listener, of the first one without a name; its scheme is the protocol's."""
        return self._listeners[listener or next(iter(self._listeners))].url

    def wait_for(self, kind: str, namespace: str, name: str, generation: int, seconds: float) -> None:
        """Wait until the route's generation, or a later one, is in effect; for a Service, its resourceVersion.

        Raises:
            Unavailable: It is not after that many seconds.
        """

        def in_effect() -> bool:
            return self._effective.get((kind, namespace, name), 0) >= generation

        with self._programmed:
            if not self._programmed.wait_for(in_effect, seconds):
                found = self._effective.get((kind, namespace, name), 0)
                raise Unavailable(f"{kind} {namespace}/{name}: generation {found} in effect, {generation} wanted")

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._follow(stack)
            self._program()
            programmer = threading.Thread(target=self._run, name="gateway-programmer", daemon=True)
            programmer.start()
            stack.callback(programmer.join)
            stack.callback(self._changed.set)
            stack.callback(self._stopped.set)
            self._listen(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _follow(self, stack: ExitStack) -> None:
        kinds = self._connection.served(GATEWAY_GROUP, VERSIONS)
        kinds["services"] = self._connection.served("", ("v1",))["services"]
        if self._serves_tables:
            kinds |= self._connection.served(GLOO_GROUP, GLOO_VERSIONS)
            kinds |= self._connection.served(POLICY_GROUP, GLOO_VERSIONS)
        for plural in ("services", GRANTS, *ROUTE_PLURALS, *((TABLES, POLICIES) if self._serves_tables else ())):
            if plural in kinds:
                follower = self._followers[plural] = Follower(self._connection, kinds[plural], self._changed.set)
                follower.start()
                stack.callback(follower.stop)
        deadline = time.monotonic() + START_SECONDS
        for plural, follower in self._followers.items():
            if not follower.ready.wait(max(0.0, deadline - time.monotonic())):
                raise Unavailable(f"{plural} could not be listed at {self._connection.server} in {START_SECONDS:g} s")

    def _listen(self, stack: ExitStack) -> None:
        upstream = Upstream(self._address)
        stack.callback(upstream.close)
        for entry in self._gateway["spec"]["listeners"]:
            listener = self._listener(entry, upstream)
            if listener is None:
                continue
            listener.start()
            stack.callback(listener.stop)
            self._listeners[entry["name"]] = listener

    def _listener(self, entry: JsonObject, upstream: Upstream) -> RunningListener | None:
        name, protocol = entry["name"], entry["protocol"]
        decide, port = self._decider(name), self._ports.get(name, 0)
        if protocol == "HTTP" and _takes_grpc_alone(entry):
            # The gRPC libraries take half a second to import.
            from rollouts_gwapi_plugin.embedded.dataplane.grpc_proxy import GrpcListener  # noqa: PLC0415

            return GrpcListener(name, decide, self._address, port)
        if protocol == "HTTP":
            return Listener(name, decide, upstream, port)
        if protocol in {"TCP", "TLS"}:
            return ConnectionListener(name, decide, self._address, port, reads_server_name=protocol == "TLS")
        return None

    def _decider(self, listener: str) -> Callable[[Request], Decision]:
        return lambda request: decide(request, self._configurations[listener], self._dealer)

    def _address(self, target: ServicePort) -> Address | None:
        service = self._services.get((target.namespace, target.name))
        return None if service is None else self._endpoints.next_address(service, target.port)

    def _run(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._stopped.is_set() or (self.lag and self._stopped.wait(self.lag)):
                return
            try:
                self._program()
            except (KeyError, TypeError, ValueError) as error:
                # An object that the API took without a schema can have any shape; the last configuration stays.
                get_logger().warning("the configuration can't be used", error=repr(error))
            except Unavailable as error:
                get_logger().warning("status was not written", error=str(error))

    def _program(self) -> None:
        """Put the objects of this moment into effect."""
        routes = [route for plural in ROUTE_PLURALS for route in self._objects(plural)]
        services = self._objects("services")
        references = References(services, self._objects(GRANTS))
        self._services = {
            (service["metadata"].get("namespace", ""), service["metadata"]["name"]): service for service in services
        }
        objects = GlooObjects(self._objects(TABLES), self._objects(POLICIES), services)
        self._configurations = {
            listener["name"]: Configuration(self._tables(objects), references, listener["port"])
            if self._serves_tables
            else self._configuration(listener, routes, references)
            for listener in self._gateway["spec"]["listeners"]
        }
        # A policy changes what a table's routes do: it is in effect when its own change is.
        generations = [*routes, *objects.tables, *objects.policies]
        with self._programmed:
            self._effective = {_identity(route): route["metadata"].get("generation", 1) for route in generations}
            self._effective |= {_identity(service): int(service["metadata"]["resourceVersion"]) for service in services}
            self._programmed.notify_all()
        if self.writes_status:
            for route in routes:
                self._write_route_status(route, references)
            for table in objects.tables:
                self._write_status(table, table_status(table, objects))

    def _objects(self, plural: str) -> list[JsonObject]:
        follower = self._followers.get(plural)
        return follower.objects() if follower else []

    def _tables(self, objects: GlooObjects) -> GlooTables:
        metadata = self._gateway["metadata"]
        return GlooTables(objects, (metadata["name"], metadata.get("namespace", "")))

    def _configuration(self, listener: JsonObject, routes: list[JsonObject], references: References) -> Configuration:
        attached = [
            route
            for route in routes
            if any(listener["name"] in attachment.listeners for attachment in attachments(route, self._gateway))
        ]
        seen = [shown for route in attached if (shown := seen_by_listener(route, listener)) is not None]
        return Configuration(RouteTable(seen), references, listener["port"])

    def _write_route_status(self, route: JsonObject, references: References) -> None:
        refs = [ref for rule in (route.get("spec") or {}).get("rules") or [] for ref in references_of(rule)]
        problems = [problem for ref in refs if (problem := references.problem(route, ref))]
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._write_status(route, route_status(route, attachments(route, self._gateway), problems, now))

    def _write_status(self, route: JsonObject, status: JsonObject) -> None:
        if status == (route.get("status") or {}):
            return
        plural = next(name for name, follower in self._followers.items() if follower.served.kind == route["kind"])
        path = self._followers[plural].served.object_path(route["metadata"])
        # Conditional: what is stale is not worth writing, the newer object is on its way here.
        body = {"metadata": {"resourceVersion": route["metadata"]["resourceVersion"]}, "status": status}
        code, answer = self._connection.json("PATCH", f"{path}/status", body)
        if code not in {HTTPStatus.OK, HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
            get_logger().warning("status was refused", route=path, status=code, error=str(answer.get("message")))


def _takes_grpc_alone(listener: JsonObject) -> bool:
    kinds = (listener.get("allowedRoutes") or {}).get("kinds") or []
    return {entry["kind"] for entry in kinds} == {"GRPCRoute"}


def _identity(item: JsonObject) -> tuple[str, str, str]:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]
