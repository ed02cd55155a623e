"""Names that managed rules get: a base from the managed route's name, with -1, -2, … behind it where it is taken."""

import re
from collections.abc import Collection
from itertools import count


def free_name(base: str, used: Collection[str]) -> str:
    """Return the first name of the base that nobody bears."""
    if base not in used:
        return base
    return next(name for name in (f"{base}-{number}" for number in count(1)) if name not in used)


def is_named_after(name: str | None, base: str) -> bool:
    """Whether `free_name` may have given this name for the base."""
    return name is not None and (name == base or re.fullmatch(rf"{re.escape(base)}-[1-9][0-9]*", name) is not None)
