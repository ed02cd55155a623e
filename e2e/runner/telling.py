"""What happened in one telling of a case: its stages with their times, its traffic, the states of its route."""

from dataclasses import dataclass, field

from e2e.load.traffic import Traffic
from e2e.runner.api import JsonObject
from e2e.runner.case import Case, Stage


@dataclass
class Told:
    """A stage as it went; times are the machine's monotonic clock."""

    stage: Stage
    began: float
    fulfilled: float = 0.0
    settled: float = 0.0  # the first request that counts for its shares
    ended: float = 0.0


@dataclass
class Telling:
    """Everything that happened in one telling of a case."""

    case: Case
    namespace: str
    began: float
    exact: bool
    stages: list[Told] = field(default_factory=list)
    traffic: Traffic | None = None
    traffic_began: float = 0.0
    route_states: list[tuple[float, JsonObject]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    explanation: str = ""
    again: bool = False  # by the controller's own fault, as the case knows it
