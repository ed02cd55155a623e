"""One stream: its state, its two windows, and the bytes that wait for the peer's window.

The state machine is a table. A pair that is not in it is a mistake: of the peer if something was received (the session
ends), of the caller if something is to be sent (`StreamClosedError`, the session lives on). CLOSED and RESET have no
row, since a session forgets a stream as soon as it gets there, and frames for unknown streams are skipped.

The transition for our FIN is made when the frame goes out, which is after all bytes that were sent before it.
"""

import enum
from typing import Final

from rollouts_gwapi_plugin.errors import StreamClosedError, YamuxError
from rollouts_gwapi_plugin.wire.yamux.window import ReceiveWindow, SendWindow


class State(enum.Enum):
    """Where a stream is in its life."""

    OPENING = enum.auto()  # we sent SYN, no ACK came yet; both sides may already send
    OPEN = enum.auto()
    LOCAL_FINISHED = enum.auto()  # we sent FIN, the peer may go on
    REMOTE_FINISHED = enum.auto()  # the peer sent FIN, we may go on
    CLOSED = enum.auto()
    RESET = enum.auto()


class Input(enum.Enum):
    """What moves a stream."""

    RECEIVE_ACK = enum.auto()
    RECEIVE_DATA = enum.auto()
    RECEIVE_FIN = enum.auto()
    RECEIVE_RST = enum.auto()
    SEND_DATA = enum.auto()
    SEND_FIN = enum.auto()
    SEND_RST = enum.auto()


TRANSITIONS: Final = {
    (State.OPENING, Input.RECEIVE_ACK): State.OPEN,
    (State.OPENING, Input.RECEIVE_DATA): State.OPENING,
    (State.OPENING, Input.RECEIVE_FIN): State.REMOTE_FINISHED,
    (State.OPENING, Input.RECEIVE_RST): State.RESET,
    (State.OPENING, Input.SEND_DATA): State.OPENING,
    (State.OPENING, Input.SEND_FIN): State.LOCAL_FINISHED,
    (State.OPENING, Input.SEND_RST): State.RESET,
    (State.OPEN, Input.RECEIVE_ACK): State.OPEN,  # a second ACK: the Go implementation logs it and goes on
    (State.OPEN, Input.RECEIVE_DATA): State.OPEN,
    (State.OPEN, Input.RECEIVE_FIN): State.REMOTE_FINISHED,
    (State.OPEN, Input.RECEIVE_RST): State.RESET,
    (State.OPEN, Input.SEND_DATA): State.OPEN,
    (State.OPEN, Input.SEND_FIN): State.LOCAL_FINISHED,
    (State.OPEN, Input.SEND_RST): State.RESET,
    (State.LOCAL_FINISHED, Input.RECEIVE_ACK): State.LOCAL_FINISHED,
    (State.LOCAL_FINISHED, Input.RECEIVE_DATA): State.LOCAL_FINISHED,
    (State.LOCAL_FINISHED, Input.RECEIVE_FIN): State.CLOSED,
    (State.LOCAL_FINISHED, Input.RECEIVE_RST): State.RESET,
    (State.LOCAL_FINISHED, Input.SEND_RST): State.RESET,
    (State.REMOTE_FINISHED, Input.RECEIVE_ACK): State.REMOTE_FINISHED,
    # A Go writer that races with its own Close may put data behind FIN; it is counted and dropped.
    (State.REMOTE_FINISHED, Input.RECEIVE_DATA): State.REMOTE_FINISHED,
    (State.REMOTE_FINISHED, Input.RECEIVE_RST): State.RESET,
    (State.REMOTE_FINISHED, Input.SEND_DATA): State.REMOTE_FINISHED,
    (State.REMOTE_FINISHED, Input.SEND_FIN): State.CLOSED,
    (State.REMOTE_FINISHED, Input.SEND_RST): State.RESET,
}
RECEIVES: Final = frozenset({Input.RECEIVE_ACK, Input.RECEIVE_DATA, Input.RECEIVE_FIN, Input.RECEIVE_RST})


class Stream:
    """A live stream of a session."""

    def __init__(self, number: int, state: State) -> None:
        self.number = number
        self.state = state
        self.receive_window = ReceiveWindow()
        self.send_window = SendWindow()
        self.waiting = bytearray()
        self.finishing = False

    def move(self, cause: Input) -> None:
        """Change the state by the table.

        Raises:
            YamuxError: the peer may not do this now; `StreamClosedError`: we may not.

        """
        state = TRANSITIONS.get((self.state, cause))
        if state is None:
            found = f"stream {self.number}: {cause.name} in state {self.state.name}"
            raise YamuxError(found) if cause in RECEIVES else StreamClosedError(found)
        self.state = state
