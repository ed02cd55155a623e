"""Modules and functions stay short enough to be read at one sitting."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
MOST_LINES_OF_A_FILE: Final = 400
MOST_LINES_OF_A_FUNCTION: Final = 40
GENERATED: Final = "_generated"


def modules() -> Iterator[Path]:
    """Give the modules that people write."""
    for folder in ("src", "tests", "e2e", "packaging", "bench"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if GENERATED not in path.parts:
                yield path


def test_files_are_short() -> None:
    """No module has more than 400 lines."""
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}

    assert len(sizes) > 100
    assert {path: size for path, size in sizes.items() if size > MOST_LINES_OF_A_FILE} == {}


def test_functions_are_short() -> None:
    """No function has more than 40 lines, docstring and all."""
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MOST_LINES_OF_A_FUNCTION
    ]

    assert long == []
