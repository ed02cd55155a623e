"""Asked against measured: shares of the new version over stretches of time, and whether they are right. Pure.

A `Stage` is a stretch in which one weight was in effect the whole time; only requests that were sent and answered
inside it count. A measured share is right within three standard deviations of the binomial distribution of as many
requests with the asked share; where all or nothing was asked, a single request on the other side is wrong.
"""

from dataclasses import dataclass
from math import sqrt

from rollouts_gwapi_plugin.embedded.load import Answer

SIGMAS = 3.0
# A share of fewer requests than this says nothing.
MIN_REQUESTS = 20


@dataclass(frozen=True)
class Stage:
    """A stretch of time; `asked` is the share of the new version, from 0 to 1, times are the load's."""

    name: str
    asked: float
    since: float
    until: float
    reads: int = 0
    writes: int = 0


@dataclass(frozen=True)
class Share:
    """What one stage measured."""

    stage: Stage
    requests: int
    hits: int
    lost: int
    median: float = 0.0
    slow: float = 0.0

    @property
    def measured(self) -> float:
        """The new version's share of the answers."""
        return self.hits / self.requests if self.requests else 0.0

    @property
    def tolerance(self) -> float:
        """How far off the measured share may be."""
        asked = self.stage.asked
        return SIGMAS * sqrt(asked * (1 - asked) / self.requests) if self.requests else 0.0

    @property
    def problem(self) -> str:
        """What is wrong, empty if nothing is."""
        if self.requests < MIN_REQUESTS:
            return f"{self.stage.name}: only {self.requests} requests were measured, {MIN_REQUESTS} are needed"
        # A share is a fraction of floats: 0.2 of 100 requests is not exactly 20.
        if abs(self.measured - self.stage.asked) > self.tolerance + 1e-9:
            return (
                f"{self.stage.name}: {self.measured:.1%} of {self.requests} requests met the new version, "
                f"asked were {self.stage.asked:.1%} ± {self.tolerance:.1%}"
            )
        return ""


def share(stage: Stage, answers: list[Answer], version: str) -> Share:
    """Measure a stage: how many of its answers came from the version."""
    inside = [answer for answer in answers if answer.sent >= stage.since and answer.done < stage.until]
    good = [answer for answer in inside if not answer.lost]
    times = sorted(answer.seconds for answer in good) or [0.0]
    return Share(
        stage=stage,
        requests=len(good),
        hits=sum(answer.backend == version for answer in good),
        lost=len(inside) - len(good),
        median=times[len(times) // 2],
        slow=times[min(len(times) - 1, len(times) * 99 // 100)],
    )


def curve(answers: list[Answer], version: str, width: float) -> list[tuple[float, float]]:
    """Return the version's share over time, in bins of a width in seconds; bins without answers are left out."""
    bins: dict[int, list[bool]] = {}
    for answer in answers:
        if not answer.lost:
            bins.setdefault(int(answer.sent / width), []).append(answer.backend == version)
    return [((index + 0.5) * width, sum(hits) / len(hits)) for index, hits in sorted(bins.items())]
