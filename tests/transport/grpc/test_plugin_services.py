"""go-plugin's own services on our gRPC server, as its Go client uses them, and what a strange client gets."""

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from rollouts_gwapi_plugin.transport.grpc._generated.plugin import (
    grpc_broker_pb2,
    grpc_broker_pb2_grpc,
    grpc_stdio_pb2_grpc,
)
from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2 as pb
from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2_grpc
from rollouts_gwapi_plugin.wire.goplugin.handshake import HandshakeLine

if TYPE_CHECKING:
    from tests.conftest import StartPlugin
    from tests.plugin_process import PluginProcess

SECONDS = 20.0
SERVICE = "rollouts_gwapi_plugin.v1.TrafficRouter"


@pytest.fixture
def plugin(start_plugin: "StartPlugin") -> "PluginProcess":
    """Start the plugin over gRPC."""
    started: PluginProcess = start_plugin("--transport", "grpc")
    return started


@pytest.fixture
def line(plugin: "PluginProcess") -> HandshakeLine:
    """Read its handshake line."""
    return plugin.handshake()


@pytest.fixture
def channel(line: HandshakeLine) -> Iterator[grpc.Channel]:
    """Connect to it."""
    with grpc.insecure_channel(f"unix:{line.address}") as opened:
        grpc.channel_ready_future(opened).result(SECONDS)
        yield opened


@pytest.fixture
def router(channel: grpc.Channel) -> Any:
    """Give a client of the eight calls."""
    return traffic_router_pb2_grpc.TrafficRouterStub(channel)  # type: ignore[no-untyped-call]


def test_health_is_that_of_the_service_plugin(channel: grpc.Channel) -> None:
    """The host pings by the health of `plugin`; other names are unknown."""
    health: Any = health_pb2_grpc.HealthStub(channel)
    answer = health.Check(health_pb2.HealthCheckRequest(service="plugin"), timeout=SECONDS)
    with pytest.raises(grpc.RpcError) as raised:
        health.Check(health_pb2.HealthCheckRequest(service="other"), timeout=SECONDS)

    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_stdio_is_empty(channel: grpc.Channel) -> None:
    """Nothing is streamed, and the stream ends without an error."""
    stdio: Any = grpc_stdio_pb2_grpc.GRPCStdioStub(channel)  # type: ignore[no-untyped-call]

    assert list(stdio.StreamStdio(Empty(), timeout=SECONDS)) == []


def test_the_broker_holds_its_stream_and_answers_knocks(channel: grpc.Channel) -> None:
    """Offers are ignored; a knock is answered with an error, since nobody is in."""
    broker: Any = grpc_broker_pb2_grpc.GRPCBrokerStub(channel)  # type: ignore[no-untyped-call]
    sent = [
        grpc_broker_pb2.ConnInfo(service_id=1, network="unix", address="/nowhere"),
        grpc_broker_pb2.ConnInfo(service_id=7, knock=grpc_broker_pb2.ConnInfo.Knock(knock=True)),
    ]
    answers = list(broker.StartStream(iter(sent), timeout=SECONDS))

    assert [(answer.service_id, answer.knock.ack) for answer in answers] == [(7, True)]
    assert "no brokered connection 7" in answers[0].knock.error


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_lists_all_services(channel: grpc.Channel, version: str) -> None:
    """Tools like grpcurl find the services under both names of reflection."""
    method = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    ask = channel.stream_stream(
        method,
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE),
    ]
    listed, described = list(ask(iter(requests), timeout=SECONDS))

    names = {service.name for service in listed.list_services_response.service}
    assert names >= {SERVICE, "grpc.health.v1.Health", "plugin.GRPCController", "plugin.GRPCStdio", "plugin.GRPCBroker"}
    assert described.file_descriptor_response.file_descriptor_proto


@pytest.mark.parametrize(
    ("rollout", "told"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "is a JSON list, not an object"),
        (b"null", "is a JSON NoneType, not an object"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"metadata": 5}', "rollout.metadata"),
    ],
)
def test_a_rollout_that_is_none_is_told(router: Any, rollout: bytes, told: str) -> None:
    """What can't be read as a Rollout is the answer's error, with status OK; VerifyWeight is NotVerified."""
    answer = router.SetWeight(pb.SetWeightRequest(rollout=rollout, desired_weight=5), timeout=SECONDS)
    verified = router.VerifyWeight(pb.VerifyWeightRequest(rollout=rollout), timeout=SECONDS)

    assert told in answer.error_string
    assert verified == pb.VerifyWeightResponse(err=pb.RpcError())
    assert router.SetWeight(pb.SetWeightRequest(rollout=b"{}"), timeout=SECONDS) == pb.RpcError()


def test_unknown_methods_and_broken_messages_are_grpcs_own_errors(channel: grpc.Channel, router: Any) -> None:
    """They get a status, and the connection goes on."""
    codes = {}
    for method, message in (("Frobnicate", b""), ("SetWeight", b"\xff\xff\xff")):
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(f"/{SERVICE}/{method}", request_serializer=bytes)(message, timeout=SECONDS)
        codes[method] = raised.value.code()

    assert codes["Frobnicate"] == grpc.StatusCode.UNIMPLEMENTED
    assert codes["SetWeight"] != grpc.StatusCode.OK
    assert router.SetWeight(pb.SetWeightRequest(rollout=b"{}"), timeout=SECONDS) == pb.RpcError()


def test_messages_over_the_limit_are_refused(router: Any) -> None:
    """A Rollout beyond the limit gets a status; a large one below it is served."""
    large = json.dumps({"metadata": {"annotations": {"a": "x" * 6_000_000}}}).encode()
    assert router.SetWeight(pb.SetWeightRequest(rollout=large), timeout=SECONDS) == pb.RpcError()
    with pytest.raises(grpc.RpcError) as raised:
        router.SetWeight(pb.SetWeightRequest(rollout=b" " * (17 * 1024 * 1024)), timeout=SECONDS)

    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert router.SetWeight(pb.SetWeightRequest(rollout=b"{}"), timeout=SECONDS) == pb.RpcError()


@pytest.mark.parametrize("sent", [b"", b"\x00\x00\x00garbage", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff"])
def test_garbage_ends_its_connection_only(
    plugin: "PluginProcess",
    line: HandshakeLine,
    router: Any,
    raw: Callable[[HandshakeLine], socket.socket],
    sent: bytes,
) -> None:
    """A connection with bytes that are no HTTP/2 is closed; a host's goes on."""
    with raw(line) as sock:
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(4096):
            pass

    assert router.SetWeight(pb.SetWeightRequest(rollout=b"{}"), timeout=SECONDS) == pb.RpcError()
    with pytest.raises(subprocess.TimeoutExpired):
        plugin.wait(1.0)


def test_nobody_reaches_the_server_past_the_front(plugin: "PluginProcess", line: HandshakeLine) -> None:
    """The server's own socket lies in a folder with mode 0700."""
    plugin.wait_log("the plugin serves")
    with grpc.insecure_channel(f"unix:{line.address}") as opened:
        grpc.channel_ready_future(opened).result(SECONDS)
        (folder,) = (path for path in plugin.folder.glob("rollouts-gwapi-*") if path.is_dir())

    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in folder.iterdir()] == ["grpc.sock"]
