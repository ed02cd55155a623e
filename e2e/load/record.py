"""One answer: who asked, when, how long it took, who answered, or what went wrong.

`began` is the machine's monotonic clock, the same in all of its processes.
"""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Record:
    """One request; `error` is empty where it was answered as it should."""

    cohort: str
    began: float
    took: float
    version: str = ""
    pod: str = ""
    hash: str = ""
    revision: int = 0
    error: str = ""

    @property
    def ended(self) -> float:
        """When the answer was complete."""
        return self.began + self.took

    def line(self) -> str:
        """One line of the records' file."""
        return json.dumps(asdict(self), separators=(",", ":")) + "\n"


def parse(line: str) -> Record:
    """Read a line back."""
    return Record(**json.loads(line))
