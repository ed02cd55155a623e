"""The server name in a ClientHello: found in what real clients send, and nothing made of garbage."""

import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.dataplane.client_hello import MAX_HELLO, server_name


def hello(name: str | None) -> bytes:
    """Return the first bytes of a TLS client that asks for a name."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def in_records(data: bytes, size: int) -> bytes:
    """Cut the only record into records of at most so many bytes."""
    header, payload = data[:3], data[5:]
    parts = [payload[at : at + size] for at in range(0, len(payload), size)]
    return b"".join(header + len(part).to_bytes(2) + part for part in parts)


def test_every_prefix() -> None:
    """The name is known with the last byte and not before, in lower case, however much follows."""
    data = hello("Shop.Example")

    assert server_name(data) == server_name(data + b"\x14\x03\x03") == "shop.example"
    assert {server_name(data[:count]) for count in range(len(data))} == {None}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 50, 300])
def test_several_records(size: int) -> None:
    """A hello that is spread over records is put together."""
    data = in_records(hello("shop.example"), size)

    assert server_name(data) == "shop.example"
    assert server_name(data[:-1]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        bytes([22, 3, 1, 0, 0]),  # an empty record
        bytes([22, 3, 1, 0, 4, 2, 0, 0, 0]),  # another handshake message
        bytes([22, 3, 1, 0, 5, 1, 0, 0, 1, 9]),  # a hello that is shorter than its fields
    ],
)
def test_no_name_to_come(data: bytes) -> None:
    """What is no ClientHello has no name, and no more bytes are waited for."""
    assert server_name(data) == ""


def test_a_hello_without_a_name() -> None:
    """A client that names nobody is answered at once."""
    assert server_name(hello(None)) == ""


def test_a_hello_without_end() -> None:
    """A record that claims more than is ever read is given up at the limit."""
    start = bytes([22, 3, 1, 255, 255, 1, 255, 255, 255])

    assert server_name(start.ljust(MAX_HELLO - 1, b"x")) is None
    assert server_name(start.ljust(MAX_HELLO, b"x")) == ""


@settings(deadline=None)  # a busy machine is no fault
@given(st.binary(max_size=64), st.integers(0, 200), st.integers(0, 255))
def test_garbage(data: bytes, place: int, value: int) -> None:
    """Whatever arrives, and whichever byte of a hello is wrong, the answer is a text or a wish for more."""
    broken = bytearray(hello("shop.example"))
    broken[place] = value

    for found in (server_name(data), server_name(b"\x16\x03\x01" + data), server_name(bytes(broken))):
        assert found is None or isinstance(found, str)
