"""The handshake: what a host asks for in the environment, and the line that it is answered."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import HandshakeError
from rollouts_gwapi_plugin.wire.goplugin.handshake import (
    GRPC,
    HandshakeLine,
    HostEnvironment,
    handshake_line,
    parse_handshake_line,
)

# What the controller sets.
CONTROLLER = {
    "ARGO_ROLLOUTS_RPC_PLUGIN": "trafficrouter",
    "PLUGIN_MIN_PORT": "10000",
    "PLUGIN_MAX_PORT": "25000",
    "PLUGIN_PROTOCOL_VERSIONS": "1",
}
NOTHING = HostEnvironment(
    cookie_ok=False,
    protocol_versions=(),
    min_port="",
    max_port="",
    client_cert="",
    multiplex_grpc=False,
    socket_dir="",
    socket_group="",
)


def test_environment_of_the_controller() -> None:
    """The environment of the stock controller is read whole."""
    expected = dataclasses.replace(NOTHING, cookie_ok=True, protocol_versions=(1,), min_port="10000", max_port="25000")
    found = HostEnvironment.from_environ({"PATH": "/bin", **CONTROLLER})

    assert expected == found
    assert range(10000, 25001) == found.ports()


def test_environment_of_a_shell() -> None:
    """Without any of its variables everything is absent."""
    assert HostEnvironment.from_environ({}) == NOTHING
    assert NOTHING.ports() == range(1)


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("PLUGIN_CLIENT_CERT", "-----BEGIN\nx\n", "client_cert", "-----BEGIN\nx\n"),
        ("PLUGIN_MULTIPLEX_GRPC", "true", "multiplex_grpc", True),
        ("PLUGIN_MULTIPLEX_GRPC", "false", "multiplex_grpc", False),
        ("PLUGIN_MULTIPLEX_GRPC", "", "multiplex_grpc", False),
        ("PLUGIN_UNIX_SOCKET_DIR", "/run/x", "socket_dir", "/run/x"),
        ("PLUGIN_UNIX_SOCKET_GROUP", "1000", "socket_group", "1000"),
        ("PLUGIN_PROTOCOL_VERSIONS", "3,1,2", "protocol_versions", (3, 1, 2)),
        ("PLUGIN_PROTOCOL_VERSIONS", "x,,1,-2, 3," + "9" * 5000, "protocol_versions", (1,)),
        ("ARGO_ROLLOUTS_RPC_PLUGIN", "metrics", "cookie_ok", False),
        ("PLUGIN_MAX_PORT", "65535", "max_port", "65535"),
    ],
)
def test_environment_variable(name: str, text: str, field: str, value: object) -> None:
    """Each variable is read as Go's plugins read it."""
    assert dataclasses.replace(NOTHING, **{field: value}) == HostEnvironment.from_environ({name: text})  # type: ignore[arg-type] # field by name


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"PLUGIN_MIN_PORT": "ten"}, "PLUGIN_MIN_PORT is 'ten', expected a port"),
        ({"PLUGIN_MAX_PORT": "65536"}, "PLUGIN_MAX_PORT is '65536'"),
        ({"PLUGIN_MAX_PORT": "-1"}, "PLUGIN_MAX_PORT is '-1'"),
        ({"PLUGIN_MAX_PORT": "1" * 5000}, "PLUGIN_MAX_PORT is '1111111111"),
        ({"PLUGIN_MAX_PORT": "\N{SUPERSCRIPT TWO}"}, "PLUGIN_MAX_PORT is"),
        ({"PLUGIN_MIN_PORT": "2"}, "PLUGIN_MIN_PORT is 2, more than PLUGIN_MAX_PORT, which is 0"),
        ({"PLUGIN_MIN_PORT": "2", "PLUGIN_MAX_PORT": "1"}, "PLUGIN_MIN_PORT is 2, more than PLUGIN_MAX_PORT"),
    ],
)
def test_ports_that_are_none(environ: dict[str, str], message: str) -> None:
    """A port that is no port, or an empty range, is an error for whoever needs one: the variable and what it holds."""
    found = HostEnvironment.from_environ(environ)
    with pytest.raises(HandshakeError, match=message):
        found.ports()


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [((1,), (1,), 1), ((1, 2, 3), (1, 2), 2), ((), (1, 2), 1), ((7,), (1, 2), 1)],
    ids=["stock", "highest-common", "host-says-none", "none-common"],
)
def test_version(theirs: tuple[int, ...], ours: tuple[int, ...], expected: int) -> None:
    """The highest version that both have is taken, else our lowest, so that the host can say what does not fit."""
    environment = dataclasses.replace(NOTHING, protocol_versions=theirs)

    assert expected == environment.app_version(ours)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (HandshakeLine("unix", "/tmp/plugin1"), "1|1|unix|/tmp/plugin1|netrpc|\n"),  # noqa: S108 - not opened
        (HandshakeLine("tcp", "127.0.0.1:10000", GRPC), "1|1|tcp|127.0.0.1:10000|grpc|\n"),
        (HandshakeLine("unix", "/s", server_cert=b"\xfb\xff\xfe\x01"), "1|1|unix|/s|netrpc|+//+AQ\n"),
        (HandshakeLine("unix", "/s", GRPC, multiplex_grpc=True), "1|1|unix|/s|grpc||true\n"),
    ],
    ids=["stock", "tcp-grpc", "certificate", "multiplexed"],
)
def test_line(line: HandshakeLine, text: str) -> None:
    """The line has the parts that Go's plugins write, the certificate in standard base64 without padding."""
    assert text == handshake_line(line)
    assert line == parse_handshake_line(text)


@pytest.mark.parametrize("address", ["/a|b", "/a\nb", "/a\rb"])
def test_address_that_breaks_the_line(address: str) -> None:
    """A socket path with a separator in it is refused, not written as another line."""
    with pytest.raises(HandshakeError, match="can't be told to the host"):
        handshake_line(HandshakeLine("unix", address))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no go-plugin handshake: ''"),
        ("hello\n", "no go-plugin handshake: 'hello"),
        ("1|1|unix|/s\n|netrpc|\n", "no go-plugin handshake"),
        ("1|1|unix\n", "no go-plugin handshake"),
        ("2|1|unix|/s|netrpc|\n", "core protocol '2', this host has 1"),
        ("1|one|unix|/s|netrpc|\n", "application protocol 'one' is not a number"),
        ("1|" + "9" * 5000 + "|unix|/s", "is not a number"),
        ("1|1|pipe|/s|netrpc|\n", "network 'pipe'"),
        ("1|1|unix|/s|http|\n", "speaks 'http'"),
        ("1|1|unix|/s|netrpc|!!\n", "no base64"),
        ("1|1|unix|/s|netrpc|A\n", "no base64"),
        ("1|1|unix|" + "/s" * 40000, "no go-plugin handshake"),
    ],
)
def test_line_that_is_none(text: str, message: str) -> None:
    """A line that a Go host would refuse is an error that shows what came."""
    with pytest.raises(HandshakeError, match=message):
        parse_handshake_line(text)


def test_short_line() -> None:
    """Four parts are enough: protocol and certificate have defaults."""
    assert parse_handshake_line("  1|1|unix|/s \n") == HandshakeLine("unix", "/s")


PARTS = st.sampled_from(["1", "unix", "tcp", "netrpc", "", "9" * 5000, "AQ"]) | st.text(max_size=5)


@given(st.lists(PARTS, max_size=8).map("|".join))
def test_any_line(text: str) -> None:
    """Any text is a line, which reads back, or HandshakeError with a message that stays short."""
    message = ""
    try:
        line = parse_handshake_line(text)
    except HandshakeError as error:
        message = str(error)
    else:
        assert line == parse_handshake_line(handshake_line(line))

    assert len(message) < 1000
