"""Big, many, unknown and broken things on the wire: each is answered or refused, and the session beside it lives on."""

import contextlib
import copy
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

if TYPE_CHECKING:
    from tests.interop.conftest import Host, Mode

Rollout = dict[str, Any]
SYN = b"\x00\x01\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00"

GARBAGE = {
    "nothing": b"",
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("160301020001") + bytes(100),
    "zeros": bytes(100_000),
    "half-header": SYN[:5],
    "half-body": SYN + b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x10\x00" + b"part",
    "window-overrun": SYN + b"\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff",
    "gob-garbage": SYN + b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x08" + b"\xff" * 8,
    "gob-huge": SYN + b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x06" + b"\xfc\x7f\xff\xff\xff\x01",
}


def test_garbage_on_other_connections(go_host: "Host", mode: "Mode", rollout: Rollout) -> None:
    """Connections of garbage are ended and hurt nobody: the session beside them goes on, and the plugin stays."""
    go_host.started(mode)
    for garbage in GARBAGE.values():
        send_and_wait_for_the_end(go_host.address, garbage)
        assert go_host.do("ping")["error"] == ""

    assert go_host.call("SetWeight", rollout=rollout, weight=20)["error"] == ""


def send_and_wait_for_the_end(address: str, data: bytes) -> None:
    """Send, close the sending side, and read until the other side closes, too."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(address)
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass


@pytest.mark.parametrize("protocol", ["netrpc", "grpc"])
def test_stranger_without_certificate(go_host: "Host", protocol: str) -> None:
    """Under AutoMTLS a client with TLS but without the host's certificate gets no byte of the protocol."""
    go_host.started(protocol=protocol, auto_mtls=True, allow_grpc=True, args=["serve", "--transport", protocol])
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.socket(socket.AF_UNIX) as plain:
        plain.settimeout(10)
        plain.connect(go_host.address)
        received = speak(context, plain)

    assert received == b""
    assert go_host.do("ping")["error"] == ""


def speak(context: ssl.SSLContext, plain: socket.socket) -> bytes:
    """Open a stream inside TLS and return what comes back; with TLS 1.3 a refusal is seen only by reading."""
    try:
        with context.wrap_socket(plain) as connection:
            connection.sendall(SYN)
            return connection.recv(100)
    except (ssl.SSLError, ConnectionError):
        return b""


def test_large_rollout(go_host: "Host", mode: "Mode", api: ApiServer, rollout: Rollout) -> None:
    """A Rollout of 600 kB, more than two yamux windows, arrives whole, again and again."""
    annotations = {f"note-{n}": "x" * 1000 for n in range(600)}
    rollout["metadata"]["annotations"].update(annotations)
    go_host.started(mode)

    for weight in (10, 20, 30):
        assert go_host.call("SetWeight", rollout=rollout, weight=weight)["error"] == ""
    refs = api.read("HTTPRoute", "default", "web")["spec"]["rules"][0]["backendRefs"]
    assert [ref["weight"] for ref in refs] == [70, 30]


def test_oversized_rollout(go_host: "Host", mode: "Mode", rollout: Rollout) -> None:
    """A Rollout over the limit gets an error with the sizes, and all other calls go on."""
    large = copy.deepcopy(rollout)
    large["metadata"]["annotations"]["note"] = "x" * 20_000_000
    go_host.started(mode)
    error = go_host.call("SetWeight", rollout=large, weight=20)["error"]

    assert "20000" in error, error
    assert str({"netrpc": 8 << 20, "grpc": 16 << 20}[mode.protocol]) in error
    assert go_host.call("VerifyWeight", rollout=large, weight=20)["verified"] == 0
    assert go_host.do("ping")["error"] == ""
    assert go_host.call("SetWeight", rollout=rollout, weight=20)["error"] == ""


def test_parallel_calls(go_host: "Host", mode: "Mode", rollout: Rollout) -> None:
    """64 calls at once are all answered."""
    go_host.started(mode)
    answers = go_host.do("parallel", count=64, call={"method": "SetWeight", "rollout": rollout, "weight": 20})[
        "answers"
    ]

    assert [answer["error"] for answer in answers] == [""] * 64


def test_parallel_large_calls(go_host: "Host", mode: "Mode", rollout: Rollout) -> None:
    """16 large calls at once share the connection, and pings still get through."""
    rollout["metadata"]["annotations"].update({f"note-{n}": "x" * 1000 for n in range(600)})
    go_host.started(mode)
    go_host.background("large", "SetWeight", count=16, rollout=rollout, weight=20)
    assert go_host.do("ping")["error"] == ""
    answers = go_host.do("await", id="large")["answers"]

    assert [answer["error"] for answer in answers] == [""] * 16


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("Plugin.NoSuchMethod", "rpc: can't find method Plugin.NoSuchMethod"),
        ("NoSuchService.Ping", "rpc: can't find service NoSuchService.Ping"),
        ("nothing", "rpc: service/method request ill-formed: nothing"),
    ],
)
def test_unknown_method(go_host: "Host", method: str, error: str) -> None:
    """An unknown method with a nil interface is answered in net/rpc's words, where Go's own server hangs."""
    go_host.started()

    assert go_host.do("raw", method=method)["error"] == error
    assert go_host.call("Type")["type"] == "GatewayAPI"


def test_known_method_with_nil(go_host: "Host") -> None:
    """A method that needs arguments, called with a nil interface, is answered with an error."""
    go_host.started()

    answer = go_host.do("raw", method="Plugin.SetWeight")
    assert answer["error"] or answer["answer"]
    assert go_host.call("Type")["type"] == "GatewayAPI"


def test_unknown_plugin_type(go_host: "Host") -> None:
    """A plugin of another name can't be dispensed; ours still can."""
    go_host.started()

    assert go_host.do("dispense", name="RpcStepPlugin")["error"] == "unknown plugin type: RpcStepPlugin"
    assert go_host.do("dispense", name="RpcTrafficRouterPlugin")["error"] == ""
    assert go_host.call("Type")["type"] == "GatewayAPI"


def test_too_many_streams(go_host: "Host") -> None:
    """A host that dispenses without end is refused at the limit of streams, and what it has goes on working."""
    go_host.started()
    errors = [go_host.do("dispense", name="RpcTrafficRouterPlugin")["error"] for _ in range(300)]
    dispensed = errors.index(next(error for error in errors if error))

    assert dispensed >= 200
    assert set(errors[dispensed:]) == {"connection reset"}
    assert go_host.do("ping")["error"] == ""
    assert go_host.call("Type")["type"] == "GatewayAPI"
