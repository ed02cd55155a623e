"""Every folder below e2e/cases with a case.yaml is a test: the case, told on the chosen cluster."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from e2e.cluster.settings import REPOSITORY
from e2e.runner import report
from e2e.runner.case import CASES, Case, read
from e2e.runner.story import tell
from e2e.runner.target import LocalTarget, Target
from e2e.runner.telling import Telling

# The controller's own fault was seen in two of five tellings, beside other work on the machine.
TELLINGS = 4
OUT = REPOSITORY / "out" / "e2e"
NEWER = "rollouts-1.10"
EXPERIMENTAL = "experimental"


def _parameters() -> list[ParameterSet]:
    found = []
    for path in sorted(CASES.glob("*/case.yaml")):
        case = read(path)
        if EXPERIMENTAL in case.needs:  # test_channels.py has those
            continue
        marks = [pytest.mark.e2e_short] if case.short else []
        marks += [pytest.mark.newer_controller] if NEWER in case.needs else []
        found.append(pytest.param(path, id=case.name, marks=marks))
    return found


@pytest.mark.e2e
@pytest.mark.timeout(900, func_only=True)
@pytest.mark.parametrize("path", _parameters())
def test_case(
    path: Path, target: Target, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """The case goes as its file says, its shares are right, and no request fails that need not."""
    case = read(path)
    if isinstance(target, LocalTarget) and NEWER in set(case.needs) - target.can:
        target = request.getfixturevalue("newer_target")
    missing = sorted(set(case.needs) - target.can)
    if missing:
        pytest.skip(f"{case.name}: the cluster {target.name!r} can't {', '.join(missing)}")
    told_right(case, target, OUT / case.name, record_property)


def told_right(case: Case, target: Target, folder: Path, record_property: Callable[[str, object], None]) -> None:
    """Tell the case, leave its report in the folder, and fail if anything was wrong."""
    telling = _tell(case, target, folder, record_property)
    for _ in range(TELLINGS - 1):
        if telling.again:
            telling = _tell(case, target, folder, record_property)
    if telling.findings:
        pytest.fail(f"{report.summary(telling)}\n{telling.explanation}", pytrace=False)


def _tell(case: Case, target: Target, folder: Path, record_property: Callable[[str, object], None]) -> Telling:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    telling = tell(case, target, folder)
    text = report.summary(telling)
    record_property("summary", text)
    (folder / "summary.txt").write_text(text + "\n")
    return telling
