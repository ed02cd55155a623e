"""Who we are to the API server: the Authorization header, and when it is read anew.

A `Credentials` value gives the header for the next request and is told when the API server refused it. Two threads
that were refused with the same header cause one refresh: the second finds that the header has changed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.kube.deadline import REAL_TIME, Timing
from rollouts_gwapi_plugin.log import get_logger

# The kubelet renews a projected token at 80 % of its life, which is 10 minutes at least: a minute is early enough.
TOKEN_READ_INTERVAL = 60.0
# A service-account token is 1-2 kB; a file beyond this is not one.
MAX_TOKEN_BYTES = 64 * 1024

log = get_logger()


class Credentials(Protocol):
    """Gives the value of the Authorization header, empty for none."""

    def authorization(self) -> str:
        """Return the header's value for the next request."""

    def refused(self, authorization: str) -> None:
        """Take note that the API server answered 401 to this header, and read a new one."""


class NoCredentials:
    """No Authorization header: client certificates, or an API server that asks for nothing."""

    def authorization(self) -> str:
        """Return no header."""
        return ""

    def refused(self, authorization: str) -> None:
        """There is nothing to read anew."""


class TokenFile:
    """A bearer token in a file that somebody else renews."""

    def __init__(self, path: Path, *, timing: Timing = REAL_TIME) -> None:
        self._path = path
        self._timing = timing
        self._lock = threading.Lock()
        self._header = f"Bearer {_read_token(path)}"
        self._read_at = timing.clock()

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"

    def authorization(self) -> str:
        """Return the token, from the file if it was last read a minute ago."""
        with self._lock:
            if self._timing.clock() - self._read_at >= TOKEN_READ_INTERVAL:
                self._read()
            return self._header

    def refused(self, authorization: str) -> None:
        """Read the file at once, unless another thread already did."""
        with self._lock:
            if self._header == authorization:
                self._read()

    def _read(self) -> None:
        self._read_at = self._timing.clock()
        try:
            self._header = f"Bearer {_read_token(self._path)}"
        except ConfigError as error:
            # The old token is good for some minutes more; the next read may succeed.
            log.warning("keeping the token read before", reason=str(error))


@dataclass(frozen=True)
class Loaded:
    """What a kubeconfig's user gave: a header, and the moment (of the monotonic clock) at which to ask again."""

    authorization: str
    good_until: float | None = None

    def __repr__(self) -> str:
        return f"Loaded(good_until={self.good_until!r})"


class ReloadedCredentials:
    """A header that a function makes, asked again when it ends and when the API server refuses it."""

    def __init__(self, first: Loaded, load: Callable[[], Loaded], *, timing: Timing = REAL_TIME) -> None:
        self._load = load
        self._timing = timing
        self._lock = threading.Lock()
        self._loaded = first

    def __repr__(self) -> str:
        return "ReloadedCredentials()"

    def authorization(self) -> str:
        """Return the header, from its source if its time is over."""
        with self._lock:
            good_until = self._loaded.good_until
            if good_until is not None and self._timing.clock() >= good_until:
                self._loaded = self._load()
            return self._loaded.authorization

    def refused(self, authorization: str) -> None:
        """Ask the source at once, unless another thread already did."""
        with self._lock:
            if self._loaded.authorization == authorization:
                self._loaded = self._load()


def _read_token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_TOKEN_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"the token file {path} can't be read: {error.strerror or error}") from error
    token = raw.decode("ascii", "replace").strip()
    if not token or len(raw) > MAX_TOKEN_BYTES or not token.isascii() or not token.isprintable():
        raise ConfigError(f"the token file {path} holds {len(raw)} bytes that are not a token")
    return token
