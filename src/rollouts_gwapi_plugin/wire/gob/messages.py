"""The messages of a gob stream: a length, then a type definition or (a piece of) a value.

`next_piece` hands out values' messages one by one and lets the registry keep the definitions between them. Bytes are
copied once out of what has come in; each error says where in the stream it is.
"""

from rollouts_gwapi_plugin.errors import GobError
from rollouts_gwapi_plugin.wire.gob.registry import TypeRegistry
from rollouts_gwapi_plugin.wire.gob.varint import LONGEST, ONE_BYTE, SMALL, Fault, read_uint


def broken(offset: int, text: str) -> GobError:
    """Return the error of a stream that is broken at this byte."""
    return GobError(f"at byte {offset}: {text}")


class MessageReader:
    """Takes bytes as they come, and gives messages."""

    def __init__(self, types: TypeRegistry, longest: int) -> None:
        self._types = types
        self._longest = longest
        self._waiting = bytearray()
        # Bytes of the stream before those that wait.
        self.offset = 0
        # How much is left of a message that is passed over.
        self._to_skip = 0

    def receive(self, data: bytes) -> None:
        """Take bytes of the stream."""
        self._waiting += data
        if self._to_skip:
            self._skip()

    def pass_over(self) -> bool:
        """Go on after an error: a message that is too long is dropped as it comes; False if nothing can follow."""
        if not self._waiting or self._waiting[0] < SMALL:
            return True
        if 256 - self._waiting[0] > LONGEST:
            return False
        count, start = self._long_length(0)
        if start > len(self._waiting):
            # The length itself is cut, and too much already.
            return False
        if count > self._longest:
            self._to_skip = start + count
            self._skip()
        return True

    def _skip(self) -> None:
        dropped = min(self._to_skip, len(self._waiting))
        del self._waiting[:dropped]
        self._to_skip -= dropped
        self.offset += dropped

    def next_piece(self) -> tuple[bytearray, int] | None:
        """Return the next message that is not a definition, and where it begins; None if it has not come."""
        waiting = self._waiting
        size = len(waiting)
        position = 0
        try:
            while position < size:
                count = waiting[position]
                start = position + 1
                if count >= SMALL:
                    count, start = self._long_length(position)
                end = start + count
                if count > self._longest:
                    raise broken(self.offset + start, self._too_long(count, size - start))
                if end > size:
                    return None
                position = end
                if count > 1 and waiting[start] == ONE_BYTE:
                    number, body = waiting[start + 1], start + 2
                else:
                    number, body = self._type_number(start, end)
                if not number & 1:
                    return waiting[start:end], self.offset + start
                self._keep((number + 1) >> 1, body, end)
            return None
        finally:
            del waiting[:position]
            self.offset += position

    def _keep(self, number: int, body: int, end: int) -> None:
        """Keep the definition of a type."""
        try:
            self._types.keep(number, self._waiting[body:end], self.offset + body)
        except Fault as fault:
            raise broken(self.offset + body + fault.position, fault.text) from fault

    def finish(self) -> None:
        """Say that the stream has ended; raise GobError if a message is cut short."""
        left = len(self._waiting)
        if not left:
            return
        count, start = self._waiting[0], 1
        if count >= SMALL:
            count, start = self._long_length(0)
            if start > left:
                raise broken(self.offset + 1, f"{start - 1} bytes wanted, {left - 1} left")
        raise broken(self.offset + start, f"a message of {count} bytes, {left - start} left")

    def _long_length(self, position: int) -> tuple[int, int]:
        """Return a length of more than one byte and the position after it, or 0 and one past the end."""
        size = 256 - self._waiting[position]
        start = position + 1
        if size > LONGEST:
            raise broken(self.offset + start, f"an integer of {size} bytes")
        return int.from_bytes(self._waiting[start : start + size], "big"), start + size

    def _too_long(self, count: int, left: int) -> str:
        return f"a message of {count} bytes, {left} left; {self._longest} are the most"

    def _type_number(self, start: int, end: int) -> tuple[int, int]:
        """Return the number that a message begins with, its sign still in the lowest bit, and the position after it."""
        try:
            number, size = read_uint(self._waiting[start:end], 0)
        except IndexError as error:
            raise broken(self.offset + start, "an empty message") from error
        except Fault as fault:
            raise broken(self.offset + start + fault.position, fault.text) from fault
        return number, start + size
