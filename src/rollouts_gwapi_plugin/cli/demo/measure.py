"""Asked against measured: who answered each cohort over stretches of time, and whether that is right. Pure.

A `Stage` is a stretch in which one state was in effect the whole time; only requests that were sent and answered inside
it count. A measured share is right within three standard deviations of the binomial distribution of as many requests
with the asked share; where all or nothing was asked, a single request on the other side is wrong.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from rollouts_gwapi_plugin.cli.demo.asked import Asked
from rollouts_gwapi_plugin.cli.demo.traces import RouteTrace
from rollouts_gwapi_plugin.embedded.load import Answer

SIGMAS = 3.0
# A share of fewer requests than this says nothing.
MIN_REQUESTS = 20
# Of several names: two of them say the same twice.
PAIR = 2

# How often a request, by its id, arrived at the pods of a name.
Times = Callable[[str, str], int]


@dataclass(frozen=True)
class Stage:
    """A stretch of time; `asked` is by cohort, times are the load's.

    One that was not `held` was only passed through, and is not measured. `reads` and `writes` are the plugin's since
    the stage before, `routes` and `ledger` what stood on the API at its end.
    """

    name: str
    asked: Mapping[str, Asked]
    since: float
    until: float
    held: bool = True
    reads: int = 0
    writes: int = 0
    routes: tuple[RouteTrace, ...] = ()
    ledger: int = 0


@dataclass(frozen=True)
class Share:
    """What one name got of one cohort's requests in one stage; `copies` were mirrored to it, not answered by it.

    `requests` are those with a good answer, `lost` the others.
    """

    stage: str
    cohort: str
    name: str
    asked: float
    requests: int
    hits: int
    lost: int = 0
    copies: bool = False

    @property
    def measured(self) -> float:
        """The name's share of the requests."""
        return self.hits / self.requests if self.requests else 0.0

    @property
    def tolerance(self) -> float:
        """How far off the measured share may be."""
        return SIGMAS * sqrt(self.asked * (1 - self.asked) / self.requests) if self.requests else 0.0

    @property
    def problem(self) -> str:
        """What is wrong, empty if nothing is."""
        where = f"{self.stage}, {self.cohort}"
        if self.requests < MIN_REQUESTS:
            return f"{where}: only {self.requests} requests were measured, {MIN_REQUESTS} are needed"
        # A share is a fraction of floats: 0.2 of 100 requests is not exactly 20.
        if abs(self.measured - self.asked) > self.tolerance + 1e-9:
            what = "were copied to" if self.copies else "met"
            return (
                f"{where}: {self.measured:.1%} of {self.requests} requests {what} {self.name}, "
                f"asked were {self.asked:.1%} ± {self.tolerance:.1%}"
            )
        return ""


def measure(stage: Stage, cohort: str, answers: Iterable[Answer], version: str, times: Times) -> list[Share]:
    """Measure what one cohort got in a stage: a `Share` for each name that was asked for, or answered unasked.

    Of a pair of versions only the new one's share is given, the other's follows from it.
    """
    inside = [
        answer
        for answer in answers
        if answer.cohort == cohort and answer.sent >= stage.since and answer.done < stage.until
    ]
    good = [answer for answer in inside if not answer.lost]
    asked = stage.asked[cohort]

    def row(name: str, part: float, hits: int, *, copies: bool = False) -> Share:
        return Share(stage.name, cohort, name, part, len(good), hits, len(inside) - len(good), copies)

    def answered(name: str) -> int:
        return sum(name in {answer.backend, answer.service} for answer in good)

    def copied(name: str) -> int:
        return sum(times(name, answer.request_id) > (answer.backend == name) for answer in good)

    return [
        *(row(name, asked.shares.get(name, 0.0), answered(name)) for name in _told(asked, good, version)),
        *(row(name, part, copied(name), copies=True) for name, part in asked.copies.items()),
    ]


def _told(asked: Asked, good: list[Answer], version: str) -> list[str]:
    names = list(dict.fromkeys([*asked.shares, *sorted({answer.backend for answer in good}), version]))
    if len(names) == PAIR and version in names:
        return [version]
    return [name for name in names if name]


def lasting(stages: Sequence[Stage], cohort: str) -> list[Stage]:
    """Return the longer stretches, over several stages and all between them, in which the cohort saw no change."""
    runs: list[list[Stage]] = []
    for stage in stages:
        if runs and runs[-1][-1].asked[cohort] == stage.asked[cohort]:
            runs[-1].append(stage)
        else:
            runs.append([stage])
    spans = []
    for run in runs:
        names = [stage.name for stage in run if stage.held]
        if len(set(names)) > 1:
            spans.append(replace(run[0], name=f"{names[0]} to {names[-1]}", until=run[-1].until))
    return spans


def curve(found: Iterable[tuple[float, bool]], width: float) -> list[tuple[float, float]]:
    """Return a share over time, of (time, hit) pairs, in bins of a width in seconds; empty bins are left out."""
    bins: dict[int, list[bool]] = {}
    for at, hit in found:
        bins.setdefault(int(at / width), []).append(hit)
    return [((index + 0.5) * width, sum(hits) / len(hits)) for index, hits in sorted(bins.items())]
