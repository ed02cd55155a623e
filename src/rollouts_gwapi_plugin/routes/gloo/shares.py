"""Whole numbers that add up: shares by largest remainder. Pure arithmetic."""

from collections.abc import Sequence


def largest_remainder(total: int, parts: Sequence[int]) -> list[int]:
    """Share `total` in the ratio of `parts`, in whole numbers that add up to it exactly.

    Each gets its quota rounded down; what is left goes one by one to the largest remainders, the earlier part first.
    """
    whole = sum(parts)
    shares = [total * part // whole for part in parts]
    remainders = [(-(total * part % whole), index) for index, part in enumerate(parts)]
    for _, index in sorted(remainders)[: total - sum(shares)]:
        shares[index] += 1
    return shares
