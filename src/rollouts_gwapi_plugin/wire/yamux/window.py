"""Flow control of one direction of one stream: how much may still come, or go.

A window starts at 256 KiB. The sender counts down by what it sends and waits at zero; the receiver gives credit when
its application has read at least half of the window, and always up to the full window (what the Go implementation
does, so that both sides agree on when credit comes).
"""

from typing import Final

from rollouts_gwapi_plugin.errors import YamuxError

# Fixed by the protocol: both sides start here without saying so.
INITIAL_WINDOW: Final = 256 * 1024
# The credit field has 32 bits and the window itself is kept in 32 bits by the Go implementation, where it would wrap.
MAX_WINDOW: Final = 2**32 - 1


class ReceiveWindow:
    """What the peer may still send us, and what of it our application has not read."""

    def __init__(self, size: int = INITIAL_WINDOW) -> None:
        self.size = size
        self.available = size
        self.unread = 0

    def received(self, count: int) -> None:
        """Count bytes that came.

        Raises:
            YamuxError: they are more than the window has left.

        """
        if count > self.available:
            raise YamuxError(f"{count} bytes came where the window had {self.available} left")
        self.available -= count
        self.unread += count

    def consumed(self, count: int) -> int:
        """Count bytes that the application has read; return the credit to send now, 0 for not yet."""
        if not 0 <= count <= self.unread:
            raise ValueError(f"{count} bytes were reported as read, but {self.unread} are unread")
        self.unread -= count
        credit = self.size - self.unread - self.available
        if credit < self.size // 2:
            return 0
        self.available += credit
        return credit


class SendWindow:
    """What we may still send."""

    def __init__(self, size: int = INITIAL_WINDOW) -> None:
        self.available = size

    def take(self, wanted: int) -> int:
        """Spend up to `wanted` bytes; return how many may go now."""
        granted = min(wanted, self.available)
        self.available -= granted
        return granted

    def credit(self, count: int) -> None:
        """Add what the peer allows.

        Raises:
            YamuxError: the window would not fit 32 bits.

        """
        if self.available + count > MAX_WINDOW:
            raise YamuxError(f"credit of {count} on a window of {self.available} is over {MAX_WINDOW}")
        self.available += count
