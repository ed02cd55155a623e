"""The eight calls over gRPC: each takes its request apart, performs the call, and puts the answer together.

A call that fails is an answer with status OK and the error in it, as over net/rpc.
"""

from collections.abc import Callable
from typing import Any

import grpc

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.transport.calls import METHODS, Answer, Calls
from rollouts_gwapi_plugin.transport.grpc import convert
from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2 as pb
from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2_grpc as stubs

Context = grpc.ServicerContext


class TrafficRouterServicer(stubs.TrafficRouterServicer):
    """Serves the calls of the controller."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def InitPlugin(self, _request: pb.InitPluginRequest, _context: Context) -> pb.RpcError:  # noqa: N802 - Go's name
        """Prepare the plugin."""
        return convert.rpc_error(self._perform("InitPlugin", dict))

    def Type(self, _request: pb.TypeRequest, _context: Context) -> pb.TypeResponse:  # noqa: N802 - Go's name
        """Name the type of traffic router."""
        return convert.type_response(self._perform("Type", dict))

    def UpdateHash(self, request: pb.UpdateHashRequest, _context: Context) -> pb.RpcError:  # noqa: N802 - Go's name
        """Take note of new pod hashes."""
        return convert.rpc_error(self._perform("UpdateHash", lambda: convert.arguments(request)))

    def SetWeight(self, request: pb.SetWeightRequest, _context: Context) -> pb.RpcError:  # noqa: N802 - Go's name
        """Bring every configured route to the weight."""
        return convert.rpc_error(self._perform("SetWeight", lambda: convert.arguments(request)))

    def SetHeaderRoute(self, request: pb.SetHeaderRouteRequest, _context: Context) -> pb.RpcError:  # noqa: N802 - Go's
        """Add, change or remove one managed header route."""
        return convert.rpc_error(self._perform("SetHeaderRoute", lambda: convert.arguments(request)))

    def SetMirrorRoute(self, request: pb.SetMirrorRouteRequest, _context: Context) -> pb.RpcError:  # noqa: N802 - Go's
        """Add, change or remove one managed mirror route."""
        return convert.rpc_error(self._perform("SetMirrorRoute", lambda: convert.arguments(request)))

    def RemoveManagedRoutes(  # noqa: N802 - Go's name
        self, request: pb.RemoveManagedRoutesRequest, _context: Context
    ) -> pb.RpcError:
        """Remove all managed routes of the Rollout."""
        return convert.rpc_error(self._perform("RemoveManagedRoutes", lambda: convert.arguments(request)))

    def VerifyWeight(  # noqa: N802 - Go's name
        self, request: pb.VerifyWeightRequest, _context: Context
    ) -> pb.VerifyWeightResponse:
        """Tell whether the routes are at the weight."""
        return convert.verify_response(self._perform("VerifyWeight", lambda: convert.arguments(request)))

    def _perform(self, name: str, read: Callable[[], JsonObject]) -> Answer:
        method = METHODS[name]
        refused = self._calls.begin(method)
        if refused is not None:
            return refused
        try:
            return self._calls.perform(method, read)
        finally:
            self._calls.finish()


def register(server: grpc.Server, calls: Calls) -> None:
    """Add the service to a server."""
    add: Callable[[Any, grpc.Server], None] = stubs.add_TrafficRouterServicer_to_server
    add(TrafficRouterServicer(calls), server)
