"""The one error tree.

::

    PluginError
    ├── WireError                what the host sent can't be read; the connection ends
    │   ├── HandshakeError       the environment or the handshake line is not go-plugin's
    │   ├── YamuxError
    │   │   └── StreamClosedError  one stream can't be sent on; the session lives on
    │   ├── GobError
    │   └── RpcError
    ├── ConfigError              the Rollout or the plugin's configuration in it
    ├── RouteError               a route has not the shape, or not the room, for what is asked
    │   └── StepNotTakenError    a managed step means none of its requests, or its kind can't say what the step asks
    ├── LedgerError              the record can't be read, or can't hold what is asked
    └── KubeError                the API server, or the way to it
        ├── Conflict             409: somebody else wrote in between
        │   └── AlreadyExists    409 on a create
        ├── NotFound             404: no such object
        │   └── KindNotFound     404: the API server does not serve the kind at that version
        ├── Forbidden            401 and 403
        ├── Invalid              400 and 422: the API refused the object
        └── Unavailable          no answer, 429, 5xx, or no time left

A message says what was tried, on which object, what was found and what to do. Foreign errors become ours at one border
(`kube.client` for HTTP, the codecs for bytes), with the cause kept. What is foreign in a message is cut, in one way for
all: `shown`, `cut` and `cause`.
"""

import re
from typing import Final

# As much of a foreign value as a message shows: enough to find it, and a line stays a line.
MAX_SHOWN: Final = 80
# As much of a foreign error's text: its beginning says what is wrong; pydantic's goes on for every field.
MAX_CAUSE: Final = 200
# Where pydantic explains its kinds of errors: nothing for who reads of a broken value.
_PYDANTICS_PAGE: Final = re.compile(r"\s+For further information visit \S+")


def shown(value: object) -> str:
    """Return a foreign value for a message, quoted."""
    return repr(str(value)[:MAX_SHOWN])


def cut(text: str) -> str:
    """Return a foreign value that is written out already (as JSON, or in Python's way) for a message."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def cause(error: Exception) -> str:
    """Return kind and text of a foreign error for a message, in one line."""
    text = " ".join(_PYDANTICS_PAGE.sub("", str(error)).split())
    return f"{type(error).__name__}: {text[:MAX_CAUSE]}"


class PluginError(Exception):
    """Root of all errors that this program reports; its text is what the host shows to the user."""


class WireError(PluginError):
    """Bytes from the host that can't be read."""


class HandshakeError(WireError):
    """The go-plugin handshake (environment, line, TLS) can't be made."""


class YamuxError(WireError):
    """The yamux session is broken; `code` is what a go-away frame tells the peer."""

    def __init__(self, message: str, *, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class StreamClosedError(YamuxError):
    """Something was to be sent on a stream that is finished, reset or unknown; the session lives on."""


class GobError(WireError):
    """A gob stream is broken, or over a limit."""


class RpcError(WireError):
    """A net/rpc connection is broken."""


class ConfigError(PluginError):
    """The Rollout, or the plugin's configuration in it, can't be used as it is."""


class RouteError(PluginError):
    """A route has not the shape, or not the room, for what is asked."""


class StepNotTakenError(RouteError):
    """A managed step means none of the route's requests, or its kind can't match what the step asks for.

    Nothing is wrong with the route: where another one takes the step this is no error. `why` is the reason alone.
    """

    def __init__(self, message: str, *, why: str = "") -> None:
        super().__init__(message)
        self.why = why or message


class LedgerError(PluginError):
    """The record of managed routes can't be read, or can't hold what is asked."""


class KubeError(PluginError):
    """The API server refused or could not be reached; `status` is the HTTP status, 0 where there was no answer."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Conflict(KubeError):  # noqa: N818 - the API's own word, as in http.HTTPStatus
    """409: the object is not at the version that was read, or exists already.

    `answer_lost`: an earlier try of the same write got no answer, so the write in between may be this one itself.
    """

    def __init__(self, message: str, *, status: int = 409, answer_lost: bool = False) -> None:
        super().__init__(message, status=status)
        self.answer_lost = answer_lost


class AlreadyExists(Conflict):
    """409 on a create: an object of that name is there."""


class NotFound(KubeError):  # noqa: N818 - as Conflict
    """404: no such object, or (KindNotFound) no such kind."""


class KindNotFound(NotFound):
    """404: the API server does not serve the kind, or not at that version."""


class Forbidden(KubeError):  # noqa: N818 - as Conflict
    """401 or 403: the message names verb, resource, group, namespace and the rule to add."""


class Invalid(KubeError):  # noqa: N818 - as Conflict
    """400 or 422: the API server refused the object."""


class Unavailable(KubeError):  # noqa: N818 - as Conflict
    """No answer in time, connection refused, 429 or 5xx after the bounded retries."""
