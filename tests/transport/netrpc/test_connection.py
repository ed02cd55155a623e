"""One connection, without a process around it: what a broken or strange host can and can't do.

Matrix: bad bytes at each level (frame, stream, gob, net/rpc) x who must not notice (the connection, other streams).
"""

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.calls import Verification, WeightCall
from rollouts_gwapi_plugin.transport.calls import Answer, Calls
from rollouts_gwapi_plugin.transport.lifetime import Lifetime
from rollouts_gwapi_plugin.transport.netrpc import connection as connection_module
from rollouts_gwapi_plugin.transport.netrpc import convert
from rollouts_gwapi_plugin.transport.netrpc.connection import Connection
from rollouts_gwapi_plugin.transport.netrpc.dispatch import ControlStream
from rollouts_gwapi_plugin.wire.gob import BOOL, INTERFACE, STRING, UINT, Field, Interface, StructOf
from rollouts_gwapi_plugin.wire.yamux import StreamFinished

if TYPE_CHECKING:
    from tests.transport.hosts import Call, NetRpcHost

MakeCall = Callable[..., "Call"]
SECONDS = 20.0


class Service:
    """Notes what comes; waits, or fails with a text, where it was told to."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Semaphore(0)
        self.error = ""

    def act(self, call: Any) -> None:
        """Note a call."""
        self.calls.append(call)
        self.started.release()
        assert self.gate.wait(SECONDS)
        if self.error:
            raise RouteError(self.error)

    def init_plugin(self) -> None:
        """Do nothing."""

    def type_name(self) -> str:
        """Name a type."""
        return "Stub"

    def update_hash(self, call: Any) -> None:
        """Note the call."""
        self.act(call)

    set_weight = set_header_route = set_mirror_route = remove_managed_routes = update_hash

    def verify_weight(self, call: WeightCall) -> Verification:
        """Note the call."""
        self.act(call)
        return Verification.VERIFIED


@dataclass
class Running:
    """A connection that is served in a thread, and the host's end of its socket."""

    socket: socket.socket
    service: Service
    calls: Calls
    lifetime: Lifetime
    thread: threading.Thread = field(repr=False)

    def ended(self) -> bool:
        """Wait until the connection was given up."""
        self.thread.join(SECONDS)
        return not self.thread.is_alive()


@pytest.fixture
def running() -> Iterator[Running]:
    """Serve a connection on a socket pair."""
    ours, theirs = socket.socketpair()
    service = Service()
    calls, life = Calls(service), Lifetime(parent=1, parent_now=lambda: 1)
    with ThreadPoolExecutor(4) as pool, theirs:
        thread = threading.Thread(target=Connection(ours, calls, pool, life).run)
        thread.start()
        theirs.settimeout(SECONDS)
        yield Running(theirs, service, calls, life, thread)
        service.gate.set()
        theirs.close()
        thread.join(SECONDS)


@pytest.fixture
def host(running: Running, hosts: ModuleType) -> "NetRpcHost":
    """Connect a host and dispense."""
    connected: NetRpcHost = hosts.NetRpcHost(running.socket)
    return connected


def test_an_unknown_plugin_is_an_error_and_nothing_else(host: "NetRpcHost", call: MakeCall) -> None:
    """Dispensing a name that is not served is answered in go-plugin's words; the connection goes on."""
    reply = host.reply(host.control, "Dispenser.Dispense", STRING, "provisioner")

    assert reply.error == "unknown plugin type: provisioner"
    assert host.result(host.start(call("SetWeight"))) == Answer()


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("Plugin.Frobnicate", "rpc: can't find method Plugin.Frobnicate"),
        ("Control.Ping", "rpc: can't find service Control.Ping"),
        ("SetWeight", "rpc: service/method request ill-formed: SetWeight"),
        ("", "rpc: service/method request ill-formed: "),
    ],
)
def test_an_unknown_method_is_answered(host: "NetRpcHost", call: MakeCall, method: str, error: str) -> None:
    """An unknown method with a nil interface, on which Go's own server hangs, gets Go's words; the stream goes on."""
    assert host.reply(host.plugin, method, INTERFACE, None).error == error
    assert host.result(host.start(call("SetWeight"))) == Answer()


def test_the_control_stream_has_its_own_services(host: "NetRpcHost") -> None:
    """The plugin's methods are not served on the control stream."""
    assert host.reply(host.control, "Plugin.Type", BOOL, value=True).error == "rpc: can't find service Plugin.Type"
    assert host.reply(host.control, "Control.Stop", BOOL, value=True).error == "rpc: can't find method Control.Stop"
    host.ping()


@pytest.mark.parametrize(
    ("go_type", "value", "told"),
    [
        (INTERFACE, None, "SetWeight takes a struct of arguments, nothing was sent"),
        (STRING, "text", "SetWeight takes a struct of arguments, str was sent"),
        (StructOf("Other", (Field("Number", UINT),)), {"Number": 7}, "the arguments of SetWeight hold no Rollout"),
    ],
)
def test_wrong_arguments_are_told(host: "NetRpcHost", go_type: Any, value: Any, told: str) -> None:
    """Arguments that are no call's are an error for the host, not the end of anything."""
    reply = host.reply(host.plugin, "Plugin.SetWeight", go_type, value)

    assert reply.error == ""
    assert reply.body["ErrorString"].startswith(told)
    host.ping()


def test_arguments_of_another_type_are_told_with_their_place(host: "NetRpcHost") -> None:
    """Where a field has another type than it should, the error names the field and the value."""
    rollout = StructOf("Rollout", (Field("ObjectMeta", STRING),))
    arguments = StructOf("SetWeightAndVerifyWeightArgs", (Field("Rollout", rollout),))
    value = Interface("SetWeightAndVerifyWeightArgs", {"Rollout": {"ObjectMeta": "text"}}, arguments)
    reply = host.reply(host.plugin, "Plugin.SetWeight", INTERFACE, value)

    assert "Rollout.ObjectMeta" in reply.body["ErrorString"]
    assert "found 'text'" in reply.body["ErrorString"]


def test_each_dispensed_plugin_is_a_stream_of_its_own(host: "NetRpcHost", call: MakeCall) -> None:
    """A second dispensed plugin works beside the first."""
    first = host.plugin
    host.plugin = host.dispense()
    assert host.result(host.start(call("SetWeight"))) == Answer()
    host.plugin = first

    assert host.result(host.start(call("SetWeight"))) == Answer()


def test_a_dial_with_an_unknown_number_ends_its_stream_only(host: "NetRpcHost", call: MakeCall) -> None:
    """A brokered stream with a number that was not given out is reset; the others go on."""
    stream = host.session.open()
    host.session.send(stream, struct.pack("<I", 4711))
    host.ping()

    assert host.result(host.start(call("SetWeight"))) == Answer()


@pytest.mark.parametrize("sent", [b"\x7fgarbage" * 20, b"\xfc\x7f\xff\xff\xff", b"\x00"])
def test_broken_gob_ends_the_connection(host: "NetRpcHost", running: Running, sent: bytes) -> None:
    """A stream with bytes that are no net/rpc ends the connection, so that the host's next ping tells it."""
    host.session.send(host.plugin, sent)
    running.socket.sendall(host.session.data_to_send())
    while running.socket.recv(4096):
        pass

    assert running.ended()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        bytes.fromhex("0000000100000001ffffffff"),
        bytes.fromhex("000000010000000200000000"),
        bytes.fromhex("000900010000000100000000"),
    ],
    ids=["http", "data over every window", "our own stream id", "no such frame"],
)
def test_a_broken_session_ends_with_a_go_away(running: Running, sent: bytes) -> None:
    """Bytes that are no yamux end the connection, with a go-away frame that says whose fault it was."""
    running.socket.sendall(sent)
    received = b""
    while data := running.socket.recv(4096):
        received += data

    assert running.ended()
    assert received[-12:] in {b"", bytes.fromhex("000300000000000000000001")}
    assert running.lifetime.host_gone == ""


def test_half_a_frame_ends_quietly(running: Running) -> None:
    """A connection that ends inside of a frame is closed, and was no session."""
    running.socket.sendall(bytes.fromhex("0001000100"))
    running.socket.close()

    assert running.ended()
    assert running.lifetime.host_gone == ""


def test_an_answer_nobody_waits_for_is_dropped(host: "NetRpcHost", running: Running, call: MakeCall) -> None:
    """A stream that the host closes while its call runs disturbs no other stream."""
    running.service.gate.clear()
    host.start(call("SetWeight"))
    assert running.service.started.acquire(timeout=SECONDS)
    host.session.reset(host.plugin)
    host.ping()
    running.service.gate.set()
    assert running.calls.wait_idle(SECONDS)
    host.plugin = host.dispense()

    assert host.result(host.start(call("SetWeight"))) == Answer()


@pytest.fixture
def finished(host: "NetRpcHost") -> list[int]:
    """Note the streams that the plugin finished."""
    noted: list[int] = []
    receive = host.session.receive

    def watched(data: bytes) -> list[Any]:
        events = receive(data)
        noted.extend(event.stream for event in events if isinstance(event, StreamFinished))
        return events

    host.session.receive = watched  # type: ignore[method-assign]
    return noted


def test_a_stream_that_the_host_finished_is_finished_here(host: "NetRpcHost", finished: list[int]) -> None:
    """A FIN is answered by ours, so that a Go host does not wait five minutes for it."""
    for stream in [*host.outputs, host.plugin]:
        host.session.finish(stream)
    host.ping()

    assert sorted(finished) == sorted([*host.outputs, host.plugin])


def test_running_calls_of_a_finished_stream_are_answered(
    host: "NetRpcHost", running: Running, call: MakeCall, finished: list[int]
) -> None:
    """A host that has asked all it wants gets each answer, and only then the end of the stream, as from Go's server."""
    running.service.gate.clear()
    handles = [host.start(call("SetWeight")), host.start(call("SetWeight"))]
    host.session.finish(host.plugin)
    host.ping()
    before = list(finished)
    running.service.gate.set()
    answers = [host.result(handle) for handle in handles]
    while not finished:
        host.turn()

    assert before == []
    assert answers == [Answer(), Answer()]
    assert finished == [host.plugin]


def test_request_and_end_in_one_write_are_answered(host: "NetRpcHost", finished: list[int]) -> None:
    """The same where the end comes with the request, before its call has begun."""
    seq, data = host.clients[host.plugin].call("Plugin.Type", INTERFACE, None)
    host.session.send(host.plugin, data)
    host.session.finish(host.plugin)
    reply = host.wait((host.plugin, seq))
    while not finished:
        host.turn()

    assert (reply.error, reply.body) == ("", "Stub")
    assert finished == [host.plugin]


def test_a_large_rollout_passes_the_window(host: "NetRpcHost", running: Running, call: MakeCall) -> None:
    """Arguments of several windows arrive whole."""
    text = "x" * 600_000
    assert host.result(host.start(call("SetWeight", annotations={"large": text}))) == Answer()

    assert running.service.calls[0].rollout.metadata.annotations["large"] == text


def test_a_long_error_is_cut(host: "NetRpcHost", running: Running, call: MakeCall) -> None:
    """An error becomes a condition of the Rollout, so there is an end to it; what to do stands at its own end."""
    running.service.error = f"{'e' * 10_000}; set this"
    error = host.result(host.start(call("SetWeight"))).error

    assert len(error) == 4_096
    assert re.fullmatch(r"e{3069} … e{1014}; set this", error)


def test_an_error_with_half_a_surrogate_is_told(host: "NetRpcHost", running: Running, call: MakeCall) -> None:
    """Text that UTF-8 can't hold is replaced, not lost."""
    running.service.error = "bad \udc80 text"

    assert host.result(host.start(call("SetWeight"))).error == "bad ? text"


def test_a_bug_while_answering_ends_the_connection(
    host: "NetRpcHost",
    running: Running,
    call: MakeCall,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An answer that can't be made is logged, and the host learns it by the end of the connection (D4)."""
    monkeypatch.setattr(convert, "reply", lambda *_: 1 / 0)
    host.start(call("SetWeight"))
    while running.socket.recv(4096):
        pass

    assert running.ended()
    assert running.calls.wait_idle(SECONDS)
    assert "no answer was made, by a bug" in capsys.readouterr().out


def test_a_bug_while_receiving_ends_the_connection(
    host: "NetRpcHost", running: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same where a call is not even taken in; the session counts as closed."""
    monkeypatch.setattr(ControlStream, "dispatch", lambda *_: 1 / 0)
    with contextlib.suppress(OSError, EOFError):
        host.ping()

    assert running.ended()
    assert "a connection ended by a bug" in capsys.readouterr().out
    assert running.lifetime.wait().reason == "the host has closed its last connection"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up a host that does not read after one second instead of ten."""
    assert connection_module.SEND_SECONDS == 10, "go-plugin's own timeout"
    monkeypatch.setattr(connection_module, "SEND_SECONDS", 1)


@pytest.mark.usefixtures("impatient")
def test_a_host_that_does_not_read_is_given_up(running: Running, hosts: ModuleType, call: MakeCall) -> None:
    """A host whose socket is full for too long loses its connection; no thread waits for it for ever."""
    host = hosts.NetRpcHost(running.socket)
    running.service.error = "e" * 4_096
    with contextlib.suppress(OSError):
        for _ in range(1_000):
            host.start(call("SetWeight"))

    assert running.ended()


def test_quit_ends_the_process_after_its_answer(host: "NetRpcHost", running: Running) -> None:
    """The lifetime is told only when the answer was sent."""
    host.quit()

    assert running.lifetime.wait().reason == "the host called Quit"
