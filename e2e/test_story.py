"""How a case is told, on a cluster that is played: what is judged, what is refused, what is cleaned up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError

from e2e import test_cases
from e2e.cluster.process import CommandFailed
from e2e.load.traffic import Traffic
from e2e.runner import report, story
from e2e.runner.actions import Scene
from e2e.runner.api import Api, ApiTrouble
from e2e.runner.case import CASES, Case, read
from e2e.runner.expectations import Before
from e2e.runner.target import Target
from e2e.runner.telling import Telling

pytestmark = pytest.mark.e2e_short

FULFILLED: list[str] = []
SHARES = {"plain": {"v1": 100.0}}


@dataclass
class Cluster:
    """A cluster that only takes commands; kubectl refuses kinds that are not served, as it does."""

    served: tuple[str, ...] = story.ROUTES
    broken: str = ""
    commands: list[list[str]] = field(default_factory=list)
    can: frozenset[str] = frozenset({"count"})
    image: str = "echo"
    gateway_class: str = "eg"
    exact: bool = True
    log: str = ""

    def controller_log(self) -> str:
        """Give what the controller logged, about the namespace that was made first."""
        return self.log.replace("NAMESPACE", self.commands[0][3])

    def api(self) -> None:
        """Nobody reads objects here."""

    def address(self) -> str:
        """Nobody asks there."""
        return "127.0.0.1"

    def values(self) -> dict[str, str]:
        """Nothing is configured."""
        return {}

    def run(self, command: Sequence[str], *, text: str | None = None) -> str:
        """Note the command, or refuse it."""
        del text
        if "--all" in command:
            for kind in command[4].split(","):
                if kind not in self.served:
                    raise CommandFailed(f'error: the server doesn\'t have a resource type "{kind}"')
            if self.broken:
                raise CommandFailed(self.broken)
        self.commands.append(list(command))
        return ""


def _case(**stage: Any) -> Case:
    return Case.model_validate(
        {
            "name": "played",
            "folder": CASES,
            "description": "played",
            "setup": {"name": "first"},
            "load": [{"name": "plain"}],
            "stages": [{"name": "second", **stage}],
        }
    )


def _scene(cluster: Cluster, case: Case) -> Scene:
    return Scene(case, cast("Target", cluster), cast("Api", None), "shop", {})


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[list[str] | ApiTrouble]:
    """Give the list of what the next looks at the stage's expectations find; traffic is as it should be."""
    found: list[list[str] | ApiTrouble] = []

    def look(*_: object) -> list[str]:
        seen = found.pop(0)
        if isinstance(seen, ApiTrouble):
            raise seen
        return seen

    monkeypatch.setattr(story, "unfulfilled", look)
    monkeypatch.setattr(story, "remember", lambda *_: Before(0, 0, {}))
    monkeypatch.setattr(story, "_settle", lambda *_: None)
    return found


def _tell(
    case: Case, monkeypatch: pytest.MonkeyPatch, received: list[str], cluster: Cluster | None = None
) -> list[str]:
    monkeypatch.setattr(story, "wrong_received", lambda *_: received.pop(0))
    telling = Telling(case, "shop", 0.0, exact=False, traffic=Traffic(Path()))
    story._tell_stage(_scene(cluster or Cluster(), case), case.stages[0], telling)
    return telling.findings


@pytest.mark.parametrize("then", [["no longer so"], ApiTrouble("away")])
def test_what_was_received_on_the_way_is_no_finding(
    looks: list[list[str] | ApiTrouble], monkeypatch: pytest.MonkeyPatch, then: list[str] | ApiTrouble
) -> None:
    """A state that has passed when the counters were read is waited for again; only what stands is judged."""
    looks += [FULFILLED, then, FULFILLED, FULFILLED]
    case = _case(expect={"traffic": SHARES, "received": SHARES})

    assert _tell(case, monkeypatch, ["v1 received 3", ""]) == []
    assert looks == []


def test_what_was_received_in_the_end_is_a_finding(
    looks: list[list[str] | ApiTrouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the pods received in a state that stands is judged."""
    looks += [FULFILLED, FULFILLED]
    case = _case(expect={"traffic": SHARES, "received": SHARES})

    assert _tell(case, monkeypatch, ["v1 received 3"]) == ["stage 'second', cohort plain: v1 received 3"]


def test_what_can_not_be_counted_is_left_out(
    looks: list[list[str] | ApiTrouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where pods' counters are out of reach, the answers' shares alone are judged."""
    looks += [FULFILLED, FULFILLED]
    case = _case(expect={"traffic": SHARES, "received": SHARES})

    assert _tell(case, monkeypatch, ["v1 received 0"], Cluster(can=frozenset())) == []


def test_what_would_never_be_judged_is_refused() -> None:
    """A stage can't expect what pods received without the traffic's shares, and setup none of both."""
    with pytest.raises(ValidationError, match="`received` is judged after `traffic`"):
        _case(expect={"received": SHARES})
    fine = _case().model_dump()
    with pytest.raises(ValidationError, match="`setup` comes before the traffic"):
        Case.model_validate({**fine, "setup": {"name": "first", "expect": {"traffic": SHARES}}})


@pytest.mark.parametrize("path", sorted(CASES.parent.glob("*/*/case.yaml")), ids=lambda path: path.parent.name)
def test_cases_can_be_read(path: Path) -> None:
    """Each case file says only what a case may say."""
    assert read(path).name == path.parent.name


def test_only_served_kinds_are_deleted() -> None:
    """A cluster without some kinds of route is cleaned up, too: the others' routes go, then the namespace."""
    cluster = Cluster(served=("httproutes", "grpcroutes", "tlsroutes"))

    with story._namespace(_scene(cluster, _case())):
        pass

    assert [command[3:5] for command in cluster.commands[1:2]] == [["delete", "httproutes,grpcroutes,tlsroutes"]]
    assert cluster.commands[-1][1:4] == ["delete", "namespace", "shop"]


def test_a_failed_clean_up_hides_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What went wrong in a stage is told beside what went wrong after it."""
    cluster = Cluster(broken="error: no end after 180 s")
    monkeypatch.setattr(story, "_tell_in_namespace", _wait_in_vain)
    monkeypatch.setattr(report, "explain", lambda *_: "explained")

    telling = story.tell(_case(), cast("Target", cluster), tmp_path)

    assert telling.findings == [
        "stage 'before the first stage': in vain",
        "before the story, or cleaning up after it: error: no end after 180 s",
    ]
    assert telling.explanation == "explained"


def _wait_in_vain(*_: object) -> None:
    raise TimeoutError("in vain")


LOST = "New weights: Additional:[]WeightDestination{WeightDestination{Weight:5,ServiceName:,},} namespace=NAMESPACE x"


@pytest.mark.parametrize(("log", "again"), [(LOST, True), (LOST.replace("ServiceName:", "ServiceName:web"), False)])
def test_the_controllers_own_fault_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: str, *, again: bool
) -> None:
    """A case that failed is to be told again only if the controller's log has the line that the case knows."""
    known = read(CASES / "experiment" / "case.yaml").again
    monkeypatch.setattr(story, "_tell_in_namespace", _wait_in_vain)
    monkeypatch.setattr(report, "explain", lambda *_: "explained")

    telling = story.tell(_case().model_copy(update={"again": known}), cast("Target", Cluster(log=log)), tmp_path)

    assert telling.again is again
    assert ("to be told again: the controller lost" in report.summary(telling)) is again


@pytest.mark.parametrize(("outcomes", "passes"), [("gr", True), ("gggg", False), ("w", False), ("gw", False)])
def test_only_the_controllers_own_fault_is_told_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcomes: str, *, passes: bool
) -> None:
    """A telling that went wrong is the end, unless the controller's own fault (g) was seen; all are in the summary."""
    kinds = {"r": ([], False), "w": (["wrong"], False), "g": (["wrong"], True)}
    tellings = [Telling(_case(), "shop", 0.0, True, findings=kinds[one][0], again=kinds[one][1]) for one in outcomes]
    monkeypatch.setattr(test_cases, "tell", lambda *_: tellings.pop(0))
    told: list[object] = []

    try:
        test_cases.told_right(_case(), cast("Target", Cluster()), tmp_path / "out", lambda _, text: told.append(text))
    except pytest.fail.Exception:
        passed = False
    else:
        passed = True

    assert passed is passes
    assert len(told) == len(outcomes)
    assert tellings == []


def test_other_trouble_with_the_routes_is_told() -> None:
    """A deletion that fails for another reason is not taken for a kind that is not served."""
    cluster = Cluster(broken="error: forbidden")

    with pytest.raises(CommandFailed, match="forbidden"):
        story._delete_routes(_scene(cluster, _case()))
