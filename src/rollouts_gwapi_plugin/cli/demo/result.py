"""What a play has measured, and what was wrong with it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rollouts_gwapi_plugin.cli.demo.examples import Example
from rollouts_gwapi_plugin.cli.demo.measure import Share, Stage, Times, lasting, measure
from rollouts_gwapi_plugin.cli.demo.stages import Recorder
from rollouts_gwapi_plugin.embedded.load import Answer


@dataclass(frozen=True)
class Result:
    """`stages` are all, also those only passed through; `shares` are those of the held ones, `lasting` of longer spans.

    `copies` has the name of pods and the answer of each request that was mirrored to them.
    """

    example: Example
    stages: tuple[Stage, ...]
    shares: tuple[Share, ...]
    lasting: tuple[Share, ...]
    answers: tuple[Answer, ...]
    copies: tuple[tuple[str, Answer], ...]
    start_seconds: float
    problems: tuple[str, ...]

    @property
    def lost(self) -> list[Answer]:
        """Requests without a good answer."""
        return [answer for answer in self.answers if answer.lost]


def conclude(
    recorder: Recorder, answers: Sequence[Answer], times: Times, start_seconds: float, problems: Sequence[str]
) -> Result:
    """Measure all stages of a play; `times` says how often a request arrived at the pods of a name."""
    example, stages = recorder.example, recorder.stages
    held = [stage for stage in stages if stage.held]
    version, cohorts = example.new_version, [cohort.name for cohort in example.cohorts]
    shares = [one for stage in held for cohort in cohorts for one in measure(stage, cohort, answers, version, times)]
    spans = [
        one
        for cohort in cohorts
        for stage in lasting(stages, cohort)
        for one in measure(stage, cohort, answers, version, times)
    ]
    lost = [answer for answer in answers if answer.lost]
    found = [
        *problems,
        *recorder.problems,
        *_missing(example, {stage.name for stage in held}),
        *(one.problem for one in (*shares, *spans) if one.problem),
        *([f"{len(lost)} requests were lost"] if lost else []),
    ]
    return Result(
        example=example,
        stages=tuple(stages),
        shares=tuple(shares),
        lasting=tuple(spans),
        answers=tuple(answers),
        copies=tuple(_copies(example, answers, times)),
        start_seconds=start_seconds,
        problems=tuple(dict.fromkeys(found)),
    )


def _missing(example: Example, stages: set[str]) -> list[str]:
    wanted = {stage for expectation in example.expectations.values() for stage in expectation.stages}
    return [f"the stage {stage!r} did not take place" for stage in sorted(wanted - stages)]


def _copies(example: Example, answers: Sequence[Answer], times: Times) -> list[tuple[str, Answer]]:
    """Return name and answer of each request that was copied to the pods of the name."""
    return [
        (name, answer)
        for cohort, expectation in example.expectations.items()
        for name in dict.fromkeys(name for copies in expectation.copies.values() for name in copies)
        for answer in answers
        if answer.cohort == cohort and times(name, answer.request_id) > (answer.backend == name)
    ]
