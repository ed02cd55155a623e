"""The host's end of the gRPC transport.

Takes a handshake line; learns the service's messages from the plugin by gRPC reflection, so that it shares no code with
the plugin, and fills them from the call's JSON by their field names. Pings are health checks, as in go-plugin.
"""

import base64
import json
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.controller import Reply
from rollouts_gwapi_plugin.errors import RpcError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.wire.goplugin.handshake import HandshakeLine

SERVICE = "rollouts_gwapi_plugin.v1.TrafficRouter"
SHUTDOWN = "/plugin.GRPCController/Shutdown"
# As over netrpc.
CALL_SECONDS = 60.0
# Where a message's field is not named like the argument.
_FIELD_NAMES = {"setHeaderRoute": "headerRoute", "setMirrorRoute": "mirrorRoute"}


class GrpcClient:
    """A channel to a plugin."""

    def __init__(self, line: HandshakeLine) -> None:
        target = f"unix:{line.address}" if line.network == "unix" else line.address
        self._channel = grpc.insecure_channel(target)
        self._health: Any = health_pb2_grpc.HealthStub(self._channel)
        self._check(wait=True)
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(self._channel))
        self._methods = dict(pool.FindServiceByName(SERVICE).methods_by_name)

    def ping(self) -> None:
        """Ask whether it is alive."""
        self._check(wait=False)

    def _check(self, *, wait: bool) -> None:
        request = health_pb2.HealthCheckRequest(service="plugin")
        try:
            answer = self._health.Check(request, timeout=CALL_SECONDS, wait_for_ready=wait)
        except grpc.RpcError as error:
            raise _broken("the health check", error) from error
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise RpcError(f"the plugin is not serving: {answer.status}")

    def call(self, call: Call) -> Reply:
        """Send a call of the plugin's interface and wait for its answer."""
        method = self._methods[call.method]
        request = json_format.ParseDict(_fields(call.arguments), GetMessageClass(method.input_type)())
        send: Any = self._channel.unary_unary(
            f"/{SERVICE}/{call.method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        try:
            answer = send(request, timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            raise _broken(call.method, error) from error
        fields = json_format.MessageToDict(answer, always_print_fields_with_no_presence=True)
        if call.method == "VerifyWeight":
            verified = None if fields["verified"] == "NOT_IMPLEMENTED" else fields["verified"] == "VERIFIED"
            return Reply(error=fields.get("err", {}).get("errorString", ""), verified=verified)
        return Reply(error=fields.get("errorString", ""), text=fields.get("type", ""))

    def quit(self) -> None:
        """Ask the plugin to end, wait for its answer or for the end of the connection, close.

        Go's plugins stop their server inside the call, which may lose the answer (go-plugin, grpc_controller.go); one
        that was gone before is an error.
        """
        shutdown: Any = self._channel.unary_unary(
            SHUTDOWN, request_serializer=lambda _: b"", response_deserializer=lambda data: data
        )
        try:
            self.ping()
            shutdown(b"", timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise _broken("Shutdown", error) from error
        finally:
            self._channel.close()


def _fields(arguments: JsonObject) -> JsonObject:
    fields = {_FIELD_NAMES.get(name, name): value for name, value in arguments.items()}
    if "rollout" in fields:
        # Bytes are base64 in protobuf's JSON.
        fields["rollout"] = base64.b64encode(json.dumps(fields["rollout"]).encode()).decode()
    return fields


def _broken(what: str, error: Any) -> RpcError:
    # What a call raises is also the call itself (grpc.Call), with code and details.
    return RpcError(f"{what}: {error.code().name}: {error.details()}")
