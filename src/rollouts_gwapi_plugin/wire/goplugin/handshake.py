"""go-plugin's handshake: what the host says in the environment, and the one line that the plugin answers on stdout.

`HostEnvironment.from_environ` reads the mapping that it is given (the process's environment), `HandshakeLine` is the
answer, both for the plugin that writes it and for the host that reads it. Values that Go's own plugins read past
(a version that is no number) are read past here; values that they stop at (a port that is no number, where a TCP
listener is made) are errors.
"""

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from rollouts_gwapi_plugin.errors import HandshakeError, shown

# The cookie says "started by Argo Rollouts, not by a person"; it is no secret.
COOKIE_NAME: Final = "ARGO_ROLLOUTS_RPC_PLUGIN"
COOKIE_VALUE: Final = "trafficrouter"
CORE_VERSION: Final = 1
# The application's protocol versions that this plugin speaks.
APP_VERSIONS: Final = (1,)
NETRPC: Final = "netrpc"
GRPC: Final = "grpc"

# A port has 16 bits.
_MAX_PORT: Final = 65535
# Ten digits hold every number that Go reads here (int32); reading a longer one is work for nothing.
_MAX_DIGITS: Final = 10
# Core version, application version, network and address must be there; protocol and certificate have defaults.
_REQUIRED_PARTS: Final = 4
_LINE_ENDS: Final = frozenset("\r\n")
# Go's scanner of the plugin's stdout gives up on longer lines.
MAX_LINE: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class HostEnvironment:
    """What the host that started us asks for."""

    cookie_ok: bool
    protocol_versions: tuple[int, ...]
    min_port: str
    max_port: str
    client_cert: str
    multiplex_grpc: bool
    socket_dir: str
    socket_group: str

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "HostEnvironment":
        """Read the environment; what is absent is empty or False."""
        return cls(
            cookie_ok=environ.get(COOKIE_NAME) == COOKIE_VALUE,
            protocol_versions=_versions(environ.get("PLUGIN_PROTOCOL_VERSIONS", "")),
            min_port=environ.get("PLUGIN_MIN_PORT", ""),
            max_port=environ.get("PLUGIN_MAX_PORT", ""),
            client_cert=environ.get("PLUGIN_CLIENT_CERT", ""),
            multiplex_grpc=environ.get("PLUGIN_MULTIPLEX_GRPC", "").lower() in {"1", "t", "true"},
            socket_dir=environ.get("PLUGIN_UNIX_SOCKET_DIR", ""),
            socket_group=environ.get("PLUGIN_UNIX_SOCKET_GROUP", ""),
        )

    def ports(self) -> range:
        """Return the ports for a TCP listener, 0 (any) for a host that names none.

        Raises:
            HandshakeError: a port is not a port, or the range is empty.

        """
        least, most = _port("PLUGIN_MIN_PORT", self.min_port), _port("PLUGIN_MAX_PORT", self.max_port)
        if least > most:
            raise HandshakeError(f"PLUGIN_MIN_PORT is {least}, more than PLUGIN_MAX_PORT, which is {most}")
        return range(least, most + 1)

    def app_version(self, ours: Collection[int] = APP_VERSIONS) -> int:
        """Return the highest version that both have, else our lowest: the host then says what does not fit."""
        return max(set(ours).intersection(self.protocol_versions), default=min(ours))


@dataclass(frozen=True, slots=True)
class HandshakeLine:
    """The plugin's answer; `server_cert` is DER, empty without AutoMTLS."""

    network: str
    address: str
    protocol: str = NETRPC
    app_version: int = APP_VERSIONS[0]
    server_cert: bytes = b""
    multiplex_grpc: bool | None = None


def handshake_line(line: HandshakeLine) -> str:
    """Return the line to write to stdout, with its newline.

    Raises:
        HandshakeError: the address would break the line into other parts.

    """
    if "|" in line.address or set(line.address) & _LINE_ENDS:
        raise HandshakeError(
            f"the address {line.address!r} can't be told to the host: it holds a separator of the handshake line"
        )
    # Go's plugins write standard base64 without padding, and the host decodes nothing else.
    certificate = base64.b64encode(line.server_cert).decode().rstrip("=")
    parts = [str(CORE_VERSION), str(line.app_version), line.network, line.address, line.protocol, certificate]
    if line.multiplex_grpc is not None:
        parts.append("true" if line.multiplex_grpc else "false")
    return "|".join(parts) + "\n"


def parse_handshake_line(text: str) -> HandshakeLine:
    """Read the line as a host does.

    Raises:
        HandshakeError: what a Go host would refuse.

    """
    line = text.strip()
    parts = line.split("|")
    if len(text) > MAX_LINE or len(parts) < _REQUIRED_PARTS or set(line) & _LINE_ENDS:
        raise HandshakeError(f"the plugin's first line is no go-plugin handshake: {shown(text)}")
    core, app, network, address = parts[:_REQUIRED_PARTS]
    protocol, certificate, multiplex = (parts[_REQUIRED_PARTS:] + [""] * 3)[:3]
    if core != str(CORE_VERSION):
        raise HandshakeError(f"the plugin has core protocol {shown(core)}, this host has {CORE_VERSION}")
    if not _is_number(app):
        raise HandshakeError(f"the plugin's application protocol {shown(app)} is not a number")
    if network not in {"unix", "tcp"}:
        raise HandshakeError(f"the plugin listens on the network {shown(network)}, expected unix or tcp")
    if (protocol or NETRPC) not in {NETRPC, GRPC}:
        raise HandshakeError(f"the plugin speaks {shown(protocol)}, expected netrpc or grpc")
    return HandshakeLine(
        network=network,
        address=address,
        protocol=protocol or NETRPC,
        app_version=int(app),
        server_cert=_certificate(certificate),
        multiplex_grpc=multiplex == "true" if multiplex else None,
    )


def _certificate(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise HandshakeError(f"the plugin's certificate is no base64: {error}") from error


def _port(name: str, text: str) -> int:
    if not text:
        return 0
    if not _is_number(text) or int(text) > _MAX_PORT:
        raise HandshakeError(f"{name} is {shown(text)}, expected a port from 0 to {_MAX_PORT}")
    return int(text)


def _versions(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if _is_number(part))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
