"""Replace every source file below a folder by its bytecode. Runs inside the carried interpreter, standard library only.

Usage: `python compile_tree.py FOLDER PREFIX [--no-docstrings]`. The same sources give the same bytes: files are taken
in order, times are not recorded (an unchecked hash stands for the source), and PYTHONHASHSEED is fixed by the caller. A
traceback names files as PREFIX/relative/path.

Docstrings of foreign code are dropped: nobody reads them here, and they would be read into memory at each start.
Assertions stay, which `-OO` would drop with them.
"""

import ast
import importlib.util
import marshal
import sys
from pathlib import Path

# PEP 552: the magic number, a flag word that says "by hash, don't check it", the hash, the code.
UNCHECKED_HASH = (1).to_bytes(4, "little")


def without_docstrings(tree: ast.Module) -> ast.Module:
    """Take every docstring out of a program."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body[:1] = [] if len(node.body) > 1 else [ast.copy_location(ast.Pass(), first)]
    return tree


def compile_tree(folder: Path, prefix: str, *, docstrings: bool) -> None:
    """Compile and remove each `.py` file."""
    for source in sorted(folder.rglob("*.py")):
        text = source.read_bytes()
        tree = ast.parse(text)
        name = f"{prefix}{source.relative_to(folder)}"
        code = compile(tree if docstrings else without_docstrings(tree), name, "exec", dont_inherit=True, optimize=0)
        head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(text)
        source.with_suffix(".pyc").write_bytes(head + marshal.dumps(code))
        source.unlink()


if __name__ == "__main__":
    compile_tree(Path(sys.argv[1]), sys.argv[2], docstrings="--no-docstrings" not in sys.argv[3:])
