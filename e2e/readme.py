"""The commands of an example's README, as they stand there: indented lines below one heading, in order.

A line that ends in a backslash goes on in the next; lines of a list item's code are indented by four columns or more.
"""

import re
from pathlib import Path

_CODE = re.compile(r"^ {4,}\S")


def commands(path: Path, heading: str) -> list[str]:
    """Return the shell commands below the heading, up to the next heading of its level."""
    level = heading.split(maxsplit=1)[0]
    found: list[str] = []
    inside = goes_on = False
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            inside = line == heading or (
                inside and not re.match(rf"^{level} ", line) and len(line.split()[0]) > len(level)
            )
        elif inside and _CODE.match(line):
            text = line.strip()
            if goes_on:
                found[-1] += " " + text.removesuffix("\\").strip()
            else:
                found.append(text.removesuffix("\\").strip())
            goes_on = text.endswith("\\")
    return found
