"""`decode`: print what captured bytes mean, as JSON.

Takes what one side of a connection has written, from its first byte on: a gob stream, a net/rpc connection (a stream of
a yamux session), or a whole yamux session. Prints a JSON list, an element a line, in the notation of
`wire.gob.notation`. Bytes that are broken, or end too early, give one line on standard error that says where and why,
and exit code 1.
"""

import base64
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import click

from rollouts_gwapi_plugin.errors import GobError, RpcError, WireError, YamuxError
from rollouts_gwapi_plugin.wire.gob import NEED_DATA, Decoder, Limits
from rollouts_gwapi_plugin.wire.gob.notation import to_json
from rollouts_gwapi_plugin.wire.netrpc.connection import check_header
from rollouts_gwapi_plugin.wire.yamux import describe_frames

# The file is already in memory and its owner chose it, so there is no other limit on a message than the file.
ANY_LENGTH = 1 << 64
# Levels and values that are still printed: far more than any message of a controller, far less than what exhausts
# memory.
NESTING = 2000
VALUES = 1 << 24
# A level of a value is up to three levels of JSON (a map in pairs), and one or two Python frames.
RECURSION = 5 * NESTING
EMPTY_BODY = base64.b64encode(zlib.compress(b""))


@click.command()
@click.argument("kind", type=click.Choice(["gob", "rpc", "yamux"]))
@click.argument("file", type=click.File("rb"), default="-")
def decode(kind: str, file: BinaryIO) -> None:
    """Print what captured bytes mean, as a JSON list.

    FILE holds what one side has written, from its first byte on (default: standard input).

    \b
    gob    the values of a gob stream
    rpc    the calls, or the replies, of a net/rpc connection: header and body
    yamux  the frames of a yamux session
    """  # noqa: D301 - \b keeps click from joining the lines
    data = file.read()
    try:
        with _deep_values():
            elements = _KINDS[kind](data)
            lines = [json.dumps(element, ensure_ascii=False) for element in elements]
    except WireError as error:
        raise type(error)(f"{file.name}: {error}") from error
    except RecursionError as error:
        raise GobError(f"{file.name}: a value is nested too deeply to be written as JSON") from error
    sys.stdout.buffer.write(("[" + ",\n ".join(lines) + "]\n").encode())


@contextmanager
def _deep_values() -> Iterator[None]:
    """Let values be nested deeper than Python's usual limit."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(usual + RECURSION)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


def _values(data: bytes) -> Iterator[Any]:
    """Yield the values of a gob stream; raise GobError where it is broken."""
    decoder = Decoder(limits=Limits(message_bytes=ANY_LENGTH, nesting=NESTING, values=VALUES), strict=True)
    decoder.receive(data)
    while (value := decoder.next_value()) is not NEED_DATA:
        yield value
    decoder.finish()


def _gob(data: bytes) -> list[Any]:
    return [to_json(value) for value in _values(data)]


def _rpc(data: bytes) -> list[Any]:
    pairs: list[Any] = []
    values = _values(data)
    for header in values:
        unknown = sorted(set(header) - set(check_header(header)))
        if unknown:
            raise RpcError(f"header {len(pairs)} has a field {unknown[0]}, so it is none of net/rpc")
        try:
            body = next(values)
        except StopIteration:
            raise RpcError(f"at byte {len(data)}: the header of call {len(pairs)} has no body") from None
        pairs.append({"header": to_json(header), "body": to_json(body)})
    return pairs


def _yamux(data: bytes) -> list[Any]:
    return list(describe_frames(_captured(data) if data.startswith(b"{") else data))


def _captured(data: bytes) -> bytes:
    """Return the bytes of a capture: a JSON object a frame, with `hex`, or the header in it and a compressed body."""
    session = bytearray()
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            frame = json.loads(line)
            session += bytes.fromhex(frame["hex"])
            session += zlib.decompress(base64.b64decode(frame.get("body_zlib_base64", EMPTY_BODY)))
        except (ValueError, TypeError, LookupError, AttributeError, zlib.error) as error:
            raise YamuxError(f"line {number} is no captured frame: {error!r}") from error
    return bytes(session)


_KINDS: dict[str, Callable[[bytes], list[Any]]] = {"gob": _gob, "rpc": _rpc, "yamux": _yamux}
