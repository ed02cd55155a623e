"""go-plugin's mux broker: which brokered stream belongs to which dispensed object.

The plugin answers Dispense with an id; the host then opens a yamux stream whose first four bytes are that id,
little-endian, and the plugin writes the same four bytes back. What follows on the stream is net/rpc. The host may dial
before it has seen the answer's bytes or after; the id is in the table before it is told, so both lead to the service.

Both sides take the stream's bytes and return what is left after the four, or None for "not yet"; neither knows sockets,
streams or clocks.
"""

import struct
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rollouts_gwapi_plugin.errors import HandshakeError

Service = TypeVar("Service")

_ID: Final = struct.Struct("<I")
_LAST_ID: Final = 2**32 - 1
# Go's broker forgets an id that nobody dialled within five seconds. Without a clock it is the oldest that goes, once
# so many wait; a host dispenses one plugin and dials at once.
MAX_UNDIALLED: Final = 64


@dataclass(frozen=True, slots=True)
class Dialled(Generic[Service]):
    """A stream found its service: write `answer` on it, then serve, starting with the bytes in `rest`."""

    service: Service
    answer: bytes
    rest: bytes


class PluginBroker(Generic[Service]):
    """The plugin's side: ids that were handed out, and streams that have not said theirs yet."""

    def __init__(self) -> None:
        self._last_id = 0
        self._offered: dict[int, Service] = {}
        self._partial: dict[int, bytes] = {}

    def offer(self, service: Service) -> int:
        """Return the id that one stream may dial to reach the service; it is the answer to Dispense."""
        self._last_id = self._last_id % _LAST_ID + 1
        self._offered[self._last_id] = service
        if len(self._offered) > MAX_UNDIALLED:
            del self._offered[next(iter(self._offered))]
        return self._last_id

    def receive(self, stream: int, data: bytes) -> Dialled[Service] | None:
        """Take the first bytes of a stream that the host opened; None until there are four.

        Raises:
            HandshakeError: the id was not offered, or was dialled before; reset the stream.

        """
        data = self._partial.pop(stream, b"") + data
        if len(data) < _ID.size:
            self._partial[stream] = data
            return None
        (number,) = _ID.unpack_from(data)
        if number not in self._offered:
            raise HandshakeError(f"stream {stream} dials the brokered id {number}, which waits for no dial")
        return Dialled(self._offered.pop(number), data[: _ID.size], data[_ID.size :])

    def forget(self, stream: int) -> None:
        """Drop what a stream that ended had sent of its id."""
        self._partial.pop(stream, None)


class HostDial:
    """The host's side of one stream: send `hello`, then wait for the plugin to say the same."""

    def __init__(self, number: int) -> None:
        """Take the id that Dispense answered."""
        self.hello = _ID.pack(number)
        self._received = b""

    def receive(self, data: bytes) -> bytes | None:
        """Return what follows the plugin's acknowledgement, None until it is whole; call it no more after that.

        Raises:
            HandshakeError: the plugin acknowledged something else.

        """
        self._received += data
        if len(self._received) < _ID.size:
            return None
        answer, rest = self._received[: _ID.size], self._received[_ID.size :]
        if answer != self.hello:
            raise HandshakeError(
                f"dialled was the brokered id {_ID.unpack(self.hello)[0]}, "
                f"but the plugin acknowledged {_ID.unpack(answer)[0]}"
            )
        return rest
