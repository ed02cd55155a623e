"""What the READMEs of examples/ tell their reader to type is typed here, on the local cluster, under traffic."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

from e2e.cluster.settings import REPOSITORY
from e2e.load.graph import Picture, draw
from e2e.load.record import Record
from e2e.load.traffic import wrong_share
from e2e.runner.report import asked
from e2e.runner.target import LocalTarget, Target
from e2e.walkthrough import CHANGE_SECONDS, Example, Walk, walk

OUT = REPOSITORY / "out" / "e2e"
# Fewer say little; a weight that stands for 30 seconds has more.
ENOUGH_REQUESTS = 100
OLD, NEW = "old", "new"
# What the demo's files call the two.
NAMES = {"blue": OLD, "v1": OLD, "yellow": NEW, "v2": NEW}

# Which weights the reader of each README sees, in the column after the backends' names.
SHOWN = {
    "canary": ["100,0", "80,20", "50,50", "0,100", "100,0"],
    "tcp": ["100,0", "75,25", "50,50", "0,100", "100,0"],
    "tls": ["100,0", "75,25", "50,50", "0,100", "100,0"],
    "grpc": [],
    "header-routing": [],
    "multi-route": [],
}


@dataclass(frozen=True)
class State:
    """The route for a while: the canary's percent, and whether testers have a rule."""

    began: float
    ended: float
    percent: float
    testers: bool
    after: bool  # the new version had everything before

    @property
    def name(self) -> str:
        """Its name in the demo's file."""
        return f"weight {self.percent:g}" + (", testers" if self.testers else "")


@pytest.mark.e2e
@pytest.mark.timeout(900, func_only=True)
@pytest.mark.parametrize("name", SHOWN)
def test_example(name: str, target: Target, tmp_path: Path) -> None:
    """The walkthrough does what it says: weights and testers' rules as its demo has them, and no request fails."""
    if not isinstance(target, LocalTarget):
        pytest.skip("the README's own cluster is kind; this test plays it on the local cluster")
    example = Example(name)
    with walk(example, target, tmp_path) as walked:
        folder = OUT / f"examples-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        line = [(at, asked(state, example.canary)) for at, state in walked.states]
        picture = Picture(f"examples/{name}", walked.traffic.records, line, [(walked.began, "new version")])
        draw(picture, folder / "traffic.svg")

        assert walked.traffic.losses() == []
        if SHOWN[name]:
            shown = [line.split()[1] for line in (tmp_path / "watch").read_text().splitlines()]
            assert [weights for weights, _ in groupby(shown)] == ["WEIGHTS", *SHOWN[name]]
        for part in example.demo["cohorts"]:
            judged = list(_judge(walked, part["name"], part.get("expect", {})))
            assert {state.percent for state in judged} >= example.weights, judged
            assert {state.name for state in judged} >= set(part.get("expect", {})), judged
            assert set(_versions(walked.traffic.window(part["name"], walked.promoted))) == {NEW}


def _judge(walked: Walk, cohort: str, expect: dict[str, dict[str, float]]) -> Iterator[State]:
    """Check the cohort's share in each state that stood long enough; yield those."""
    for state in _states(walked):
        window = walked.traffic.window(cohort, state.began + CHANGE_SECONDS, state.ended - CHANGE_SECONDS)
        # At 100 % the Services change their pods.
        if len(window) < ENOUGH_REQUESTS or state.percent == 100.0:
            continue
        share = {OLD: 100 - state.percent, NEW: state.percent}
        if state.name in expect:
            share = {NAMES[version]: percent for version, percent in expect[state.name].items()}
        if state.after:
            share = {NEW: 100}
        exact = len(walked.example.demo["cohorts"]) == 1
        assert wrong_share(_versions(window), share, exact=exact) == "", (cohort, state)
        yield state


def _states(walked: Walk) -> Iterator[State]:
    """Give the watched route's states, those that differ in nothing but status put together."""
    seen = [(at, asked(route, walked.example.canary), "testers" in _rules(route)) for at, route in walked.states]
    groups = [(key, next(items)[0]) for key, items in groupby(seen, key=lambda item: item[1:])]
    ends = [began for _, began in groups[1:]] + [walked.traffic.records[-1].ended]
    after = False
    for ((percent, testers), began), ended in zip(groups, ends, strict=True):
        yield State(began, ended, percent, testers, after)
        after = after or percent == 100.0


def _rules(route: dict[str, object]) -> set[object]:
    spec = route.get("spec")
    rules = spec.get("rules", []) if isinstance(spec, dict) else []
    return {str(rule.get("name", "")).removesuffix("-1") for rule in rules}


def _versions(records: list[Record]) -> Counter[str]:
    """Count by revision: not every example's image says which version it is."""
    return Counter(OLD if record.revision == 1 else NEW for record in records if not record.error)
