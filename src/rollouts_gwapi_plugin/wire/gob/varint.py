"""Integers and floats, the atoms of gob.

An unsigned integer below 128 is one byte; else a byte with the negated count of bytes, then the bytes, big-endian. A
signed one is an unsigned one with the sign in the lowest bit. A float is its IEEE 754 bits, byte order reversed, as an
unsigned integer: small whole numbers are short so.

Readers take a message and a position and return the value and the position after it. They raise `Fault`, or IndexError
where the message ends: whoever calls them turns both into `GobError` with the place in the stream.
"""

import struct

# The first byte of an integer is the integer itself below this, else 256 less the number of bytes that follow.
SMALL = 0x80
ONE_BYTE = 0xFF
LONGEST = 8
_DOUBLE = struct.Struct("<d")
_WORD = struct.Struct(">Q")


class Fault(Exception):  # noqa: N818 - never leaves the package: it becomes a GobError at its border
    """What is wrong, and where in the message."""

    def __init__(self, position: int, text: str) -> None:
        super().__init__(text)
        self.position = position
        self.text = text


def missing(data: bytearray, position: int, wanted: int) -> Fault:
    """Return the fault of something that is longer than what is left."""
    return Fault(position, f"{wanted} bytes wanted, {len(data) - position} left")


def read_long_uint(data: bytearray, position: int) -> tuple[int, int]:
    """Read an unsigned integer whose first byte says that it is not a small one."""
    size = 256 - data[position]
    start = position + 1
    if size > LONGEST:
        raise Fault(start, f"an integer of {size} bytes")
    end = start + size
    if end > len(data):
        raise missing(data, start, size)
    return int.from_bytes(data[start:end], "big"), end


def read_uint(data: bytearray, position: int) -> tuple[int, int]:
    """Read an unsigned integer."""
    value = data[position]
    if value < SMALL:
        return value, position + 1
    return read_long_uint(data, position)


def read_int(data: bytearray, position: int) -> tuple[int, int]:
    """Read a signed integer."""
    value = data[position]
    if value < SMALL:
        position += 1
    else:
        value, position = read_long_uint(data, position)
    return (~(value >> 1) if value & 1 else value >> 1), position


def float_of(bits: int) -> float:
    """Return the float that travels as this unsigned integer."""
    value: float = _DOUBLE.unpack(_WORD.pack(bits))[0]
    return value


def encode_uint(value: int) -> bytes:
    """Return an unsigned integer of up to 64 bits as it travels."""
    if value < SMALL:
        return bytes((value,))
    size = (value.bit_length() + 7) // 8
    return bytes((256 - size,)) + value.to_bytes(size, "big")


def encode_int(value: int) -> bytes:
    """Return a signed integer of up to 64 bits as it travels."""
    return encode_uint((~value << 1) | 1 if value < 0 else value << 1)


def encode_float(value: float) -> bytes:
    """Return a float as it travels."""
    return encode_uint(_WORD.unpack(_DOUBLE.pack(value))[0])
