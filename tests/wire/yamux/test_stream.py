"""The state machine of a stream, pair by pair."""

import itertools

import pytest

from rollouts_gwapi_plugin.errors import StreamClosedError, YamuxError
from rollouts_gwapi_plugin.wire.yamux.stream import RECEIVES, TRANSITIONS, Input, State, Stream

# Rows: state; columns: the inputs in the order of the enum; None: not allowed.
OPENING, OPEN, LOCAL, REMOTE, CLOSED, RESET = State
MATRIX: dict[State, list[State | None]] = {
    # receive: ACK  DATA     FIN     RST    | send: DATA FIN     RST
    OPENING: [OPEN, OPENING, REMOTE, RESET, OPENING, LOCAL, RESET],
    OPEN: [OPEN, OPEN, REMOTE, RESET, OPEN, LOCAL, RESET],
    LOCAL: [LOCAL, LOCAL, CLOSED, RESET, None, None, RESET],
    REMOTE: [REMOTE, REMOTE, None, RESET, REMOTE, CLOSED, RESET],
    CLOSED: [None, None, None, None, None, None, None],
    RESET: [None, None, None, None, None, None, None],
}


@pytest.mark.parametrize(("state", "cause"), list(itertools.product(State, Input)))
def test_every_pair(state: State, cause: Input) -> None:
    """Each state and input leads where the matrix says, or is the mistake of the side that made it."""
    stream = Stream(1, state)
    expected = MATRIX[state][list(Input).index(cause)]
    if expected is not None:
        stream.move(cause)
        assert expected == stream.state
        return

    with pytest.raises(YamuxError, match=f"stream 1: {cause.name} in state {state.name}") as caught:
        stream.move(cause)
    assert isinstance(caught.value, StreamClosedError) == (cause not in RECEIVES)
    assert state == stream.state


def test_table_has_no_more() -> None:
    """The table holds exactly the pairs of the matrix."""
    assert sum(cell is not None for row in MATRIX.values() for cell in row) == len(TRANSITIONS)
