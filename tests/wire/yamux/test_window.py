"""Windows: counted down by bytes, credited once half was read, and always up to the full size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import YamuxError
from rollouts_gwapi_plugin.wire.yamux.window import INITIAL_WINDOW, MAX_WINDOW, ReceiveWindow, SendWindow

HALF = INITIAL_WINDOW // 2


def test_window_of_the_protocol() -> None:
    """Both windows start at 256 KiB."""
    assert ReceiveWindow().available == SendWindow().available == 262144


def test_credit_comes_at_half() -> None:
    """One byte short of half read gives no credit, half does."""
    window = ReceiveWindow()
    window.received(HALF)

    assert window.consumed(HALF - 1) == 0
    assert window.consumed(1) == HALF
    assert window.available == INITIAL_WINDOW


def test_credit_goes_up_to_the_full_window() -> None:
    """Credit leaves out only what is still unread."""
    window = ReceiveWindow()
    window.received(INITIAL_WINDOW)

    assert window.consumed(INITIAL_WINDOW - 10) == INITIAL_WINDOW - 10
    assert window.available == INITIAL_WINDOW - 10


def test_more_than_the_window() -> None:
    """A byte more than the window is the peer's mistake."""
    window = ReceiveWindow()
    window.received(INITIAL_WINDOW)

    with pytest.raises(YamuxError, match="1 bytes came where the window had 0 left"):
        window.received(1)


@pytest.mark.parametrize("count", [-1, 6])
def test_more_read_than_came(count: int) -> None:
    """Reporting bytes as read that never came is our own mistake."""
    window = ReceiveWindow()
    window.received(5)

    with pytest.raises(ValueError, match="5 are unread"):
        window.consumed(count)


@given(st.lists(st.tuples(st.integers(0, INITIAL_WINDOW), st.integers(0, INITIAL_WINDOW)), max_size=30))
def test_both_windows_agree(steps: list[tuple[int, int]]) -> None:
    """A sender that obeys never overruns, never starves while nothing is unread, and unread stays within a window."""
    sender, receiver = SendWindow(), ReceiveWindow()
    for sent, read in steps:
        receiver.received(sender.take(sent))
        assert receiver.unread <= INITIAL_WINDOW
        sender.credit(receiver.consumed(min(read, receiver.unread)))
        assert sender.available == receiver.available
        sender.credit(receiver.consumed(receiver.unread))
        assert sender.available > HALF


def test_credit_over_32_bits() -> None:
    """A window that no longer fits 32 bits is refused, the largest that fits is not."""
    window = SendWindow()
    window.credit(MAX_WINDOW - INITIAL_WINDOW)

    with pytest.raises(YamuxError, match="is over 4294967295"):
        window.credit(1)
