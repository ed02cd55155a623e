"""Shares by weight are exact a block, shuffled inside, and alike for a seed."""

from collections import Counter
from math import gcd

from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.dataplane.dealing import MAX_BLOCK, MAX_BLOCKS, Dealer

WEIGHTS = st.lists(st.integers(0, 20), min_size=1, max_size=4).filter(any).map(tuple)


@settings(deadline=None)  # a busy machine is no fault
@given(WEIGHTS, st.integers(1, 3))
def test_shares_are_exact_over_blocks(weights: tuple[int, ...], blocks: int) -> None:
    """After each whole block every index came as often as its weight says."""
    dealer, size = Dealer(), sum(weights) // gcd(*weights)

    dealt = Counter(dealer.deal("rule", weights) for _ in range(size * blocks))

    assert dealt == Counter({i: w // gcd(*weights) * blocks for i, w in enumerate(weights) if w})


def test_all_zero_deals_nothing() -> None:
    """Where all weights are zero nobody is chosen."""
    assert Dealer().deal("rule", (0, 0)) is None


def test_the_order_is_shuffled_and_repeatable() -> None:
    """Two dealers of one seed agree, of two seeds differ, and the order is no plain rotation."""
    runs = [[dealer.deal("rule", (50, 50)) for _ in range(64)] for dealer in (Dealer(1), Dealer(1), Dealer(2))]

    assert runs[0] == runs[1] != runs[2]
    assert runs[0] not in ([0, 1] * 32, [1, 0] * 32)


def test_clients_that_take_turns_both_get_their_share() -> None:
    """With 50/50 and two clients in turns, neither client sees one backend only."""
    dealer = Dealer()
    first = [dealer.deal("rule", (50, 50)) for _ in range(200)][::2]

    assert 25 < sum(1 for index in first if index == 0) < 75


def test_weights_too_fine_for_a_block_are_drawn() -> None:
    """Weights that would need a huge block keep their proportion within five sigma."""
    weights = (1, MAX_BLOCK * 1000)
    dealer = Dealer()

    assert Counter(dealer.deal("rule", weights) for _ in range(1000))[1] >= 995


def test_blocks_are_bounded() -> None:
    """Rules that come and go do not grow the dealer."""
    dealer = Dealer()
    for key in range(MAX_BLOCKS + 10):
        dealer.deal(key, (1, 1))

    assert len(dealer._blocks) <= MAX_BLOCKS
