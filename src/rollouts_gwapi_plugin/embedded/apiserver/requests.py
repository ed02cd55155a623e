"""The log of requests: what came over HTTP, from whom, and what it was answered."""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# The log forgets the oldest beyond this, so that a long run does not grow without end.
LOG_LENGTH = 50_000
WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(eq=False)
class Request:
    """One request; `status` is 0 until it is answered, and stays 0 where the connection was dropped."""

    number: int
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw_body: bytes = b""
    user: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    plural: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    status: int = 0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    @property
    def body(self) -> Any:
        """The body as JSON, or None."""
        return json.loads(self.raw_body) if self.raw_body else None

    @property
    def user_agent(self) -> str:
        """What the client calls itself."""
        return self.headers.get("user-agent", "")

    @property
    def field_manager(self) -> str:
        """The field manager that the client names, else the first word of its user agent."""
        return self.query.get("fieldManager") or self.user_agent.partition("/")[0]

    @property
    def is_write(self) -> bool:
        """Whether the request asks for a change, a dry run not counted."""
        return self.verb in WRITE_VERBS and self.query.get("dryRun") != "All"

    def __str__(self) -> str:
        return f"{self.method} {self.path} -> {self.status or 'no answer'}"


class RequestLog:
    """All requests, oldest first; iterable, and to be waited on."""

    def __init__(self) -> None:
        self._entries: deque[Request] = deque(maxlen=LOG_LENGTH)
        self._changed = threading.Condition()
        self._count = 0

    def __iter__(self) -> Iterator[Request]:
        with self._changed:
            return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Request:
        return self._entries[index]

    def begin(self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Request:
        """Note a request as it arrives."""
        with self._changed:
            self._count += 1
            request = Request(self._count, method, path, query, headers)
            self._entries.append(request)
            self._changed.notify_all()
            return request

    def finish(self, request: Request, status: int) -> None:
        """Note the answer."""
        with self._changed:
            request.status = status
            request.seconds = time.monotonic() - request.started
            self._changed.notify_all()

    def clear(self) -> None:
        """Forget all."""
        with self._changed:
            self._entries.clear()

    def matching(self, **wanted: Any) -> list[Request]:
        """Those whose attributes have the given values: `matching(verb="update", plural="httproutes")`."""
        return [request for request in self if all(getattr(request, key) == value for key, value in wanted.items())]

    @property
    def writes(self) -> list[Request]:
        """Those that ask for a change; dry runs are not among them."""
        return [request for request in self if request.is_write]

    def wait_for(self, matches: Callable[[Request], bool], *, timeout: float = 10.0) -> Request:
        """Wait until a request matches and return it; TimeoutError lists what came instead."""
        end = time.monotonic() + timeout
        with self._changed:
            while True:
                found = next((request for request in self._entries if matches(request)), None)
                if found is not None:
                    return found
                left = end - time.monotonic()
                if left <= 0:
                    seen = ", ".join(str(request) for request in list(self._entries)[-20:])
                    raise TimeoutError(f"no such request within {timeout} s; the last ones were: {seen or 'none'}")
                self._changed.wait(left)
