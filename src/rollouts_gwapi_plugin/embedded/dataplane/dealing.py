"""Shares by weight: which of several backends takes the next request.

Takes weights, returns an index; over every block of requests (the sum of the weights over their greatest common
divisor) the shares are exact, and inside a block the order is shuffled. So a measured share that is off shows a wrong
weight and not bad luck, as with Envoy's scheduler; and unlike a fixed rotation the order can't fall in step with
clients that take turns.
"""

import random
import threading
from collections.abc import Hashable
from math import gcd

# A block of more cards than this would be dealt in part only; a plain draw by weight is as good then.
MAX_BLOCK = 1000
# Every change of weights starts a block of its own; old ones are dropped, all at once, when so many have gathered.
MAX_BLOCKS = 4096


class Dealer:
    """Deals indices in proportion to weights; the same seed and the same questions give the same answers."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - shares of traffic, no secret
        self._blocks: dict[Hashable, list[int]] = {}
        self._lock = threading.Lock()

    def deal(self, key: Hashable, weights: tuple[int, ...]) -> int | None:
        """Return the next index for the key; None where all weights are zero."""
        total = sum(weights)
        if total <= 0:
            return None
        divisor = gcd(*weights)
        with self._lock:
            if total // divisor > MAX_BLOCK:
                return self._random.choices(range(len(weights)), weights)[0]
            block = self._block((key, weights))
            if not block:
                block.extend(index for index, weight in enumerate(weights) for _ in range(weight // divisor))
                self._random.shuffle(block)
            return block.pop()

    def _block(self, key: Hashable) -> list[int]:
        if key not in self._blocks and len(self._blocks) >= MAX_BLOCKS:
            self._blocks.clear()
        return self._blocks.setdefault(key, [])
