"""What the demo measures: shares of stages and of longer spans, copies, curves."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rollouts_gwapi_plugin.cli.demo.asked import Asked
from rollouts_gwapi_plugin.cli.demo.measure import MIN_REQUESTS, Share, Stage, curve, lasting, measure
from rollouts_gwapi_plugin.embedded.load import Answer


def answers(old: int, new: int, lost: int = 0, since: float = 0.0) -> list[Answer]:
    """Return so many answers of both versions; ids are `0`, `1`, …."""
    backends = ["old"] * old + ["new"] * new + [""] * lost
    return [
        Answer(
            "all", since + index * 0.001, 0.01, 200 if name else 503, name, service=f"to-{name}", request_id=str(index)
        )
        for index, name in enumerate(backends)
    ]


def stage(asked: Mapping[str, float], copies: Mapping[str, float] | None = None) -> Stage:
    """Return a stage from 0 to 99 s."""
    return Stage("x", {"all": Asked(asked, copies or {})}, 0.0, 99.0)


def never(name: str, request_id: str) -> int:
    """Say that no request arrived anywhere a second time."""
    del name, request_id
    return 0


def measured(found: Stage, taken: list[Answer]) -> list[Share]:
    """Measure the only cohort."""
    return measure(found, "all", taken, "new", never)


@pytest.mark.parametrize(
    ("asked", "old", "new", "right"),
    [
        (0.2, 80, 20, True),
        (0.2, 69, 31, True),  # 2.75 sigma
        (0.2, 67, 33, False),  # 3.25 sigma
        (0.2, 93, 7, False),
        (0.0, 1000, 0, True),
        (0.0, 999, 1, False),
        (1.0, 0, 1000, True),
        (1.0, 1, 999, False),
        (0.5, MIN_REQUESTS // 2 - 1, MIN_REQUESTS // 2, False),  # too few to judge
    ],
)
def test_three_sigma(asked: float, old: int, new: int, *, right: bool) -> None:
    """A share is right within three sigma of its requests, exact at none and all, and wrong without enough requests."""
    (share,) = measured(stage({"old": 1 - asked, "new": asked}), answers(old, new))

    assert (share.name, share.requests, share.hits) == ("new", old + new, new)
    assert (share.problem == "") == right


def test_only_requests_inside_a_stage_count() -> None:
    """Requests that began before the stage, or were answered after it, and other cohorts' say nothing about it."""
    taken = answers(30, 0, lost=2, since=10.0)
    outside = [Answer("all", 9.9, 0.5, 200, "new"), Answer("all", 19.9, 0.5, 200, "new")]
    others = [replace(answer, cohort="others", backend="new") for answer in taken]
    (share,) = measured(replace(stage({"old": 1.0}), since=10.0, until=20.0), [*taken, *outside, *others])

    assert (share.requests, share.hits, share.lost) == (30, 0, 2)


def test_an_answer_from_where_nothing_was_asked() -> None:
    """Of more than a pair each has its share, and one that should get nothing is wrong with a single answer."""
    taken = [*answers(70, 25), *([Answer("all", 1.0, 0.01, 200, "ghost")] * 5)]
    shares = measured(stage({"old": 0.75, "new": 0.25}), taken)

    assert [(share.name, share.asked, share.hits, share.problem == "") for share in shares] == [
        ("old", 0.75, 70, True),
        ("new", 0.25, 25, True),
        ("ghost", 0.0, 5, False),
    ]
    assert "met ghost, asked were 0.0%" in shares[-1].problem


def test_a_service_by_its_name() -> None:
    """A Service's share is what the gateway sent through it, whatever pods are behind."""
    shares = measured(stage({"old": 0.8, "to-new": 0.2}), answers(80, 20))

    assert [(share.name, share.hits) for share in shares] == [("old", 80), ("to-new", 20), ("new", 20)]


def test_copies() -> None:
    """A copy is an arrival that was no answer: one more than the answer where the same pods gave that."""
    arrivals = {("new", str(index)): 1 for index in range(30)} | {("new", str(index)): 2 for index in range(90, 95)}

    def times(name: str, request_id: str) -> int:
        direct = int(name == "new" and 80 <= int(request_id) < 100)
        return arrivals.get((name, request_id), direct)

    found = stage({"old": 0.8, "new": 0.2}, {"new": 0.3, "old": 0.0})
    shares = measure(found, "all", answers(80, 20), "new", times)

    assert [(share.name, share.copies, share.hits) for share in shares] == [
        ("new", False, 20),
        ("new", True, 35),
        ("old", True, 0),
    ]
    assert [share.problem for share in shares] == ["", "", ""]
    (none_asked,) = [
        share
        for share in measure(stage({"old": 1.0}, {"new": 0.0}), "all", answers(80, 0), "new", times)
        if share.copies
    ]
    assert "37.5% of 80 requests were copied to new" in none_asked.problem


def test_longer_spans() -> None:
    """Stages in which a cohort saw the same are one span with what lies between; a change between them ends it."""
    zero, some, full = ({"all": Asked({"new": part})} for part in (0.0, 0.2, 1.0))
    stages = [
        Stage("a", zero, 0.0, 1.0),
        Stage("b", zero, 2.0, 3.0),
        Stage("passing", some, 3.0, 3.1, held=False),
        Stage("c", full, 4.0, 5.0),
        Stage("passing", full, 5.0, 5.1, held=False),
        Stage("d", full, 6.0, 7.0),
        Stage("e", some, 7.0, 8.0),
        Stage("passing", full, 8.0, 8.1, held=False),
        Stage("e", some, 9.0, 9.5),
    ]

    spans = [(span.name, span.since, span.until) for span in lasting(stages, "all")]
    assert spans == [("a to b", 0.0, 3.0), ("c to d", 4.0, 7.0)]


def test_curve() -> None:
    """The curve has the share of each bin, without empty bins."""
    assert curve([(0.1, True), (0.2, False), (5.5, True)], 1.0) == [(0.5, 0.5), (5.5, 1.0)]
