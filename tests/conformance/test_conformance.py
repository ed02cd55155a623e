"""The embedded API server answers what the real kube-apiserver answers.

`CONFORMANCE_KUBECONFIG=FILE pytest tests/conformance` runs the same stories against the cluster of that kubeconfig;
with `CONFORMANCE_RECORD=1` its answers are written down as the ones to expect.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

_HERE = Path(__file__).parent
_CASES = {
    f"{file.stem}: {case['title']}": (file.stem, case)
    for file in sorted((_HERE / "cases").glob("*.yaml"))
    for case in yaml.safe_load(file.read_text(encoding="utf-8"))
}


@pytest.mark.go
@pytest.mark.parametrize(("topic", "case"), _CASES.values(), ids=_CASES.keys())
def test_answers_are_the_real_ones(topic: str, case: dict[str, Any], teller: Any, record: bool) -> None:  # noqa: FBT001 - a fixture
    """Each request of the story has the answer that the real API server gave."""
    file = _HERE / "answers" / f"{topic}.yaml"
    known = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}

    answers = teller.tell(case)

    if record:
        text = yaml.safe_dump(known | {case["title"]: answers}, width=120, allow_unicode=True)
        file.write_text(text, encoding="utf-8")
        return
    for number, (actual, expected) in enumerate(zip(answers, known[case["title"]], strict=True)):
        assert actual == expected, f"step {number}: {case['steps'][number]['request']}"
