"""The host's end of go-plugin's netrpc: yamux, the dispensed plugin's stream, net/rpc calls.

Takes a handshake line; connects and dispenses. Calls may come from any number of threads; one thread receives. What
must always hold: every call on the session and its bytes go out under one lock, and when the connection ends every
call that waits gets the error.
"""

import contextlib
import socket
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from rollouts_gwapi_plugin.embedded.host import gotypes
from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.controller import Reply
from rollouts_gwapi_plugin.errors import RpcError, WireError
from rollouts_gwapi_plugin.model.calls import Verification
from rollouts_gwapi_plugin.wire.gob import BOOL, INTERFACE, STRING, GoType
from rollouts_gwapi_plugin.wire.goplugin.broker import HostDial
from rollouts_gwapi_plugin.wire.goplugin.handshake import HandshakeLine
from rollouts_gwapi_plugin.wire.netrpc import ClientConnection, ReplyReceived
from rollouts_gwapi_plugin.wire.yamux import DataReceived, Role, Session, StreamFinished, StreamReset

PLUGIN_NAME = "RpcTrafficRouterPlugin"
# The stock host waits for ever; here a hung plugin is to be seen. Longer than any deadline of the plugin's own.
CALL_SECONDS = 60.0
CONNECT_SECONDS = 5.0
_CHUNK = 64 * 1024


class ConnectionEndedError(RpcError):
    """The plugin closed the connection, or is gone."""


class NetRpcClient:
    """A connection with one dispensed plugin."""

    def __init__(self, line: HandshakeLine) -> None:
        self._socket = _connect(line)
        self._session = Session(Role.CLIENT)
        self._clients: dict[int, ClientConnection] = {}
        self._waiting: dict[tuple[int, int], Future[ReplyReceived]] = {}
        self._lock = threading.Lock()
        self._dial: HostDial | None = None
        self._dialled = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._receive, name="netrpc-host", daemon=True)
        self._thread.start()
        with self._lock:
            self._control = self._open()
            # The plugin's output, which the stock host opens and throws away, too.
            self._outputs = {self._session.open(), self._session.open()}
            self._flush()
        self._plugin = self._dispense()

    def ping(self) -> None:
        """Ask whether it is alive."""
        self._call(self._control, "Control.Ping", BOOL, value=True)

    def call(self, call: Call) -> Reply:
        """Send a call of the plugin's interface and wait for its answer."""
        argument = gotypes.argument(call.method, call.arguments)
        body = self._call(self._plugin, f"Plugin.{call.method}", INTERFACE, argument)
        if isinstance(body, str):
            return Reply(text=body)
        if call.method == "VerifyWeight":
            verified = Verification(body.get("Verified", 0))
            answer = None if verified is Verification.NOT_IMPLEMENTED else verified is Verification.VERIFIED
            return Reply(error=body.get("Err", {}).get("ErrorString", ""), verified=answer)
        return Reply(error=body.get("ErrorString", ""))

    def quit(self) -> None:
        """Ask the plugin to end, wait for its answer or for the end of the connection, close.

        Go's plugins begin to end before they answer, so the answer may be lost (go-plugin, rpc_server.go); one that
        was gone before is an error.
        """
        try:
            self.ping()
            with contextlib.suppress(ConnectionEndedError):
                self._call(self._control, "Control.Quit", BOOL, value=True)
        finally:
            self._socket.close()
            self._thread.join(CONNECT_SECONDS)

    def _dispense(self) -> int:
        number = self._call(self._control, "Dispenser.Dispense", STRING, PLUGIN_NAME)
        with self._lock:
            self._dial = HostDial(number)
            stream = self._session.open()
            self._session.send(stream, self._dial.hello)
            self._flush()
        if not self._dialled.wait(CONNECT_SECONDS) or self._failure:
            raise RpcError(
                f"the plugin did not take the stream of the dispensed plugin: {self._failure or 'no answer'}"
            )
        return stream

    def _call(self, stream: int, method: str, go_type: GoType, value: Any) -> Any:
        future: Future[ReplyReceived] = Future()
        with self._lock:
            if self._failure is not None:
                raise ConnectionEndedError(f"{method}: the connection has ended: {self._failure}") from self._failure
            number, data = self._clients[stream].call(method, go_type, value)
            self._waiting[stream, number] = future
            self._session.send(stream, data)
            self._flush()
        try:
            reply = future.result(CALL_SECONDS)
        except FutureTimeoutError as error:
            raise RpcError(f"{method}: no answer in {CALL_SECONDS:g} s") from error
        if reply.error:
            raise RpcError(f"{method}: {reply.error}")
        return reply.body

    def _open(self) -> int:
        stream = self._session.open()
        self._clients[stream] = ClientConnection()
        return stream

    def _flush(self) -> None:
        """Write what the session has to send; the lock is held."""
        try:
            self._socket.sendall(self._session.data_to_send())
        except OSError as error:
            raise ConnectionEndedError(f"the connection has ended: {error}") from error

    def _receive(self) -> None:
        try:
            while data := self._socket.recv(_CHUNK):
                with self._lock:
                    for event in self._session.receive(data):
                        self._take(event)
                    self._flush()
            raise ConnectionResetError("the plugin closed the connection")
        except (OSError, WireError) as error:
            self._fail(error)

    def _take(self, event: object) -> None:
        if isinstance(event, DataReceived):
            self._session.consumed(event.stream, len(event.data))
            if event.stream in self._clients:
                for reply in self._clients[event.stream].receive(event.data):
                    self._waiting.pop((event.stream, reply.seq)).set_result(reply)
            elif event.stream not in self._outputs and self._dial is not None:
                self._acknowledge(event.stream, self._dial, event.data)
        elif isinstance(event, StreamReset | StreamFinished) and event.stream not in self._outputs:
            raise RpcError(f"the plugin ended stream {event.stream}")

    def _acknowledge(self, stream: int, dial: HostDial, data: bytes) -> None:
        rest = dial.receive(data)
        if rest is not None:
            self._clients[stream] = ClientConnection()
            self._dialled.set()

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self._failure = error
            waiting, self._waiting = self._waiting, {}
        self._dialled.set()
        for future in waiting.values():
            future.set_exception(ConnectionEndedError(f"the connection has ended: {error}"))


def _connect(line: HandshakeLine) -> socket.socket:
    try:
        if line.network == "tcp":
            host, _, port = line.address.rpartition(":")
            connected = socket.create_connection((host, int(port)), CONNECT_SECONDS)
        else:
            connected = socket.socket(socket.AF_UNIX)
            connected.settimeout(CONNECT_SECONDS)
            connected.connect(line.address)
    except OSError as error:
        raise RpcError(f"the plugin can't be reached at {line.address}: {error}") from error
    connected.settimeout(None)
    return connected
