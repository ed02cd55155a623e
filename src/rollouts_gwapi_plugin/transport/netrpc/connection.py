"""One connection of a host: a socket, a yamux session on it, and net/rpc on its streams.

One thread receives (`run`); replies are sent by the threads that made them. One lock is around all protocol state, and
bytes are written under it in the order in which they were made, so header and body of a reply stay together. What must
always hold: the receiving thread never waits for a call, and nothing ends the process. A stream on which net/rpc is
broken ends the connection: a Go host would keep the dead client and ping the living control stream for ever, while a
failed ping makes it start the plugin anew.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

from rollouts_gwapi_plugin.errors import HandshakeError, StreamClosedError, WireError
from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.transport.calls import Calls, Method
from rollouts_gwapi_plugin.transport.lifetime import Lifetime
from rollouts_gwapi_plugin.transport.netrpc import convert
from rollouts_gwapi_plugin.transport.netrpc.dispatch import ControlStream, Later, PluginStream
from rollouts_gwapi_plugin.wire.goplugin.broker import PluginBroker
from rollouts_gwapi_plugin.wire.netrpc import CallReceived, ServerConnection
from rollouts_gwapi_plugin.wire.yamux import (
    DataReceived,
    Event,
    Role,
    Session,
    StreamFinished,
    StreamOpened,
    StreamReset,
)

# The streams that a host opens first, in this order. Nothing is printed to the last two: logs go to descriptor 2.
CONTROL = 1
OUTPUTS = (3, 5)
# What is read at once: a quarter of a stream's window.
CHUNK = 65_536
# As go-plugin's own write timeout: a host that does not read for this long is given up.
SEND_SECONDS = 10


class _RpcStream:
    """A stream that carries net/rpc, what answers on it, and how many answers are still to come."""

    def __init__(self, number: int, services: ControlStream | PluginStream, connection: ServerConnection) -> None:
        self.number = number
        self.services = services
        self.connection = connection
        self.running = 0
        self.finished = False


class Connection:
    """Serves one connection until the host or `close` ends it."""

    def __init__(self, sock: socket.socket, calls: Calls, pool: Executor, lifetime: Lifetime) -> None:
        self._socket = sock
        self._calls = calls
        self._pool = pool
        self._lifetime = lifetime
        self._lock = threading.Lock()
        self._session = Session(Role.SERVER)
        self._broker: PluginBroker[PluginStream] = PluginBroker()
        self._streams: dict[int, _RpcStream] = {}
        self._projections = convert.projections()
        self._counted = False
        self._afterwards: list[Callable[[], None]] = []
        self._log = get_logger()

    def run(self) -> None:
        """Receive until the connection ends."""
        # A blocking socket with a limit for sending only: receiving may wait for days.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
        try:
            while data := self._socket.recv(CHUNK):
                self._received(data)
        except WireError as error:
            self._log.warning("a connection sent what can't be read and is closed", error=str(error))
        except OSError as error:
            self._log.debug("a connection broke", error=str(error))
        except Exception as error:  # noqa: BLE001 - one connection's failure is not the process's (D4)
            self._log.error("a connection ended by a bug", exc_info=error)
        finally:
            self._socket.close()
            if self._counted:
                self._lifetime.session_closed()

    def close(self) -> None:
        """End the connection; `run` returns soon."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _received(self, data: bytes) -> None:
        with self._lock:
            try:
                for event in self._session.receive(data):
                    self._handle(event)
            finally:
                # A session that broke has its go-away frame to send.
                self._flush()
            afterwards, self._afterwards = self._afterwards, []
        for action in afterwards:
            action()

    # Below, the lock is held.

    def _flush(self) -> None:
        if data := self._session.data_to_send():
            self._socket.sendall(data)

    def _handle(self, event: Event) -> None:
        match event:
            case StreamOpened(stream=number) if number == CONTROL:
                services = ControlStream(
                    offer=lambda: self._broker.offer(PluginStream()),
                    quit=partial(self._lifetime.end, "the host called Quit"),
                )
                self._streams[number] = _RpcStream(number, services, ServerConnection())
            case DataReceived(stream=number, data=data):
                self._stream_received(number, data)
                self._session.consumed(number, len(data))
            case StreamFinished(stream=number):
                stream = self._streams.get(number)
                self._forget(number)
                if stream is not None and stream.running:
                    # As Go's server: a host that asks no more still gets its answers, and our end after them.
                    stream.finished = True
                else:
                    self._finish(number)
            case StreamReset(stream=number):
                self._forget(number)
            case _:
                # Nothing to do: streams for output, signs of the session itself.
                return

    def _finish(self, number: int) -> None:
        with contextlib.suppress(StreamClosedError):
            self._session.finish(number)

    def _forget(self, number: int) -> None:
        self._streams.pop(number, None)
        self._broker.forget(number)

    def _stream_received(self, number: int, data: bytes) -> None:
        if number in OUTPUTS:
            return
        stream = self._streams.get(number)
        if stream is None:
            stream, data = self._dialled(number, data)
        if stream is not None:
            for call in stream.connection.receive(data):
                self._dispatch(stream, call)

    def _dialled(self, number: int, data: bytes) -> tuple[_RpcStream | None, bytes]:
        """Take the first bytes of a brokered stream: the number that Dispense had answered."""
        try:
            dialled = self._broker.receive(number, data)
        except HandshakeError as error:
            self._log.warning("a stream that nobody waits for is closed", stream=number, error=str(error))
            self._forget(number)
            self._session.reset(number)
            return None, b""
        if dialled is None:
            return None, b""
        with contextlib.suppress(StreamClosedError):
            self._session.send(number, dialled.answer)
        stream = _RpcStream(number, dialled.service, ServerConnection(projections=self._projections))
        self._streams[number] = stream
        return stream, dialled.rest

    def _dispatch(self, stream: _RpcStream, call: CallReceived) -> None:
        if not self._counted:
            self._counted = True
            self._lifetime.session_opened()
        what = stream.services.dispatch(call)
        if isinstance(what, Later):
            self._start(stream, call, what.method)
            return
        self._send(stream, call, what.reply)
        if what.then is not None:
            self._afterwards.append(what.then)

    def _start(self, stream: _RpcStream, call: CallReceived, method: Method) -> None:
        refused = self._calls.begin(method)
        if refused is not None:
            self._send(stream, call, convert.reply(method, refused))
            return
        stream.running += 1
        try:
            self._pool.submit(self._perform, stream, call, method)
        except RuntimeError as error:
            # The pool wanted one more thread and got none. The call is in its queue, for the first thread that is free.
            self._log.warning(
                "a call waits for another, since no thread can be made", call=method.name, cause=str(error)
            )

    def _send(self, stream: _RpcStream, call: CallReceived, reply: convert.Reply) -> None:
        connection = stream.connection
        if reply.error:
            data = connection.reply_error(call, reply.error)
        else:
            data = connection.reply(call, reply.go_type, reply.value)
        # The host may have closed the stream meanwhile, and does not wait for the answer then.
        with contextlib.suppress(StreamClosedError):
            self._session.send(stream.number, data)

    # Below, it is not: this runs in the pool.

    def _perform(self, stream: _RpcStream, call: CallReceived, method: Method) -> None:
        try:
            answer = self._calls.perform(method, partial(convert.arguments, method, call.argument))
            with self._lock:
                self._send(stream, call, convert.reply(method, answer))
                stream.running -= 1
                if stream.finished and not stream.running:
                    self._finish(stream.number)
                self._flush()
        except (WireError, OSError) as error:
            self._log.debug("an answer can't be sent; the connection is closed", call=method.name, error=str(error))
            self.close()
        except Exception as error:  # noqa: BLE001 - the host would wait for its answer for ever (D4)
            self._log.error("no answer was made, by a bug; the connection is closed", call=method.name, exc_info=error)
            self.close()
        finally:
            self._calls.finish()
