"""Constant load from several cohorts, every answer recorded.

Takes the addresses of a Gateway's listeners and cohorts (a name, a rate, headers); sends each cohort's requests at
fixed moments whatever the answers do (an open loop), and gives back one `Answer` for each: when it was sent, how long
it took, its status and the backend that named itself. A request that got no answer has status 0 and the error's text.
Nothing is ever repeated.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rollouts_gwapi_plugin.embedded.clients import Client, Cohort, make_client

# As many requests of a cohort can be under way at once; with fewer a slow answer would delay the next ones.
WORKERS = 8
SUCCESS = range(200, 400)


@dataclass(frozen=True)
class Answer:
    """What became of one request; `sent` is in seconds since the load began, `request_id` what it was sent under.

    `service` is the Service that the gateway chose, where the protocol lets it say so.
    """

    cohort: str
    sent: float
    seconds: float
    status: int
    backend: str
    error: str = ""
    service: str = ""
    request_id: str = ""

    @property
    def lost(self) -> bool:
        """Whether the user got no good answer."""
        return self.status not in SUCCESS

    @property
    def done(self) -> float:
        """When the answer was there."""
        return self.sent + self.seconds


class Load:
    """Runs while its context is open; `answers` can be read at any time.

    `urls` has the address of each listener that a cohort names, `trust` the PEM text of the certificate that TLS
    backends show.
    """

    def __init__(
        self,
        urls: Mapping[str, str],
        cohorts: Iterable[Cohort],
        *,
        trust: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._answers: list[Answer] = []
        self._stopped = threading.Event()
        self._streams = [
            _Stream(self, cohort, [make_client(urls[cohort.listener], cohort, trust) for _ in range(WORKERS)])
            for cohort in cohorts
        ]

    @property
    def now(self) -> float:
        """Seconds since the load began."""
        return self._clock() - self._began

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

    def __init__(self, load: Load, cohort: Cohort, clients: list[Client]) -> None:
        self._load = load
        self._cohort = cohort
        self._next = 0
        self._lock = threading.Lock()
        name = f"load-{cohort.name}"
        self._threads = [
            threading.Thread(target=self._work, args=(client,), name=name, daemon=True) for client in clients
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _work(self, client: Client) -> None:
        while True:
            with self._lock:
                number, due = self._next, self._next / self._cohort.rate
                self._next += 1
            if self._load.wait(max(0.0, due - self._load.now)):
                client.close()
                return
            self._load.record(self._send(client, f"{self._cohort.name}-{number}"))

    def _send(self, client: Client, request_id: str) -> Answer:
        sent = self._load.now
        reply = client.send(request_id)
        return Answer(
            cohort=self._cohort.name,
            sent=sent,
            seconds=self._load.now - sent,
            status=reply.status,
            backend=reply.backend,
            error=reply.error,
            service=reply.service,
            request_id=request_id,
        )
