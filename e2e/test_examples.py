"""What the READMEs of examples/ tell their reader to type is typed here, on the local cluster, under traffic."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.settings import REPOSITORY
from e2e.load.graph import Picture, draw
from e2e.load.record import Record
from e2e.load.traffic import SIGMAS, wrong_share
from e2e.runner.case import CASES, read
from e2e.runner.received import UNDER_WAY
from e2e.runner.report import asked
from e2e.runner.target import LocalTarget, Target
from e2e.test_cases import TELLINGS
from e2e.walkthrough import CHANGE_SECONDS, TEMPLATES, Example, Walk, walk

OUT = REPOSITORY / "out" / "e2e"
# Fewer say little; a weight that stands for 30 seconds has more.
ENOUGH_REQUESTS = 100
OLD, NEW = "old", "new"
# What the demo's files call the two.
NAMES = {"blue": OLD, "v1": OLD, "yellow": NEW, "v2": NEW, **{name: name for name in TEMPLATES}}

# Which weights the reader of each README sees, in the column after the backends' names.
SHOWN = {
    "canary": ["100,0", "80,20", "50,50", "0,100", "100,0"],
    "tcp": ["100,0", "75,25", "50,50", "0,100", "100,0"],
    "tls": ["100,0", "75,25", "50,50", "0,100", "100,0"],
    "grpc": [],
    "header-routing": [],
    "multi-route": [],
    "experiment": [],
    "mirror": [],
}
# Argo Rollouts 1.9 refuses mirror steps with a plugin.
NEED_NEWER = {"mirror"}
# What the Argo Rollouts controller may do wrong by itself, as the case of that name knows it.
AGAIN = {"experiment": "experiment"}


@dataclass(frozen=True)
class State:
    """The route for a while: the canary's percent, and what it has beside that."""

    began: float
    ended: float
    percent: float
    beside: str  # what the route has beside the weights: testers, shadow, experiment; or nothing
    after: bool  # the new version had everything before

    @property
    def name(self) -> str:
        """Its name in the demo's file."""
        return f"weight {self.percent:g}" + (f", {self.beside}" if self.beside else "")


@pytest.mark.e2e
@pytest.mark.timeout(900, func_only=True)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.newer_controller] if name in NEED_NEWER else []) for name in SHOWN]
)
def test_example(name: str, target: Target, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The walkthrough does what it says: weights and testers' rules as its demo has them, and no request fails."""
    if not isinstance(target, LocalTarget):
        pytest.skip("the README's own cluster is kind; this test plays it on the local cluster")
    if name in NEED_NEWER and "rollouts-1.10" not in target.can:
        target = request.getfixturevalue("newer_target")
    for telling in range(TELLINGS):
        try:
            _play(Example(name), target, tmp_path / str(telling))
        except (AssertionError, TimeoutError):
            if telling == TELLINGS - 1 or not _controllers_own_fault(name, target):
                raise
        else:
            return


def _controllers_own_fault(name: str, target: LocalTarget) -> bool:
    if name not in AGAIN:
        return False
    known = read(CASES / AGAIN[name] / "case.yaml").again
    assert known is not None
    return re.search(known.log.replace("${NAMESPACE}", Example(name).namespace), target.controller_log()) is not None


def _play(example: Example, target: LocalTarget, scratch: Path) -> None:
    scratch.mkdir()
    shown = SHOWN[example.name]
    with walk(example, target, scratch) as walked:
        folder = OUT / f"examples-{example.name}"
        folder.mkdir(parents=True, exist_ok=True)
        line = [(at, asked(state, example.canary)) for at, state in walked.states]
        picture = Picture(f"examples/{example.name}", walked.traffic.records, line, [(walked.began, "new version")])
        draw(picture, folder / "traffic.svg")

        assert walked.traffic.losses() == []
        if shown:
            lines = [line.split()[1] for line in (scratch / "watch").read_text().splitlines()]
            assert [weights for weights, _ in groupby(lines)] == ["WEIGHTS", *shown]
        for part in example.demo["cohorts"]:
            judged = list(_judge(walked, _judged_with(part, example), part.get("expect", {})))
            assert {state.percent for state in judged} >= example.weights, judged
            assert {state.name for state in judged} >= set(part.get("expect", {})), judged
            assert set(_versions(walked.traffic.window(part["name"], walked.promoted))) == {NEW}
            if "copies" in part:
                _judge_copies(walked, part["name"], part["copies"])


def _judge_copies(walked: Walk, cohort: str, expect: dict[str, dict[str, float]]) -> None:
    """Check how many of the cohort's requests were copied at weight 0."""
    received, sent = walked.copies[cohort]
    (percent,) = expect["weight 0, shadow"].values()
    assert sent >= ENOUGH_REQUESTS
    allowed = UNDER_WAY + SIGMAS * math.sqrt(sent * percent / 100 * (1 - percent / 100)) if percent else 0
    assert abs(received - sent * percent / 100) <= allowed, (cohort, received, sent)


def _judged_with(part: dict[str, Any], example: Example) -> list[str]:
    """Return the cohorts whose answers are judged together with this one's.

    Envoy deals a rule's turns out one by one: of two cohorts that ask by turns, at 50 % each meets one version alone.
    """
    return [
        other["name"] for other in example.demo["cohorts"] if other is part or {"copies"} <= other.keys() & part.keys()
    ]


def _judge(walked: Walk, cohorts: list[str], expect: dict[str, dict[str, float]]) -> Iterator[State]:
    """Check the cohorts' share in each state that stood long enough; yield those."""
    for state in _states(walked):
        ends = (state.began + CHANGE_SECONDS, state.ended - CHANGE_SECONDS)
        window = [record for cohort in cohorts for record in walked.traffic.window(cohort, *ends)]
        # At 100 % the Services change their pods.
        if len(window) < ENOUGH_REQUESTS or state.percent == 100.0:
            continue
        share = {OLD: 100 - state.percent, NEW: state.percent}
        if state.name in expect:
            # Beside the versions the demo names a Service.
            share = {NAMES[name]: percent for name, percent in expect[state.name].items() if name in NAMES}
        if state.after:
            share = {NEW: 100}
        exact = len(walked.example.demo["cohorts"]) == 1
        assert wrong_share(_versions(window), share, exact=exact) == "", (cohorts, state)
        yield state


def _states(walked: Walk) -> Iterator[State]:
    """Give the watched route's states, those that differ in nothing but status put together."""
    seen = [(at, asked(route, walked.example.canary), _beside(route)) for at, route in walked.states]
    groups = [(key, next(items)[0]) for key, items in groupby(seen, key=lambda item: item[1:])]
    ends = [began for _, began in groups[1:]] + [walked.traffic.records[-1].ended]
    after = False
    for ((percent, beside), began), ended in zip(groups, ends, strict=True):
        yield State(began, ended, percent, beside, after)
        after = after or percent == 100.0


def _beside(route: dict[str, Any]) -> str:
    rules = route.get("spec", {}).get("rules", [])
    names = {str(rule.get("name", "")).removesuffix("-1") for rule in rules}
    backends = [ref["name"] for rule in rules for ref in rule.get("backendRefs", [])]
    if any(name.endswith("-baseline") for name in backends):
        return "experiment"
    return next((name for name in ("testers", "shadow") if name in names), "")


def _versions(records: list[Record]) -> Counter[str]:
    """Count by template or revision: not every example's image says which version it is."""
    good = (record for record in records if not record.error)
    return Counter(
        record.version if record.version in TEMPLATES else OLD if record.revision == 1 else NEW for record in good
    )
