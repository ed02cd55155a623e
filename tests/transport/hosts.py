"""Hosts of both transports with one face, so that a test is written once and run over each; see `conftest.py`.

A host plays the controller: it dispenses, pings, calls and quits. `Caller.start` sends a call, `Caller.result` waits
for its answer, so calls may overlap without threads in the test.
"""

import contextlib
import datetime as dt
import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rollouts_gwapi_plugin.model.calls import Verification
from rollouts_gwapi_plugin.transport.calls import Answer
from rollouts_gwapi_plugin.wire.gob import BOOL, INT, INTERFACE, STRING, Field, GoType, Interface, MapOf, StructOf
from rollouts_gwapi_plugin.wire.goplugin.broker import HostDial
from rollouts_gwapi_plugin.wire.goplugin.handshake import HandshakeLine
from rollouts_gwapi_plugin.wire.netrpc import ClientConnection, ReplyReceived
from rollouts_gwapi_plugin.wire.yamux import DataReceived, Role, Session

SECONDS = 20.0
PLUGIN_NAME = "RpcTrafficRouterPlugin"

ROLLOUT = StructOf(
    "Rollout",
    (
        Field(
            "ObjectMeta",
            StructOf(
                "ObjectMeta",
                (Field("Name", STRING), Field("Namespace", STRING), Field("Annotations", MapOf(STRING, STRING))),
            ),
        ),
    ),
)
HEADER = StructOf("SetHeaderRoute", (Field("Name", STRING),))
MIRROR = StructOf("SetMirrorRoute", (Field("Name", STRING), Field("Percentage", INT)))
ARGUMENTS = {
    "SetWeight": ("SetWeightAndVerifyWeightArgs", (Field("DesiredWeight", INT),)),
    "VerifyWeight": ("SetWeightAndVerifyWeightArgs", (Field("DesiredWeight", INT),)),
    "UpdateHash": ("UpdateHashArgs", (Field("CanaryHash", STRING), Field("StableHash", STRING))),
    "SetHeaderRoute": ("SetHeaderArgs", (Field("SetHeaderRoute", HEADER),)),
    "SetMirrorRoute": ("SetMirrorArgs", (Field("SetMirrorRoute", MIRROR),)),
    "RemoveManagedRoutes": ("RemoveManagedRoutesArgs", ()),
}


@dataclass(frozen=True)
class Call:
    """A call in no transport's words."""

    method: str
    annotations: dict[str, str] = field(default_factory=dict)
    weight: int = 0
    canary_hash: str = ""
    stable_hash: str = ""
    route: str = ""
    percentage: int | None = None

    def go_value(self) -> dict[str, Any]:
        """Return the arguments with Go's names; the encoder leaves out what is zero."""
        metadata = {"Name": "demo", "Namespace": "shop", "Annotations": self.annotations}
        named = {"Name": self.route, "Percentage": self.percentage}
        return {
            "Rollout": {"ObjectMeta": metadata},
            "DesiredWeight": self.weight,
            "CanaryHash": self.canary_hash,
            "StableHash": self.stable_hash,
            "SetHeaderRoute": named,
            "SetMirrorRoute": named,
        }

    def rollout_json(self) -> bytes:
        """Return the Rollout as JSON."""
        metadata = {"name": "demo", "namespace": "shop", "annotations": self.annotations}
        return json.dumps({"metadata": metadata}).encode()


class Caller(Protocol):
    """A host that is connected."""

    def ping(self) -> None:
        """Ping, as the controller does before each use."""

    def start(self, call: Call) -> Any:
        """Send a call; return its handle."""

    def result(self, handle: Any) -> Answer:
        """Wait for the answer."""

    def quit(self) -> None:
        """Ask the plugin to end, and wait until it has answered."""

    def close(self) -> None:
        """Close the connection."""


class NetRpcHost:
    """The stock controller's way, on our own codecs."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(SECONDS)
        self.socket = sock
        self.session = Session(Role.CLIENT)
        self.clients: dict[int, ClientConnection] = {}
        self.replies: dict[tuple[int, int], ReplyReceived] = {}
        self.raw = b""
        self.control = self.session.open()
        self.clients[self.control] = ClientConnection()
        self.outputs = [self.session.open(), self.session.open()]
        self.plugin = self.dispense()

    def dispense(self) -> int:
        """Return the stream of a newly dispensed plugin."""
        answer = self.reply(self.control, "Dispenser.Dispense", STRING, PLUGIN_NAME)
        assert answer.error == ""
        stream = self.session.open()
        dial = HostDial(answer.body)
        self.session.send(stream, dial.hello)
        self.raw = b""
        while dial.receive(self.raw) is None:
            self.raw = b""
            self.turn()
        self.clients[stream] = ClientConnection()
        return stream

    def turn(self) -> None:
        """Send what is to be sent, then receive once."""
        # The plugin may have answered and closed: then there is nothing to send, but something to read.
        if waiting := self.session.data_to_send():
            self.socket.sendall(waiting)
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionResetError("the plugin closed the connection")
        for event in self.session.receive(data):
            if isinstance(event, DataReceived):
                self.session.consumed(event.stream, len(event.data))
                if event.stream in self.clients:
                    for reply in self.clients[event.stream].receive(event.data):
                        self.replies[event.stream, reply.seq] = reply
                else:
                    self.raw += event.data

    def send(self, stream: int, method: str, go_type: GoType, value: Any) -> tuple[int, int]:
        """Send a call on a stream."""
        seq, data = self.clients[stream].call(method, go_type, value)
        self.session.send(stream, data)
        self.socket.sendall(self.session.data_to_send())
        return stream, seq

    def reply(self, stream: int, method: str, go_type: GoType, value: Any) -> ReplyReceived:
        """Call and wait for the reply."""
        return self.wait(self.send(stream, method, go_type, value))

    def wait(self, handle: tuple[int, int]) -> ReplyReceived:
        """Wait for a reply."""
        while handle not in self.replies:
            self.turn()
        return self.replies.pop(handle)

    def ping(self) -> None:
        """Ping over the connection."""
        assert self.reply(self.control, "Control.Ping", BOOL, value=True).error == ""

    def start(self, call: Call) -> Any:
        """Send a call."""
        value = None
        if call.method in ARGUMENTS:
            name, fields = ARGUMENTS[call.method]
            go_type = StructOf(name, (Field("Rollout", ROLLOUT), *fields))
            sent = {field.name: call.go_value()[field.name] for field in go_type.fields}
            for step in ("SetHeaderRoute", "SetMirrorRoute"):
                if step in sent:
                    known = {"Name", "Percentage"} if step == "SetMirrorRoute" else {"Name"}
                    sent[step] = {key: value for key, value in sent[step].items() if key in known}
            value = Interface(name, sent, go_type)
        return self.send(self.plugin, f"Plugin.{call.method}", INTERFACE, value)

    def result(self, handle: Any) -> Answer:
        """Wait for the answer."""
        reply = self.wait(handle)
        assert reply.error == ""
        if isinstance(reply.body, str):
            return Answer(text=reply.body)
        error = reply.body.get("Err", reply.body).get("ErrorString", "")
        return Answer(error=error, verified=Verification(reply.body.get("Verified", 0)))

    def quit(self) -> None:
        """Ask the plugin to end; return when it has answered."""
        assert self.reply(self.control, "Control.Quit", BOOL, value=True).error == ""

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


class GrpcHost:
    """A host over gRPC."""

    def __init__(self, target: str) -> None:
        import grpc
        from grpc_health.v1 import health_pb2_grpc

        from rollouts_gwapi_plugin.transport.grpc._generated.plugin import grpc_controller_pb2_grpc
        from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2_grpc

        self.channel = grpc.insecure_channel(target)
        self.router: Any = traffic_router_pb2_grpc.TrafficRouterStub(self.channel)  # type: ignore[no-untyped-call]
        self.controller: Any = grpc_controller_pb2_grpc.GRPCControllerStub(self.channel)  # type: ignore[no-untyped-call]
        self.health: Any = health_pb2_grpc.HealthStub(self.channel)
        self.ping()

    def ping(self) -> None:
        """Ping over the connection."""
        from grpc_health.v1 import health_pb2

        request = health_pb2.HealthCheckRequest(service="plugin")
        answer = self.health.Check(request, timeout=SECONDS, wait_for_ready=True)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING

    def start(self, call: Call) -> Any:
        """Send a call."""
        from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2 as pb

        rollout = call.rollout_json()
        mirror = pb.SetMirrorRoute(name=call.route, percentage=call.percentage)
        requests: dict[str, Callable[[], Any]] = {
            "InitPlugin": pb.InitPluginRequest,
            "Type": pb.TypeRequest,
            "SetWeight": lambda: pb.SetWeightRequest(rollout=rollout, desired_weight=call.weight),
            "VerifyWeight": lambda: pb.VerifyWeightRequest(rollout=rollout, desired_weight=call.weight),
            "UpdateHash": lambda: pb.UpdateHashRequest(
                rollout=rollout, canary_hash=call.canary_hash, stable_hash=call.stable_hash
            ),
            "SetHeaderRoute": lambda: pb.SetHeaderRouteRequest(
                rollout=rollout, header_route=pb.SetHeaderRoute(name=call.route)
            ),
            "SetMirrorRoute": lambda: pb.SetMirrorRouteRequest(rollout=rollout, mirror_route=mirror),
            "RemoveManagedRoutes": lambda: pb.RemoveManagedRoutesRequest(rollout=rollout),
        }
        return getattr(self.router, call.method).future(requests[call.method](), timeout=SECONDS)

    def result(self, handle: Any) -> Answer:
        """Wait for the answer."""
        reply = handle.result()
        if hasattr(reply, "type"):
            return Answer(text=reply.type)
        if hasattr(reply, "verified"):
            return Answer(error=reply.err.error_string, verified=Verification(reply.verified))
        return Answer(error=reply.error_string)

    def quit(self) -> None:
        """Ask the plugin to end; return when it has answered."""
        from rollouts_gwapi_plugin.transport.grpc._generated.plugin import grpc_controller_pb2

        self.controller.Shutdown(grpc_controller_pb2.Empty(), timeout=SECONDS)

    def close(self) -> None:
        """Close the connection."""
        self.channel.close()


@dataclass(frozen=True)
class ClientIdentity:
    """What AutoMTLS gives a host: a throw-away certificate, as Go makes it (P-521)."""

    certificate: str
    file: Path

    def context(self, server_certificate: bytes) -> ssl.SSLContext:
        """Return a context that trusts the plugin's certificate alone, as go-plugin's client does."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=server_certificate)
        context.load_cert_chain(self.file)
        context.set_alpn_protocols(["h2"])
        return context


def make_identity(folder: Path, curve: ec.EllipticCurve, name: str = "client") -> ClientIdentity:
    """Make such a certificate on a curve."""
    key = ec.generate_private_key(curve)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    both_roles = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(seconds=30))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both_roles), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA512())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / f"{name}.pem"
    file.write_bytes(private + pem)
    return ClientIdentity(pem.decode(), file)


@contextlib.contextmanager
def tunnel(folder: Path, line: HandshakeLine, context: ssl.SSLContext) -> Iterator[str]:
    """Give a unix socket that leads through TLS to the plugin: Python's gRPC can't show a P-521 certificate."""
    path = str(folder / "tunnel.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen()
        thread = threading.Thread(target=_carry, args=(server, line, context))
        thread.start()
        try:
            yield path
        finally:
            # A tunnel that nobody entered waits in accept.
            server.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)


def _carry(server: socket.socket, line: HandshakeLine, context: ssl.SSLContext) -> None:
    """Carry one connection, in one thread, until either side ends."""
    with contextlib.suppress(OSError):
        near, _ = server.accept()
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        raw.connect(line.address)
        with near, context.wrap_socket(raw, server_hostname="localhost") as far:
            while True:
                ready = [far] if far.pending() else select.select([near, far], [], [])[0]
                for source, target in ((near, far), (far, near)):
                    if source in ready:
                        data = source.recv(65536)
                        if not data:
                            return
                        target.sendall(data)
