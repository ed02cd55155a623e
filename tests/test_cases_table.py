"""tests/README.md says which test holds which public case and invariant; this keeps it true.

Each row's paths must exist, each case and invariant must have a row, and a test that names a case must be in its row.
"""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import pytest
import yaml

TESTS: Final = Path(__file__).parent
REFERENCE: Final = TESTS.parent / "docs" / "reference"
CASE: Final = re.compile(r"\b[CF]\d{2,3}\b")
# Of a case of the other sections it is never enough to say that it is not built.
WISHES: Final = "F"


def _rows() -> dict[str, str]:
    """Return what each row of the tables says after its number."""
    lines = (TESTS / "README.md").read_text().splitlines()
    found = re.findall(r"^\| ([A-Z]\d+) \| (.*) \|$", "\n".join(lines), re.MULTILINE)
    numbers = [number for number, _ in found]
    assert len(numbers) == len(set(numbers)), "a number has two rows"
    return dict(found)


def _cases() -> list[str]:
    return re.findall(r"^([CF]\d+) ", (REFERENCE / "cases.md").read_text(), re.MULTILINE)


def _invariants() -> list[str]:
    text = (REFERENCE / "semantics.md").read_text().partition("## 7.")[2]
    lines = [line for line in text.splitlines() if re.match(r"[A-Z]\d ", line)]
    # Some lines hold two: `X1 … X2 …`.
    return [number for line in lines for number in re.findall(r"(?:^|\. )([A-Z]\d) ", line)]


def _held_by(row: str) -> list[str]:
    return re.findall(r"`([^`]+)`", row)


def _functions(file: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield node


def _exists(held: str) -> bool:
    """Whether there is such a test: a function of a file, a file, or a folder with a case."""
    path, _, function = held.partition("::")
    if function:
        file = TESTS / path
        return file.is_file() and function in {node.name for node in _functions(file)}
    if path.endswith(".py"):
        return (TESTS / path).is_file()
    found = list(TESTS.glob(path)) if "*" in path else [(TESTS / path).resolve()]
    return any((folder / name).is_file() for folder in found for name in ("call.yaml", "case.yaml"))


def _naming_tests() -> Iterator[tuple[str, str]]:
    """Yield each case that a test names, with the test."""
    for file in sorted((TESTS / "routes" / "cases").glob("*/*/*/call.yaml")):
        for number in yaml.safe_load(file.read_text()).get("cases", []):
            yield number, str(file.parent.relative_to(TESTS))
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in _functions(file):
            for number in CASE.findall(ast.get_docstring(node) or ""):
                yield number, f"{file.relative_to(TESTS)}::{node.name}"


def test_every_case_and_invariant_has_a_row() -> None:
    """The tables hold just the numbers of the reference pages."""
    cases, invariants = _cases(), _invariants()

    assert len(cases) > 100
    assert {"W1", "M4", "V2", "X1", "X2", "G2", "K1"} <= set(invariants)
    assert set(_rows()) == {*cases, *invariants}


@pytest.mark.parametrize(("number", "row"), list(_rows().items()))
def test_a_row_names_tests_that_exist(number: str, row: str) -> None:
    """Each path of a row is a test that is there; only a wish may have none."""
    held = _held_by(row)

    assert not [item for item in held if not _exists(item)]
    assert held or number.startswith(WISHES)
    assert "Not built" not in row or number.startswith(WISHES)


def test_a_test_that_names_a_case_is_in_its_row() -> None:
    """A test that is added for a case is found by the case."""
    rows = _rows()
    lost = [
        f"{number}: {test}"
        for number, test in _naming_tests()
        if not any(fnmatch(test, held) for held in _held_by(rows.get(number, "")))
    ]

    assert not lost
