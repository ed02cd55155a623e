"""Constant HTTP load from several cohorts, every answer recorded.

Takes a URL and cohorts (a name, a rate, headers); sends each cohort's requests at fixed moments whatever the answers
do (an open loop), and gives back one `Answer` for each request: when it was sent, how long it took, its status and
the backend that named itself. A request that got no answer has status 0 and the error's text. Nothing is ever
repeated.
"""

import http.client
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from rollouts_gwapi_plugin.embedded.backends import NAME_HEADER
from rollouts_gwapi_plugin.embedded.dataplane.proxy import REASON_HEADER

# A request that takes longer than this is lost for its user.
ANSWER_SECONDS = 10.0
# As many requests of a cohort can be under way at once; with fewer a slow answer would delay the next ones.
WORKERS = 8
SUCCESS = range(200, 400)


@dataclass(frozen=True)
class Cohort:
    """Clients that send alike; `rate` is in requests a second."""

    name: str
    rate: float
    headers: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    path: str = "/"
    method: str = "GET"


@dataclass(frozen=True)
class Answer:
    """What became of one request; `sent` is in seconds since the load began."""

    cohort: str
    sent: float
    seconds: float
    status: int
    backend: str
    error: str = ""

    @property
    def lost(self) -> bool:
        """Whether the user got no good answer."""
        return self.status not in SUCCESS

    @property
    def done(self) -> float:
        """When the answer was there."""
        return self.sent + self.seconds


class Load:
    """Runs while its context is open; `answers` can be read at any time."""

    def __init__(self, url: str, cohorts: list[Cohort], *, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._clock = clock
        self._began = clock()
        self._answers: list[Answer] = []
        self._stopped = threading.Event()
        self._streams = [_Stream(self, cohort) for cohort in cohorts]

    @property
    def now(self) -> float:
        """Seconds since the load began."""
        return self._clock() - self._began

    @property
    def address(self) -> tuple[str, int]:
        """Where requests go."""
        return self._address

    def answers(self, *, since: float = 0.0, until: float = float("inf"), cohort: str = "") -> list[Answer]:
        """Return answers to requests that were both sent and answered in the span."""
        taken = list(self._answers)
        return [
            answer for answer in taken if answer.sent >= since and answer.done < until and cohort in {"", answer.cohort}
        ]

    def wait(self, seconds: float) -> bool:
        """Wait; return True at once when the load has ended."""
        return self._stopped.wait(seconds)

    def record(self, answer: Answer) -> None:
        """Keep an answer."""
        self._answers.append(answer)

    def __enter__(self) -> Self:
        self._began = self._clock()
        for stream in self._streams:
            stream.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for stream in self._streams:
            stream.join()


class _Stream:
    """One cohort: workers that take turns at the moments of its schedule."""

    def __init__(self, load: Load, cohort: Cohort) -> None:
        self._load = load
        self._cohort = cohort
        self._next = 0
        self._lock = threading.Lock()
        name = f"load-{cohort.name}"
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for _ in range(WORKERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        connection = http.client.HTTPConnection(*self._load.address, timeout=ANSWER_SECONDS)
        headers = {**self._cohort.headers, **({"host": self._cohort.host} if self._cohort.host else {})}
        while True:
            with self._lock:
                due = self._next / self._cohort.rate
                self._next += 1
            if self._load.wait(max(0.0, due - self._load.now)):
                connection.close()
                return
            self._load.record(self._send(connection, headers))

    def _send(self, connection: http.client.HTTPConnection, headers: dict[str, str]) -> Answer:
        sent = self._load.now
        try:
            connection.request(self._cohort.method, self._cohort.path, headers=headers)
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return Answer(self._cohort.name, sent, self._load.now - sent, 0, "", f"{type(error).__name__}: {error}")
        backend, reason = response.headers.get(NAME_HEADER, ""), response.headers.get(REASON_HEADER, "")
        return Answer(self._cohort.name, sent, self._load.now - sent, response.status, backend, reason)
