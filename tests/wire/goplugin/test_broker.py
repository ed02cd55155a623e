"""The mux broker: ids are little-endian, each is dialled once, and both sides understand each other."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.errors import HandshakeError
from rollouts_gwapi_plugin.wire.goplugin.broker import MAX_UNDIALLED, Dialled, HostDial, PluginBroker


def test_ids_count_from_one() -> None:
    """The first id is 1, the next 2."""
    broker = PluginBroker[str]()

    assert [broker.offer("a"), broker.offer("b")] == [1, 2]


def test_dial_is_acknowledged() -> None:
    """A stream that starts with an offered id gets the same four bytes as answer; what follows is for the service."""
    broker = PluginBroker[str]()
    broker.offer("first")
    broker.offer("second")

    assert broker.receive(9, b"\x02\0\0\0rest") == Dialled("second", b"\x02\0\0\0", b"rest")
    assert broker.receive(7, b"\x01\0\0\0") == Dialled("first", b"\x01\0\0\0", b"")


@given(st.integers(0, 2**32 - 1), st.binary(max_size=9), st.lists(st.integers(0, 8), max_size=6))
def test_dial_cut_anywhere(offset: int, rest: bytes, cuts: list[int]) -> None:
    """The id is found wherever its bytes are cut, for any id, on the plugin's side and on the host's."""
    broker = PluginBroker[str]()
    broker._last_id = offset
    dial = HostDial(broker.offer("service"))
    raw = dial.hello + rest
    edges = [0, *sorted(cut for cut in cuts if cut < 4), len(raw)]
    pieces = [raw[start:end] for start, end in itertools.pairwise(edges)]
    results = [broker.receive(7, piece) for piece in pieces]
    acknowledged = [dial.receive(piece) for piece in pieces]

    assert results == [None] * (len(pieces) - 1) + [Dialled("service", dial.hello, rest)]
    assert acknowledged == [None] * (len(pieces) - 1) + [rest]


def test_ids_wrap_without_zero() -> None:
    """After the last 32-bit id comes 1."""
    broker = PluginBroker[str]()
    broker._last_id = 2**32 - 1

    assert broker.offer("service") == 1


@pytest.mark.parametrize("hello", [b"\0\0\0\0", b"\0\0\0\x01", b"\x02\0\0\0"], ids=["zero", "big-endian", "unknown"])
def test_dial_of_what_was_not_offered(hello: bytes) -> None:
    """An id that waits for no dial is an error that names it; the one that waits can still be dialled."""
    broker = PluginBroker[str]()
    broker.offer("service")

    with pytest.raises(HandshakeError, match=f"id {int.from_bytes(hello, 'little')}, which waits for no dial"):
        broker.receive(7, hello)
    assert broker.receive(9, b"\x01\0\0\0") is not None


def test_second_dial() -> None:
    """An id is good for one stream."""
    broker = PluginBroker[str]()
    broker.offer("service")
    broker.receive(7, b"\x01\0\0\0")

    with pytest.raises(HandshakeError, match="id 1, which waits for no dial"):
        broker.receive(9, b"\x01\0\0\0")


def test_forgotten_stream() -> None:
    """A stream that ended within its id leaves nothing for the next one of that number."""
    broker = PluginBroker[str]()
    broker.offer("service")
    assert broker.receive(7, b"\x09\x09") is None
    broker.forget(7)

    assert broker.receive(7, b"\x01\0\0\0") is not None


def test_undialled_ids_are_limited() -> None:
    """A host that dispenses and never dials holds no more than the limit: the oldest id goes."""
    broker = PluginBroker[int]()
    for number in range(MAX_UNDIALLED + 1):
        broker.offer(number)

    with pytest.raises(HandshakeError, match="id 1,"):
        broker.receive(7, b"\x01\0\0\0")
    assert broker.receive(9, b"\x02\0\0\0") is not None
    assert len(broker._offered) == MAX_UNDIALLED - 1


def test_host_is_acknowledged_something_else() -> None:
    """Another id than the dialled one is an error that names both."""
    with pytest.raises(HandshakeError, match="dialled was the brokered id 1, but the plugin acknowledged 2"):
        HostDial(1).receive(b"\x02\0\0\0")
