"""The two ends of a net/rpc connection: pairs of gob values, a header and what it is about.

A connection reads one gob stream and writes another; both live as long as it does, since types are defined once.
Replies go in any order. What is returned for sending has to be sent whole and in the order of the calls: the caller
holds one lock around making and sending it. `receive` raises GobError or RpcError when the connection can't go on.
"""

from collections.abc import Mapping
from typing import Any

from rollouts_gwapi_plugin.errors import GobError, RpcError
from rollouts_gwapi_plugin.wire.gob import NEED_DATA, Decoder, Limits, Projection
from rollouts_gwapi_plugin.wire.gob.encode import Encoder
from rollouts_gwapi_plugin.wire.gob.types import EMPTY_STRUCT, STRING, UINT, Field, GoType, StructOf
from rollouts_gwapi_plugin.wire.netrpc.events import CallReceived, ReplyReceived, Unreadable

REQUEST = StructOf("Request", (Field("ServiceMethod", STRING), Field("Seq", UINT)))
RESPONSE = StructOf("Response", (*REQUEST.fields, Field("Error", STRING)))

# A Go peer does not send what is empty or zero.
_HEADER_FIELDS: Mapping[str, tuple[type, Any]] = {"ServiceMethod": (str, ""), "Seq": (int, 0), "Error": (str, "")}
_HEADER: Projection = dict.fromkeys(_HEADER_FIELDS)


class _Incoming:
    """Reads pairs of header and body."""

    def __init__(self, limits: Limits | None) -> None:
        self._decoder = Decoder(limits=limits)
        self._header: dict[str, Any] | None = None

    def receive(self, data: bytes) -> None:
        self._decoder.receive(data)

    def header(self) -> dict[str, Any] | None:
        """Return the header of the next pair, all fields filled in, or None; the same one until its body was read."""
        if self._header is None:
            value = self._decoder.next_value(_HEADER)
            if value is NEED_DATA:
                return None
            self._header = check_header(value)
        return self._header

    def body(self, projection: Projection | None) -> Any:
        """Return the body of the pair, or `NEED_DATA`."""
        body = self._decoder.next_value(projection)
        if body is not NEED_DATA:
            self._header = None
        return body

    def abandon_body(self) -> bool:
        """Give up on the body of the pair after an error; False if the stream can't go on."""
        self._header = None
        return self._decoder.abandon_value()


def check_header(value: Any) -> dict[str, Any]:
    """Return a header with all its fields; raise RpcError if it is none."""
    if not isinstance(value, dict):
        raise RpcError(f"expected the header of a call or a reply, found {type(value).__name__}")
    header = {}
    for name, (wanted, absent) in _HEADER_FIELDS.items():
        field = value.get(name, absent)
        if type(field) is not wanted:
            raise RpcError(f"expected {name} of a header to be {wanted.__name__}, found {type(field).__name__}")
        header[name] = field
    return header


class ServerConnection:
    """The end that is called.

    Args:
        projections: by method, the fields of the argument to build; a method that is not listed gets all.
        limits: what the peer may make us keep or do.
    """

    def __init__(
        self, *, projections: Mapping[str, Projection | None] | None = None, limits: Limits | None = None
    ) -> None:
        self._projections = projections or {}
        self._incoming = _Incoming(limits)
        self._encoder = Encoder()

    def receive(self, data: bytes) -> list[CallReceived]:
        """Take bytes; return the calls that are complete now."""
        self._incoming.receive(data)
        calls = []
        while (header := self._incoming.header()) is not None:
            method = header["ServiceMethod"]
            argument = self._argument(method)
            if argument is NEED_DATA:
                break
            calls.append(CallReceived(header["Seq"], method, argument))
        return calls

    def _argument(self, method: str) -> Any:
        """Return the argument, `NEED_DATA`, or why it can't be read: as in Go, that is the call's trouble alone."""
        try:
            return self._incoming.body(self._projections.get(method))
        except GobError as error:
            if not self._incoming.abandon_body():
                raise
            return Unreadable(error)

    def reply(self, call: CallReceived, go_type: GoType, value: Any) -> bytes:
        """Return the answer of a call."""
        return self._answer(call, "", go_type, value)

    def reply_error(self, call: CallReceived, message: str) -> bytes:
        """Return the error that a call ends with; an empty one would mean success, so it gets a text."""
        return self._answer(call, message or "unknown error", EMPTY_STRUCT, {})

    def _answer(self, call: CallReceived, error: str, go_type: GoType, value: Any) -> bytes:
        header = {"ServiceMethod": call.method, "Seq": call.seq, "Error": error}
        return self._encoder.encode_all([(RESPONSE, header), (go_type, value)])


class ClientConnection:
    """The end that calls."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        self._incoming = _Incoming(limits)
        self._encoder = Encoder()
        self._next = 0
        self._waiting: dict[int, str] = {}

    def call(self, method: str, go_type: GoType, value: Any) -> tuple[int, bytes]:
        """Return the number of a new call, and what to send for it."""
        seq = self._next
        data = self._encoder.encode_all([(REQUEST, {"ServiceMethod": method, "Seq": seq}), (go_type, value)])
        self._next += 1
        self._waiting[seq] = method
        return seq, data

    def receive(self, data: bytes) -> list[ReplyReceived]:
        """Take bytes; return the replies that are complete now."""
        self._incoming.receive(data)
        replies = []
        while (header := self._incoming.header()) is not None:
            body = self._incoming.body(None)
            if body is NEED_DATA:
                break
            seq = header["Seq"]
            method = self._waiting.pop(seq, None)
            if method is None:
                raise RpcError(f"a reply to call {seq} of {header['ServiceMethod']}, which does not wait for one")
            replies.append(ReplyReceived(seq, method, header["Error"], body))
        return replies
