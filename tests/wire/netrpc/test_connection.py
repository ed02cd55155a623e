"""net/rpc: the golden connections of the controller, and both ends of ours against each other."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import GobError, RpcError, WireError
from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.notation import to_json
from rollouts_gwapi_plugin.wire.netrpc import (
    CallReceived,
    ClientConnection,
    ReplyReceived,
    ServerConnection,
    Unreadable,
)

GOLDEN = Path(__file__).parents[1] / "golden"
REQUESTS = sorted([*GOLDEN.glob("rpc/*.request.bin"), *GOLDEN.glob("control/*.request.bin")])
RPC_ERROR = gob.StructOf("RpcError", (gob.Field("ErrorString", gob.STRING),))
NIL = b"\x03\x10\x00\x00"


def calls_in(path: Path) -> list[dict[str, Any]]:
    """Return the calls that a golden file tells of."""
    calls: list[dict[str, Any]] = json.loads(path.with_suffix(".json").read_text())["calls"]
    return calls


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.parametrize("size", [1 << 30, 1000, 7])
def test_golden_requests(path: Path, size: int) -> None:
    """All calls of a controller are received, in whatever pieces they come."""
    data = path.read_bytes()
    server = ServerConnection()

    received = [call for start in range(0, len(data), size) for call in server.receive(data[start : start + size])]

    expected = [(call["seq"], call["header"]["ServiceMethod"], call["body"]) for call in calls_in(path)]
    assert [(call.seq, call.method, to_json(call.argument)) for call in received] == expected


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_responses(path: Path) -> None:
    """All replies of a Go plugin are received for the calls that they answer."""
    response = path.with_name(path.name.replace(".request.", ".response."))
    client = ClientConnection()
    for call in calls_in(path):
        client.call(call["header"]["ServiceMethod"], gob.INTERFACE, None)

    received = client.receive(response.read_bytes())

    expected = [
        (call["seq"], call["header"]["ServiceMethod"], call["header"].get("Error", ""), call["body"])
        for call in calls_in(response)
    ]
    assert [(reply.seq, reply.method, reply.error, to_json(reply.body)) for reply in received] == expected


def test_call_and_reply() -> None:
    """A call is received with its argument, and its reply with its body."""
    client, server = ClientConnection(), ServerConnection()
    seq, request = client.call("Plugin.Type", gob.STRING, "argument")
    (call,) = server.receive(request)

    assert call == CallReceived(seq, "Plugin.Type", "argument")

    reply = server.reply(call, RPC_ERROR, {"ErrorString": ""})
    assert client.receive(reply[:-1]) == []
    replies = client.receive(reply[-1:])

    assert replies == [ReplyReceived(seq, "Plugin.Type", "", {})]


def test_first_request() -> None:
    """The first bytes of a connection are those of a Go client, but for the numbers of types."""
    _, request = ClientConnection().call("Plugin.InitPlugin", gob.INTERFACE, None)

    fields = "01 02 01 0d 536572766963654d6574686f64 01 0c 00 01 03 536571 01 06 00 00 00"
    definition = bytes.fromhex("7f 03 01 01 07 52657175657374 01 ff80 00" + fields)
    header = b"\xff\x80\x01\x11Plugin.InitPlugin\x00"
    assert request == bytes((len(definition),)) + definition + bytes((len(header),)) + header + NIL


def test_nil_argument_of_unknown_method() -> None:
    """A nil interface for a method that nobody knows is a call like any other, and the connection goes on."""
    client, server = ClientConnection(), ServerConnection(projections={"Plugin.Known": {}})
    first, request = client.call("Plugin.Unknown", gob.INTERFACE, None)
    (call,) = server.receive(request)

    assert call.argument is None

    reply = client.receive(server.reply_error(call, "rpc: can't find method Plugin.Unknown"))

    assert reply == [ReplyReceived(first, "Plugin.Unknown", "rpc: can't find method Plugin.Unknown", {})]
    second, request = client.call("Plugin.Type", gob.INTERFACE, None)
    assert server.receive(request) == [CallReceived(second, "Plugin.Type", None)]


def test_replies_in_any_order() -> None:
    """Calls may be answered in another order than they came in."""
    client, server = ClientConnection(), ServerConnection()
    calls = [call for n in range(3) for call in server.receive(client.call(f"M.{n}", gob.INT, n)[1])]

    replies = [
        reply for call in reversed(calls) for reply in client.receive(server.reply(call, gob.INT, call.seq * 10))
    ]

    assert [(reply.seq, reply.method, reply.body) for reply in replies] == [
        (2, "M.2", 20),
        (1, "M.1", 10),
        (0, "M.0", 0),
    ]


def test_projection_by_method() -> None:
    """The argument of a method is built as far as its projection says; that of another method is built whole."""
    point = gob.StructOf("Point", (gob.Field("X", gob.INT), gob.Field("Y", gob.INT)))
    client, server = ClientConnection(), ServerConnection(projections={"P.Some": {"X": None}, "P.All": None})
    arguments = []
    for method in ("P.Some", "P.All", "P.Other"):
        argument = gob.Interface("Point", {"X": 1, "Y": 2}, point)
        (call,) = server.receive(client.call(method, gob.INTERFACE, argument)[1])
        arguments.append(call.argument.value)

    assert arguments == [{"X": 1}, {"X": 1, "Y": 2}, {"X": 1, "Y": 2}]


def test_empty_error() -> None:
    """An error without a text is still an error to the client."""
    client, server = ClientConnection(), ServerConnection()
    (call,) = server.receive(client.call("M.X", gob.INT, 1)[1])

    (reply,) = client.receive(server.reply_error(call, ""))

    assert reply.error == "unknown error"


def test_reply_that_does_not_fit() -> None:
    """A reply that can't be encoded leaves the connection as it was: another one can be sent instead."""
    client, server = ClientConnection(), ServerConnection()
    (call,) = server.receive(client.call("M.X", gob.INT, 1)[1])
    with pytest.raises(GobError):
        server.reply(call, RPC_ERROR, {"ErrorString": 1})

    assert client.receive(server.reply(call, RPC_ERROR, {"ErrorString": "e"}))[0].body == {"ErrorString": "e"}


def test_call_that_does_not_fit() -> None:
    """A call that can't be encoded does not use up a number."""
    client, server = ClientConnection(), ServerConnection()
    with pytest.raises(GobError):
        client.call("M.X", gob.INT, "no")

    assert server.receive(client.call("M.X", gob.INT, 1)[1]) == [CallReceived(0, "M.X", 1)]


OTHER_HEADER = gob.StructOf("Request", (gob.Field("ServiceMethod", gob.INT), gob.Field("Seq", gob.BOOL)))


@pytest.mark.parametrize(
    ("go_type", "value", "text"),
    [
        (gob.STRING, "x", "expected the header of a call or a reply, found str"),
        (gob.INTERFACE, None, "expected the header of a call or a reply, found NoneType"),
        (OTHER_HEADER, {"ServiceMethod": 1}, "expected ServiceMethod of a header to be str, found int"),
        (OTHER_HEADER, {"Seq": True}, "expected Seq of a header to be int, found bool"),
    ],
)
def test_no_header(go_type: gob.GoType, value: Any, text: str) -> None:
    """Where a header has to be and something else is, the connection can't go on."""
    data = gob.Encoder().encode(go_type, value)

    for connection in (ServerConnection(), ClientConnection()):
        with pytest.raises(RpcError, match=text):
            connection.receive(data)


def test_unasked_reply() -> None:
    """A reply to no call, or a second one, is refused."""
    client, server = ClientConnection(), ServerConnection()
    (call,) = server.receive(client.call("M.X", gob.INT, 1)[1])
    client.receive(server.reply(call, gob.INT, 1))

    with pytest.raises(RpcError, match=r"a reply to call 0 of M\.X, which does not wait for one"):
        client.receive(server.reply(call, gob.INT, 1))


def test_large_seq() -> None:
    """A number of 64 bits comes back as it came."""
    header = gob.StructOf("Request", (gob.Field("ServiceMethod", gob.STRING), gob.Field("Seq", gob.UINT)))
    encoder = gob.Encoder()
    server = ServerConnection()
    (call,) = server.receive(encoder.encode_all([(header, {"Seq": (1 << 64) - 1}), (gob.INT, 0)]))
    decoder = gob.Decoder()
    decoder.receive(server.reply(call, gob.INT, 0))

    assert call.method == ""
    assert decoder.next_value() == {"Seq": (1 << 64) - 1}


def test_limits() -> None:
    """The limits of a connection are those of its stream, for both ends."""
    limits = gob.Limits(message_bytes=100)
    server, client = ServerConnection(limits=limits), ClientConnection(limits=limits)
    for connection in (server, client):
        with pytest.raises(GobError, match="a message of 200 bytes"):
            connection.receive(b"\xff\xc8")


@given(data=st.binary(max_size=40), cut=st.integers(0, 20))
def test_garbage(data: bytes, cut: int) -> None:
    """After a good call, any bytes give calls or an error of the wire, and nothing else."""
    server = ServerConnection()
    server.receive(ClientConnection().call("M.X", gob.INT, 1)[1])
    try:
        server.receive(data[:cut])
        server.receive(data[cut:])
    except WireError:
        return


NOTE = gob.StructOf("Note", (gob.Field("Text", gob.STRING),))
SMALL_LIMITS = gob.Limits(message_bytes=1000)


@pytest.mark.parametrize("size", [1 << 20, 100, 1])
def test_an_argument_over_the_limit_is_that_calls_trouble(size: int) -> None:
    """A call with a message over the limit is received as unreadable, wherever it is cut; the next ones are whole."""
    client, server = ClientConnection(), ServerConnection(limits=SMALL_LIMITS)
    data = b"".join(client.call("Plugin.SetWeight", NOTE, {"Text": "x" * count})[1] for count in (3, 5000, 4, 5))

    received = [call for start in range(0, len(data), size) for call in server.receive(data[start : start + size])]

    assert [call.seq for call in received] == [0, 1, 2, 3]
    assert isinstance(received[1].argument, Unreadable)
    assert "a message of 50" in str(received[1].argument.error)
    assert [call.argument for call in received if call.seq != 1] == [{"Text": "x" * count} for count in (3, 4, 5)]
    assert len(server._incoming._decoder._messages._waiting) == 0


@pytest.mark.parametrize("method", ["Plugin.Type", "Plugin." + "T" * 200])
def test_an_argument_that_is_broken_inside_is_that_calls_trouble(method: str) -> None:
    """A message whose inside can't be read is passed over, since its length is known."""
    client, server = ClientConnection(), ServerConnection()
    first = client.call("Plugin.SetWeight", NOTE, {"Text": "abc"})[1]
    broken = first[:-5] + b"\x7f" + first[-4:]
    received = server.receive(broken + client.call(method, NOTE, {"Text": "d"})[1])

    assert [type(call.argument) for call in received] == [Unreadable, dict]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (b"\xf7" + bytes(9), "an integer of 9 bytes"),
        (b"\xf7", "an integer of 9 bytes"),
        (b"\xfa\x01\x00\x00\x00\x00", "are the most"),
    ],
    ids=["no-integer", "no-integer-cut", "huge-and-cut"],
)
def test_an_argument_without_a_length_ends_the_connection(argument: bytes, message: str) -> None:
    """Where not even the length of a message can be read nothing can follow."""
    client, server = ClientConnection(), ServerConnection()
    data = client.call("Plugin.Type", gob.INTERFACE, None)[1]
    header = data.removesuffix(NIL)
    assert header != data

    with pytest.raises(GobError, match=message):
        server.receive(header + argument)
    with pytest.raises(GobError, match=message):
        server.receive(data)
