"""The records of one run, read while it goes on: shares and losses in a window of time, and whether they are right.

With one Envoy worker shares are exact within a few requests; elsewhere they are dealt by chance. So a share is right
if it is within what chance allows at `SIGMAS` (`exact`: within a few requests), but 0 and 100 % have no tolerance at
all.
"""

import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from e2e.load import cohort as cohorts
from e2e.load.cohort import Cohort
from e2e.load.record import Record, parse

# One window in 2,000 would be judged wrongly if shares were dealt by chance.
SIGMAS = 3.5
# Envoy deals in turn, but begins anew when endpoints change: a few requests, and one in a hundred.
EXACT_REQUESTS = 3
EXACT_SHARE = 0.01
# Running requests may take their cohort's `timeout`.
STOP_SECONDS = 30.0


class GeneratorFailed(Exception):  # noqa: N818 - reads well where it is caught
    """Not all of the traffic was made: what was counted says nothing."""


@dataclass
class Traffic:
    """All records that were read so far."""

    path: Path
    pods: Mapping[str, str] = field(default_factory=dict)  # another name for the version -> expression in a pod's name
    records: list[Record] = field(default_factory=list)
    _read: int = 0

    def refresh(self) -> None:
        """Read what was written since the last time; half a line is left for the next."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        self._read += len(complete)
        new_records = [parse(line) for line in complete.decode().splitlines()]
        self.records += [replace(item, version=version_of(item.pod, item.version, self.pods)) for item in new_records]

    def window(self, cohort: str, since: float, until: float = math.inf) -> list[Record]:
        """Return the cohort's requests that lie wholly in the window."""
        return [item for item in self.records if item.cohort == cohort and item.began >= since and item.ended <= until]

    def losses(self) -> list[Record]:
        """Return the requests that failed."""
        return [record for record in self.records if record.error]


def version_of(pod: str, version: str, pods: Mapping[str, str]) -> str:
    """Return the name under which a pod's answers count: its version's, unless its own name says another."""
    return next((name for name, expression in pods.items() if re.search(expression, pod)), version)


def versions(records: list[Record]) -> Counter[str]:
    """Count the answers by version, losses left out."""
    return Counter(record.version for record in records if not record.error)


def wrong_share(found: Counter[str], expected: Mapping[str, float], *, exact: bool = False) -> str:
    """Say what is wrong with the counts; empty if they fit the expected shares in percent."""
    total = found.total()
    if not total:
        return "no answers"
    for version in sorted({*found, *expected}):
        share = expected.get(version, 0.0) / 100
        allowed = SIGMAS * math.sqrt(total * share * (1 - share))
        if exact:
            allowed = min(allowed, EXACT_REQUESTS + EXACT_SHARE * total)
        if abs(found[version] - total * share) > allowed:
            counted = ", ".join(f"{name} {count}" for name, count in sorted(found.items()))
            return (
                f"{version}: {100 * found[version] / total:.1f} % instead of {100 * share:g} % (of {total}: {counted})"
            )
    return ""


class Load:
    """The generator as a process, and its traffic; a context manager."""

    def __init__(self, wanted: list[Cohort], folder: Path, pods: Mapping[str, str] | None = None) -> None:
        self.cohorts = wanted
        self.spec = folder / "cohorts.json"
        self.traffic = Traffic(folder / "records.jsonl", pods or {})
        cohorts.save(wanted, self.spec)
        self.traffic.path.touch()

    def __enter__(self) -> Traffic:
        """Start the traffic."""
        command = [sys.executable, "-m", "e2e.load", str(self.spec), str(self.traffic.path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).parents[2])
        return self.traffic

    def __exit__(self, *_: object) -> None:
        """Stop it and read the last records."""
        self.stop()

    def stop(self) -> None:
        """End the traffic in an orderly way; running requests are waited for. Raises GeneratorFailed."""
        if not self.process.stdin or self.process.stdin.closed:
            return
        ended = self.process.poll() is not None
        self.process.stdin.close()
        try:
            code = self.process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            self.process.wait()
            raise GeneratorFailed(f"the generator did not end within {STOP_SECONDS:g} s") from error
        finally:
            self.traffic.refresh()
        if ended or code:
            raise GeneratorFailed(f"the generator ended{' by itself' if ended else ''} with code {code}")
