"""Every reason that the plugin gives is in the documentation."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import rollouts_gwapi_plugin

SOURCES = Path(rollouts_gwapi_plugin.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
# What makes a note, with its reason first.
MAKERS = {"Note", "left_out"}


def said() -> Iterator[str]:
    """Give the reason of each note in the source, where it is written there or is a constant."""
    trees = [[*ast.walk(ast.parse(path.read_text()))] for path in SOURCES.rglob("*.py")]
    everywhere = {name: text for nodes in trees for node in nodes for name, text in _assigned(node)}
    for nodes in trees:
        constants = everywhere | {name: text for node in nodes for name, text in _assigned(node)}
        for node in nodes:
            match node:
                case ast.Call(func=ast.Name(id=maker), args=[ast.Constant(value=str(reason)), *_]) if maker in MAKERS:
                    yield reason
                case ast.Call(func=ast.Name(id=maker), args=[ast.Name(id=name), *_]) if maker in MAKERS:
                    # What is no constant is a reason that was handed over, and is seen where it is given.
                    yield from [constants[name]] if name in constants else []


def _assigned(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))) if name.isupper():
            yield name, text
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text))) if name.isupper():
            yield name, text


def test_the_documentation_has_every_reason() -> None:
    """docs/metrics.md lists the reasons that the source has, and no others, each once."""
    text = PAGE.read_text().partition("\n## Events\n")[2]
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    in_log = re.findall(r"`([A-Z]\w+)`\s\(", text.partition("Only the log has these")[2])

    assert sorted({*said()}) == sorted([*rows, *in_log])
    assert rows == sorted(rows)
