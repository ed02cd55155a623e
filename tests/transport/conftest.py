"""A plugin process with a host connected to it, over each transport, with and without TLS."""

import contextlib
import importlib.util
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from rollouts_gwapi_plugin.transport.calls import Answer
from rollouts_gwapi_plugin.wire.goplugin.handshake import HandshakeLine

if TYPE_CHECKING:
    from tests.conftest import StartPlugin
    from tests.plugin_process import PluginProcess
    from tests.transport.hosts import Call, Caller, ClientIdentity

Connect = Callable[..., "Caller"]


@pytest.fixture(scope="session")
def hosts() -> ModuleType:
    """Give the module `hosts`: a test file can't import its neighbour."""
    spec = importlib.util.spec_from_file_location("transport_hosts", Path(__file__).with_name("hosts.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def call(hosts: ModuleType) -> Callable[..., "Call"]:
    """Give the function that makes a call: `call("SetWeight", weight=20, annotations={…})`."""
    make: Callable[..., Call] = hosts.Call
    return make


@pytest.fixture(scope="session")
def client_identity(hosts: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> "ClientIdentity":
    """Give a host's certificate, P-521 as Go's."""
    identity: ClientIdentity = hosts.make_identity(tmp_path_factory.mktemp("client"), ec.SECP521R1())
    return identity


def raw_connection(line: HandshakeLine) -> socket.socket:
    """Connect as a host does, and send nothing."""
    if line.network == "unix":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(20)
        sock.connect(line.address)
        return sock
    address, _, port = line.address.rpartition(":")
    return socket.create_connection((address, int(port)), timeout=20)


@pytest.fixture
def raw() -> Callable[[HandshakeLine], socket.socket]:
    """Give the function that opens a bare connection."""
    return raw_connection


@pytest.fixture
def connect(hosts: ModuleType, tmp_path: Path) -> Iterator[Connect]:
    """Give the function that connects a host to a handshake line, over TLS where it gets an identity."""
    with contextlib.ExitStack() as stack:

        def connect_host(line: HandshakeLine, identity: "ClientIdentity | None" = None) -> "Caller":
            context = identity.context(line.server_cert) if identity else None
            host: Caller
            if line.protocol == "grpc":
                path = stack.enter_context(hosts.tunnel(tmp_path, line, context)) if context else line.address
                host = hosts.GrpcHost(f"unix:{path}" if line.network == "unix" else f"dns:///{line.address}")
            else:
                sock = raw_connection(line)
                host = hosts.NetRpcHost(context.wrap_socket(sock, server_hostname="localhost") if context else sock)
            stack.callback(host.close)
            return host

        yield connect_host


@dataclass
class Served:
    """A plugin and the host that is connected to it."""

    plugin: "PluginProcess"
    line: HandshakeLine
    host: "Caller"

    def perform(self, call: Any) -> Answer:
        """Call and wait for the answer."""
        return self.host.result(self.host.start(call))


@pytest.fixture(params=["netrpc", "grpc"])
def transport(request: pytest.FixtureRequest) -> str:
    """Name each transport in turn."""
    return str(request.param)


@pytest.fixture
def served(transport: str, start_plugin: "StartPlugin", connect: Connect) -> Served:
    """Start the plugin and connect a host, over each transport."""
    plugin = start_plugin("--transport", transport)
    line = plugin.handshake()
    return Served(plugin, line, connect(line))


@pytest.fixture(params=["plain", "tls"])
def served_both(
    request: pytest.FixtureRequest,
    transport: str,
    start_plugin: "StartPlugin",
    connect: Connect,
    client_identity: "ClientIdentity",
) -> Served:
    """Start the plugin and connect a host, over each transport, without and with TLS."""
    identity = client_identity if request.param == "tls" else None
    environ = {"PLUGIN_CLIENT_CERT": identity.certificate} if identity else {}
    plugin = start_plugin("--transport", transport, environ=environ)
    line = plugin.handshake()
    return Served(plugin, line, connect(line, identity))


@dataclass
class Guarded:
    """A plugin that lets in the owner of one certificate."""

    plugin: "PluginProcess"
    line: HandshakeLine


@pytest.fixture
def start_guarded(transport: str, start_plugin: "StartPlugin") -> Callable[["ClientIdentity"], Guarded]:
    """Give the function that starts the plugin with AutoMTLS, over each transport."""

    def start(identity: "ClientIdentity") -> Guarded:
        plugin = start_plugin("--transport", transport, environ={"PLUGIN_CLIENT_CERT": identity.certificate})
        return Guarded(plugin, plugin.handshake())

    return start
