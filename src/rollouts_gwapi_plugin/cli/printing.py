"""How commands print: tables and colours for a terminal, the same text for a pipe, JSON for machines."""

import difflib
import json
import sys
from collections.abc import Iterable
from typing import Any, Final

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rollouts_gwapi_plugin.model.base import JsonObject

# A pipe has no width: nothing is to be wrapped or cut there, a script may read it.
WIDTH_WITHOUT_TERMINAL: Final = 10_000
# What only the API server writes is no part of a difference.
_UNTOLD: Final = frozenset({"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"})
_DIFF_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


def console() -> Console:
    """Return a console on standard output."""
    found = Console(highlight=False, emoji=False, markup=False)
    if found.is_terminal:
        return found
    return Console(highlight=False, emoji=False, markup=False, width=WIDTH_WITHOUT_TERMINAL)


def table(*headings: str) -> Table:
    """Return an empty table without lines, which a terminal's width may wrap and a pipe's does not."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        made.add_column(heading.upper(), overflow="fold")
    return made


def print_json(value: Any) -> None:
    """Print a JSON value."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def difference(before: JsonObject, after: JsonObject) -> str:
    """Return a unified diff of two states of an object, status and the server's own fields left out; empty: none.

    Keys are sorted, as kubectl prints them: their order says nothing.
    """
    lines = difflib.unified_diff(_lines(before), _lines(after), "before", "after", lineterm="", n=3)
    return "\n".join(list(lines)[2:])


def show_difference(to: Console, text: str) -> None:
    """Print a diff in its colours."""
    for line in text.splitlines():
        to.print(Text(f"    {line}", style=_DIFF_STYLES.get(line[:1], "")), soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """Return a number with what is counted, in the right form."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def joined(parts: Iterable[str], none: str = "-") -> str:
    """Return the parts in one cell."""
    return ", ".join(parts) or none


def _lines(value: JsonObject) -> list[str]:
    metadata = {key: field for key, field in (value.get("metadata") or {}).items() if key not in _UNTOLD}
    told = {**{key: field for key, field in value.items() if key != "status"}, "metadata": metadata}
    return yaml.safe_dump(told, sort_keys=True, allow_unicode=True, width=120).splitlines()
