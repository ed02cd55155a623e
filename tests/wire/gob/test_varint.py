"""Integers and floats on the wire."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.wire.gob.varint import (
    Fault,
    encode_float,
    encode_int,
    encode_uint,
    float_of,
    read_int,
    read_uint,
)


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "ff80"),
        (255, "ffff"),
        (256, "fe0100"),
        ((1 << 32) - 1, "fcffffffff"),
        (1 << 32, "fb0100000000"),
        ((1 << 64) - 1, "f8ffffffffffffffff"),
    ],
)
def test_uint(value: int, wire: str) -> None:
    """An unsigned integer is written in as few bytes as it needs."""
    assert encode_uint(value).hex() == wire
    assert read_uint(bytearray.fromhex("aa" + wire), 1) == (value, 1 + len(wire) // 2)


@pytest.mark.parametrize(
    ("value", "wire"), [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "ff80"), (-65, "ff81")]
)
def test_int(value: int, wire: str) -> None:
    """The sign of an integer is its lowest bit."""
    assert encode_int(value).hex() == wire
    assert read_int(bytearray.fromhex(wire), 0) == (value, len(wire) // 2)


@given(value=st.integers(-(1 << 63), (1 << 63) - 1))
def test_int_round_trip(value: int) -> None:
    """Each integer of 64 bits comes back."""
    assert read_int(bytearray(encode_int(value)), 0)[0] == value


@given(value=st.floats())
def test_float_round_trip(value: float) -> None:
    """Each float comes back to the bit."""
    bits, _ = read_uint(bytearray(encode_float(value)), 0)

    assert struct.pack(">d", float_of(bits)) == struct.pack(">d", value)


def test_small_floats_are_short() -> None:
    """Whole numbers are short, since their bytes are reversed."""
    assert encode_float(17.0).hex() == "fe3140"


@pytest.mark.parametrize(
    ("wire", "position", "text"),
    [("f7", 1, "an integer of 9 bytes"), ("80", 1, "an integer of 128 bytes"), ("fd0000", 1, "3 bytes wanted, 2 left")],
)
def test_refused(wire: str, position: int, text: str) -> None:
    """An integer of more than eight bytes is refused, and one that is cut short."""
    with pytest.raises(Fault) as caught:
        read_uint(bytearray.fromhex(wire), 0)

    assert (caught.value.position, caught.value.text) == (position, text)


def test_longer_than_needed() -> None:
    """Leading zeros are taken, as Go does."""
    assert read_uint(bytearray.fromhex("f80000000000000005"), 0) == (5, 9)
