"""What go-plugin expects of a gRPC plugin beside its own service: health, the end, printed output, the broker.

The host pings by the health of the service `plugin`, and ends us by GRPCController.Shutdown. Nothing is streamed by
GRPCStdio: logs go to file descriptor 2, which the host reads anyway. We broker no further connections, but hold the
broker's stream open, since a Go client without any open call closes an idle connection after half an hour.
"""

from collections.abc import Callable, Iterator
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty as GoogleEmpty
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

from rollouts_gwapi_plugin.transport.grpc._generated.plugin import (
    grpc_broker_pb2,
    grpc_broker_pb2_grpc,
    grpc_controller_pb2,
    grpc_controller_pb2_grpc,
    grpc_stdio_pb2,
    grpc_stdio_pb2_grpc,
)

# The service whose health the host asks for.
HEALTH_SERVICE = "plugin"
SERVICES = (
    "grpc.health.v1.Health",
    "plugin.GRPCBroker",
    "plugin.GRPCController",
    "plugin.GRPCStdio",
    "rollouts_gwapi_plugin.v1.TrafficRouter",
    "grpc.reflection.v1alpha.ServerReflection",
)
REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"

Context = grpc.ServicerContext
Registrar = Callable[[Any, grpc.Server], None]


class Controller(grpc_controller_pb2_grpc.GRPCControllerServicer):
    """Ends the plugin when the host asks for it."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def Shutdown(  # noqa: N802 - go-plugin's name
        self, _request: grpc_controller_pb2.Empty, context: Context
    ) -> grpc_controller_pb2.Empty:
        """End once the answer is out."""
        context.add_callback(self._end)
        return grpc_controller_pb2.Empty()


class Stdio(grpc_stdio_pb2_grpc.GRPCStdioServicer):
    """Streams nothing."""

    def StreamStdio(  # noqa: N802 - go-plugin's name
        self, _request: GoogleEmpty, _context: Context
    ) -> Iterator[grpc_stdio_pb2.StdioData]:
        """End the stream at once."""
        return iter(())


class Broker(grpc_broker_pb2_grpc.GRPCBrokerServicer):
    """Holds the stream open and offers no server."""

    def StartStream(  # noqa: N802 - go-plugin's name
        self, request_iterator: Iterator[grpc_broker_pb2.ConnInfo], _context: Context
    ) -> Iterator[grpc_broker_pb2.ConnInfo]:
        """Answer each knock that nobody is in; ignore offers."""
        for offer in request_iterator:
            if offer.knock.knock:
                error = f"this plugin serves no brokered connection {offer.service_id}"
                yield grpc_broker_pb2.ConnInfo(
                    service_id=offer.service_id, knock=grpc_broker_pb2.ConnInfo.Knock(ack=True, error=error)
                )


def register(server: grpc.Server, end: Callable[[], None]) -> None:
    """Add the services to a server; `end` is called after Shutdown was answered."""
    # The generated functions carry no types.
    add_controller: Registrar = grpc_controller_pb2_grpc.add_GRPCControllerServicer_to_server
    add_stdio: Registrar = grpc_stdio_pb2_grpc.add_GRPCStdioServicer_to_server
    add_broker: Registrar = grpc_broker_pb2_grpc.add_GRPCBrokerServicer_to_server
    add_controller(Controller(end), server)
    add_stdio(Stdio(), server)
    add_broker(Broker(), server)
    healthy = health.HealthServicer()
    for name in ("", HEALTH_SERVICE):
        healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    _register_reflection(server)


def _register_reflection(server: grpc.Server) -> None:
    """Serve reflection as v1alpha, and under the name v1, whose messages are the same on the wire."""
    names = (*SERVICES, REFLECTION_V1)
    reflection.enable_server_reflection(names, server)
    servicer = reflection.ReflectionServicer(names)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(REFLECTION_V1, {"ServerReflectionInfo": handler}),)
    )
