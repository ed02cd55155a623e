"""The gRPC server without a process around it: what becomes of a connection or a call that can't be carried on."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from rollouts_gwapi_plugin.model.calls import TrafficRouterService
from rollouts_gwapi_plugin.transport.calls import Calls
from rollouts_gwapi_plugin.transport.grpc import convert
from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2 as pb
from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2_grpc
from rollouts_gwapi_plugin.transport.grpc.server import GrpcServer
from rollouts_gwapi_plugin.transport.lifetime import Lifetime

SECONDS = 20.0


class Service:
    """Succeeds."""

    def init_plugin(self) -> None:
        """Do nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GrpcServer]:
    """Serve on a private socket."""
    service: TrafficRouterService = Service()  # type: ignore[assignment]  # no other call is made here
    running = GrpcServer(Calls(service), Lifetime(parent=1, parent_now=lambda: 1), str(tmp_path), None)
    yield running
    running.close(0.0)


def test_a_private_socket_that_is_gone_ends_the_connection_only(
    server: GrpcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's end is closed, and the inner one that reached nobody, too."""
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)

    ours, theirs = socket.socketpair()
    shutil.rmtree(server._folder)
    monkeypatch.setattr(socket, "socket", Noted)
    theirs.sendall(b"PRI * HTTP/2.0\r\n")
    with theirs:
        server.serve(ours)
        theirs.settimeout(SECONDS)

        assert theirs.recv(1) == b""
    assert [sock.fileno() for sock in made] == [-1]


def test_a_bug_while_answering_is_an_error_for_the_host(server: GrpcServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host does not wait for an answer that can't be made (D4), and the next call is served."""
    with grpc.insecure_channel(f"unix:{server._address}") as channel:
        router: Any = traffic_router_pb2_grpc.TrafficRouterStub(channel)  # type: ignore[no-untyped-call]
        with monkeypatch.context() as patched:
            patched.setattr(convert, "rpc_error", lambda _: 1 / 0)
            with pytest.raises(grpc.RpcError, match="division by zero"):
                router.InitPlugin(pb.InitPluginRequest(), timeout=SECONDS)

        assert router.InitPlugin(pb.InitPluginRequest(), timeout=SECONDS).error_string == ""
