"""Fuzz target: any bytes to both ends of a net/rpc connection give calls and replies, or an error of the wire."""

from rollouts_gwapi_plugin.errors import WireError
from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.netrpc import ClientConnection, ServerConnection

GOLDEN = ("rpc", "control")
CALLS = 4


def one_input(data: bytes) -> None:
    """Take the first byte as the size of the pieces and what is built, the rest as what the peer sends."""
    first, stream = (data[0], data[1:]) if data else (0, b"")
    pieces = [stream[start : start + 1 + 8 * first] for start in range(0, len(stream), 1 + 8 * first)]
    serve(pieces, {} if first & 1 else None)
    client = ClientConnection()
    for number in range(CALLS):
        client.call(f"Plugin.{number}", gob.INTERFACE, None)
    try:
        for piece in pieces:
            client.receive(piece)
    except WireError:
        pass


def serve(pieces: list[bytes], projection: gob.Projection | None) -> None:
    """Answer every call by turns with a value and with an error, and read the answers."""
    methods = [f"Plugin.{name}" for name in ("SetWeight", "VerifyWeight", "SetHeaderRoute")]
    server = ServerConnection(projections=dict.fromkeys(methods, projection))
    answers = gob.Decoder(strict=True)
    count = 0
    try:
        for piece in pieces:
            for call in server.receive(piece):
                answer = server.reply_error(call, "no") if count % 2 else server.reply(call, gob.INT, count)
                answers.receive(answer)
                header, body = answers.next_value(), answers.next_value()
                assert header.get("Seq", 0) == call.seq
                assert header.get("ServiceMethod", "") == call.method
                assert body == ({} if count % 2 else count)
                count += 1
    except WireError:
        pass
    answers.finish()
