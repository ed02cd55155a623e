"""Decoder of a gob stream: bytes in, values out.

`receive` takes bytes as they come, `next_value` returns the next value or `NEED_DATA`; where the bytes were cut makes
no difference. A broken stream, or one over a limit, raises `GobError` with the place, and from then on always.

A stream is made of messages, each with its length before it. A message defines a type, or starts a value, or goes on
with the value before it, where that needed a new type in its midst.
"""

from typing import Any

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire.buffer import ReceiveBuffer
from rollouts_gwapi_plugin.wire.gob.compiler import Compiler
from rollouts_gwapi_plugin.wire.gob.limits import Limits
from rollouts_gwapi_plugin.wire.gob.registry import TypeRegistry
from rollouts_gwapi_plugin.wire.gob.values import NEED_DATA, Projection
from rollouts_gwapi_plugin.wire.gob.varint import LONGEST, SMALL, Fault, read_int


class _NotYet(Exception):  # noqa: N818 - not an error: more of the value has to come
    """The value goes on in a message that has not come."""


class Decoder:
    """Reads the values of one stream.

    Args:
        limits: what the peer may make us keep or do.
        strict: read every definition when it comes, and all that a type names before its first value. Otherwise a
            definition is read when it is needed, which is faster and finds the same values.
    """

    def __init__(self, *, limits: Limits | None = None, strict: bool = False) -> None:
        self._limits = limits or Limits()
        self._buffer = ReceiveBuffer()
        self._types = TypeRegistry(self._limits, strict=strict)
        self._compiler = Compiler(self._types, self._limits, self)
        self._error: GobError | None = None
        # The value that is being read: its messages so far, where each begins in the stream, and how many bytes of it
        # were read in vain; "starved" is a value that can't go on without one more.
        self._pieces: list[bytearray] = []
        self._offsets: list[int] = []
        self._reread = 0
        self._starved = False
        # The messages that the reading in progress has joined, and where each begins in the joined bytes.
        self._joined: list[int] = []
        self._defined = False

    def receive(self, data: bytes) -> None:
        """Take bytes of the stream."""
        self._buffer.add(data)

    def next_value(self, projection: Projection | None = None) -> Any:
        """Return the next value, or `NEED_DATA`.

        A struct or a map is built as far as the projection says. While `NEED_DATA` is returned, the next call should
        ask for the same projection.
        """
        if self._error is not None:
            raise self._error
        try:
            return self._next_value(projection)
        except GobError as error:
            self._error = error
            raise

    def finish(self) -> None:
        """Say that the stream has ended; raise `GobError` if it ended inside of a value."""
        if self._error is not None:
            raise self._error
        if len(self._buffer):
            length = self._message_length()
            if length is None:
                raise self._broken(self._buffer.offset + len(self._buffer), "the stream ends inside of a length")
            size, count = length
            left = len(self._buffer) - size
            raise self._broken(self._buffer.offset + size, f"a message of {count} bytes, {left} left")
        if self._pieces or self._defined:
            raise self._broken(self._buffer.offset, "the stream ends before the value for which types were defined")

    def _next_value(self, projection: Projection | None) -> Any:
        if (self._starved or not self._pieces) and not self._take_piece():
            return NEED_DATA
        self._starved = False
        data = bytearray(self._pieces[0])
        self._joined = [0]
        self._compiler.begin()
        try:
            number, position = read_int(data, 0)
            read = self._compiler.reader_at_top(number, position, projection)
            value, position = read(data, position, self._limits.nesting)
        except _NotYet:
            self._starved = True
            self._count_reread(len(data))
            return NEED_DATA
        except IndexError as error:
            raise self._broken(self.offset_of(len(data)), "1 bytes wanted, 0 left") from error
        except Fault as fault:
            raise self._broken(self.offset_of(fault.position), fault.text) from fault
        if position != len(data):
            text = f"{len(data) - position} bytes after the value"
            raise self._broken(self.offset_of(position), text)
        self._pieces.clear()
        self._offsets.clear()
        self._reread = 0
        self._defined = False
        return value

    def offset_of(self, position: int) -> int:
        """Return where in the stream a position of the value is (called back by the compiler)."""
        index = max(index for index, start in enumerate(self._joined) if start <= position)
        return self._offsets[index] + position - self._joined[index]

    def append_next(self, data: bytearray) -> None:
        """Append the next message of the value to the bytes that are being read (called back by the compiler)."""
        index = len(self._joined)
        if index == len(self._pieces) and not self._take_piece():
            raise _NotYet
        self._joined.append(len(data))
        data += self._pieces[index]

    def _count_reread(self, count: int) -> None:
        self._reread += count
        if self._reread > self._limits.reread_bytes:
            raise self._broken(self._buffer.offset, f"a value of {len(self._pieces)} messages, too slow to read")

    def _take_piece(self) -> bool:
        """Take messages up to the next one that is not a definition; tell whether there is one."""
        while (message := self._take_message()) is not None:
            offset = self._buffer.offset - len(message)
            try:
                number, position = read_int(message, 0)
                if number >= 0:
                    self._keep_piece(message, offset)
                    return True
                self._types.keep(-number, message[position:], offset + position)
            except Fault as fault:
                raise self._broken(offset + fault.position, fault.text) from fault
            except IndexError as error:
                raise self._broken(offset, "an empty message") from error
            self._defined = True
        return False

    def _keep_piece(self, message: bytearray, offset: int) -> None:
        self._pieces.append(message)
        self._offsets.append(offset)
        if sum(map(len, self._pieces)) > self._limits.message_bytes:
            raise Fault(0, f"a value of more than {self._limits.message_bytes} bytes")

    def _message_length(self) -> tuple[int, int] | None:
        """Return how many bytes the next message's length takes, and the length; None if it has not come."""
        if not len(self._buffer):
            return None
        first = self._buffer[0]
        if first < SMALL:
            return 1, first
        size = 256 - first
        if size > LONGEST:
            raise self._broken(self._buffer.offset + 1, f"an integer of {size} bytes")
        if len(self._buffer) <= size:
            return None
        return 1 + size, int.from_bytes(self._buffer.peek(1, 1 + size), "big")

    def _take_message(self) -> bytearray | None:
        """Take the next message, without its length, if all of it has come."""
        length = self._message_length()
        if length is None:
            return None
        size, count = length
        left = len(self._buffer) - size
        if count > self._limits.message_bytes:
            text = f"a message of {count} bytes, {left} left; {self._limits.message_bytes} are the most"
            raise self._broken(self._buffer.offset + size, text)
        if left < count:
            return None
        self._buffer.take(size)
        return self._buffer.take(count)

    @staticmethod
    def _broken(offset: int, text: str) -> GobError:
        return GobError(f"at byte {offset}: {text}")
