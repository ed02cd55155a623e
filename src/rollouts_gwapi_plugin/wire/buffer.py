"""Bytes that came in and were not taken yet, with their place in the stream.

Bytes are added as they come and taken from the front; `offset` is the number of bytes taken so far, so that an error
can say where in the stream it is. What is taken is a copy of its own; the rest is not copied (a bytearray gives up its
front without moving the rest).
"""


class ReceiveBuffer:
    """A queue of bytes that knows how many have left it."""

    __slots__ = ("_waiting", "offset")

    def __init__(self) -> None:
        self._waiting = bytearray()
        self.offset = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __getitem__(self, index: int) -> int:
        return self._waiting[index]

    def add(self, data: bytes) -> None:
        """Add bytes at the end."""
        self._waiting += data

    def peek(self, start: int, end: int) -> bytes:
        """Return a copy of bytes that stay in the queue; fewer where there are fewer."""
        return bytes(self._waiting[start:end])

    def take(self, count: int) -> bytearray:
        """Take `count` bytes, which must be there, from the front."""
        taken = self._waiting[:count]
        del self._waiting[:count]
        self.offset += count
        return taken
