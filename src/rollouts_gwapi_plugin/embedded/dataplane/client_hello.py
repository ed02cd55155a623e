"""The server name that a TLS client asks for, read from its first bytes. Pure.

Takes the bytes that have come so far; returns the name in lower case, an empty text where there is none to come (no
TLS, no such extension, garbage), or None while more bytes are needed. It never raises, and never needs more than
`MAX_HELLO` bytes: the name of a longer hello is taken as absent.
"""

# One TLS record holds 16 KiB; hellos with post-quantum key shares have 2.
MAX_HELLO = 16 * 1024
_HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
_RECORD_HEADER = 5
_MESSAGE_HEADER = 4
_VERSION_AND_RANDOM = 34


class _IncompleteError(Exception):
    """More bytes are needed."""


def server_name(data: bytes) -> str | None:
    """Return the server name, empty for none, None for "not yet known"."""
    try:
        return _name_of(_Reader(_client_hello(data)))
    except _IncompleteError:
        return None if len(data) < MAX_HELLO else ""
    except ValueError:
        return ""


class _Reader:
    """Fields one after another; ValueError where the bytes end."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def take(self, count: int) -> bytes:
        if len(self.rest) < count:
            raise ValueError("the message is shorter than its fields")
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def block(self, size: int) -> bytes:
        """Return a field that has its length, of that many bytes, in front."""
        return self.take(self.number(size))


def _client_hello(data: bytes) -> bytes:
    """Return the ClientHello without its header, put together from its records.

    Raises:
        _IncompleteError: It is not all there yet.
        ValueError: This is no TLS, or no ClientHello.
    """
    message = b""
    while data:
        if data[0] != _HANDSHAKE:
            raise ValueError("no TLS handshake record")
        end = _RECORD_HEADER + int.from_bytes(data[3:_RECORD_HEADER])
        if len(data) >= _RECORD_HEADER == end:
            raise ValueError("an empty record, which TLS forbids here")
        message += data[_RECORD_HEADER:end]
        if message[:1] not in {b"", bytes([_CLIENT_HELLO])}:
            raise ValueError("no ClientHello")
        wanted = _MESSAGE_HEADER + int.from_bytes(message[1:_MESSAGE_HEADER])
        if len(message) >= max(wanted, _MESSAGE_HEADER):
            return message[_MESSAGE_HEADER:wanted]
        data = data[end:]
    raise _IncompleteError


def _name_of(hello: _Reader) -> str:
    hello.take(_VERSION_AND_RANDOM)
    for size in (1, 2, 1):
        # Session, cipher suites, compression methods.
        hello.block(size)
    extensions = _Reader(hello.block(2)) if hello.rest else _Reader(b"")
    while extensions.rest:
        kind, body = extensions.number(2), extensions.block(2)
        if kind != _SERVER_NAME:
            continue
        names = _Reader(_Reader(body).block(2))
        while names.rest:
            name_type, name = names.number(1), names.block(2)
            if name_type == _HOST_NAME:
                return name.decode("ascii").lower()
    return ""
