"""Keep a constant rate: each cohort's requests are due at fixed times, whatever the answers before them did.

A few threads a cohort share its times; a thread that is late (a slow answer, a busy machine) leaves out the times that
have passed. Each answer is written as one line as soon as it is there. What a client raises beside `Lost` is a fault of
its own: the thread ends with it, and `broken` says so.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from e2e.load.clients import Client, Lost, connect
from e2e.load.cohort import Cohort
from e2e.load.record import Record

# Enough for 50 requests a second that take 80 ms each.
THREADS = 4


class Generator:
    """Traffic of all cohorts, from `start` to `stop`; records go to the file."""

    def __init__(self, cohorts: list[Cohort], records: Path) -> None:
        self.stopping = threading.Event()
        self.broken = False  # a thread ended by itself
        self.lock = threading.Lock()
        self.file = records.open("a")
        self.threads = [
            threading.Thread(target=self._run, args=(cohort, index), name=f"{cohort.name}-{index}")
            for cohort in cohorts
            for index in range(THREADS)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Let running requests end, then close the file."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        self.file.close()

    def _run(self, cohort: Cohort, index: int) -> None:
        try:
            self._keep_asking(cohort, index)
        except BaseException:
            self.broken = True
            raise

    def _keep_asking(self, cohort: Cohort, index: int) -> None:
        client = connect(cohort)
        period = THREADS / cohort.rate
        due = time.monotonic() + index / cohort.rate
        while not self.stopping.wait(max(0.0, due - time.monotonic())):
            self._write(ask(cohort, client.ask))
            late = time.monotonic() - due
            due += period * max(1, int(late / period) + (late % period > 0))

    def _write(self, record: Record) -> None:
        with self.lock:
            self.file.write(record.line())
            self.file.flush()


def ask(cohort: Cohort, request: Callable[[], dict[str, object]] | None = None) -> Record:
    """Make one request of the cohort and return its record."""
    if request is None:
        client: Client = connect(cohort)
        request = client.ask
    began = time.monotonic()
    try:
        answer = request()
    except Lost as loss:
        return Record(cohort.name, began, time.monotonic() - began, error=str(loss))
    return Record(
        cohort.name,
        began,
        time.monotonic() - began,
        version=str(answer.get("version", "")),
        pod=str(answer.get("pod", "")),
        hash=str(answer.get("hash", "")),
        revision=int(str(answer.get("revision", 0))),
    )
