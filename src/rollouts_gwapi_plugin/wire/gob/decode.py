"""Decoder of a gob stream: bytes in, values out.

`receive` takes bytes as they come, `next_value` returns the next value or `NEED_DATA`; where the bytes were cut makes
no difference. A broken stream, or one over a limit, raises `GobError` with the place, and from then on always, unless
`abandon_value` gives up on the value: messages say how long they are, so what follows can still be read.

A value begins with a message of its own. Where it needs a new type in its midst the message ends there, and the value
goes on in a later one. Its messages are joined as it is read; if one has not come yet, the value is read again from its
start when it has.
"""

from typing import Any

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire.gob.compiler import Compiler
from rollouts_gwapi_plugin.wire.gob.limits import Limits
from rollouts_gwapi_plugin.wire.gob.messages import MessageReader, broken
from rollouts_gwapi_plugin.wire.gob.registry import TypeRegistry
from rollouts_gwapi_plugin.wire.gob.values import NEED_DATA, Projection
from rollouts_gwapi_plugin.wire.gob.varint import Fault, read_int


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
        self._types = TypeRegistry(self._limits, strict=strict)
        self._messages = MessageReader(self._types, self._limits.message_bytes)
        self._compiler = Compiler(self._types, self._limits, self)
        self._error: GobError | None = None
        # The messages of the value that is being read, and where each begins in the stream.
        self._pieces: list[tuple[bytearray, int]] = []
        # How many types there were after the last value: more means that a value has to follow.
        self._types_used = 0
        # The value can't go on without another message.
        self._starved = False
        self._reread = 0
        # Where the messages begin that the reading in progress has joined.
        self._joined: list[int] = []

    def receive(self, data: bytes) -> None:
        """Take bytes of the stream."""
        self._messages.receive(data)

    def next_value(self, projection: Projection | None = None) -> Any:
        """Return the next value, or `NEED_DATA`.

        A struct is built as far as the projection says, None is all of it. As long as `NEED_DATA` is returned, the next
        call is about the same value.
        """
        if self._error is not None:
            raise self._error
        try:
            return self._next_value(projection)
        except GobError as error:
            self._error = error
            raise

    def abandon_value(self) -> bool:
        """After an error, take the next message for the start of a value; False if the stream can't go on at all."""
        if not self._messages.pass_over():
            return False
        self._error = None
        self._pieces.clear()
        self._starved = False
        self._reread = 0
        self._types_used = len(self._types)
        return True

    def finish(self) -> None:
        """Say that the stream has ended; raise `GobError` if it ended inside of a value."""
        if self._error is not None:
            raise self._error
        self._messages.finish()
        if self._pieces or len(self._types) > self._types_used:
            raise broken(self._messages.offset, "the stream ends before the value for which types were defined")

    def _next_value(self, projection: Projection | None) -> Any:
        if (self._starved or not self._pieces) and not self._take_piece():
            return NEED_DATA
        self._starved = False
        data = bytearray(self._pieces[0][0])
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
            raise broken(self.offset_of(len(data)), "1 bytes wanted, 0 left") from error
        except Fault as fault:
            raise broken(self.offset_of(fault.position), fault.text) from fault
        if position != len(data):
            raise broken(self.offset_of(position), f"{len(data) - position} bytes after the value")
        self._pieces.clear()
        self._reread = 0
        self._types_used = len(self._types)
        return value

    def offset_of(self, position: int) -> int:
        """Return where in the stream a position of the value is (the compiler asks)."""
        index = max(index for index, start in enumerate(self._joined) if start <= position)
        return self._pieces[index][1] + position - self._joined[index]

    def append_next(self, data: bytearray) -> None:
        """Append the next message of the value to the bytes that are being read (the compiler asks)."""
        index = len(self._joined)
        if index == len(self._pieces) and not self._take_piece():
            raise _NotYet
        self._joined.append(len(data))
        data += self._pieces[index][0]

    def _take_piece(self) -> bool:
        """Take the next message of the value; tell whether it was there."""
        piece = self._messages.next_piece()
        if piece is None:
            return False
        self._pieces.append(piece)
        if sum(len(message) for message, _ in self._pieces) > self._limits.message_bytes:
            raise broken(self._messages.offset, f"a value of more than {self._limits.message_bytes} bytes")
        return True

    def _count_reread(self, count: int) -> None:
        self._reread += count
        if self._reread > self._limits.reread_bytes:
            raise broken(self._messages.offset, f"a value in {len(self._pieces)} messages takes too long to read")
