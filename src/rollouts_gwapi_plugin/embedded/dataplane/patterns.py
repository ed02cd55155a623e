"""The ways in which a Gateway API match compares text: exact, path prefix, regular expression, hostname.

Each function takes a pattern and a text and says whether they match. A pattern that can't be used (a regular expression
that is not RE2's, a prefix without a slash) matches nothing, and never raises.
"""

import re
from functools import lru_cache

# What Python's engine knows and RE2 does not: look-around, back references, conditionals, atomic groups and
# possessive quantifiers. A data plane on RE2 refuses the pattern, so this one must not let it match.
_NOT_RE2 = re.compile(
    r"""
    (?<!\\)(?:\\\\)*            # an even number of backslashes: what follows is not escaped
    (?: \(\?(?:=|!|<=|<!|>|\(|P=|\#)
      | \\(?:[1-9]|Z)
      | [*+?}]\+
    )
    """,
    re.VERBOSE,
)
# Patterns come from routes, a header value is at most 4096 characters long there.
MAX_PATTERNS = 1024


@lru_cache(maxsize=MAX_PATTERNS)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    if _NOT_RE2.search(pattern):
        return None
    try:
        # RE2's classes (\d, \w, \s) are ASCII; \z is its only end-of-text.
        return re.compile(pattern.replace(r"\z", r"\Z"), re.ASCII)
    except (re.error, OverflowError, RecursionError):
        return None


def expression_matches(pattern: str, text: str) -> bool:
    """Match the whole text, as Envoy does: the Gateway API leaves the anchoring to the implementation."""
    compiled = _compiled(pattern)
    return compiled is not None and compiled.fullmatch(text) is not None


def prefix_matches(prefix: str, path: str) -> bool:
    """Match by path element: `/a` matches `/a` and `/a/b`, not `/ab`; a trailing slash of the prefix does not count."""
    stem = prefix.rstrip("/")
    return prefix.startswith("/") and path.startswith(stem) and path[len(stem) : len(stem) + 1] in {"", "/"}


def value_matches(kind: str, pattern: str, text: str) -> bool:
    """Match a header, query parameter, gRPC service or method by its match type."""
    if kind == "RegularExpression":
        return expression_matches(pattern, text)
    return kind == "Exact" and pattern == text


def hostname_matches(pattern: str, name: str) -> bool:
    """Match a hostname; `*.example.com` stands for one label or more before `.example.com`."""
    pattern = pattern.lower()
    if pattern.startswith("*."):
        return name.endswith(pattern[1:]) and len(name) > len(pattern) - 1
    return pattern == name
