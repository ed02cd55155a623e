"""Regular expressions as RE2 has them, and hostnames."""

import pytest

from rollouts_gwapi_plugin.embedded.dataplane.patterns import expression_matches, hostname_matches, valid_expression


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a|ab", "ab", True),  # the whole value, whichever branch comes first
        ("v[12]", "v1", True),
        ("v[12]", "xv1", False),
        (r"\d+", "\N{ARABIC-INDIC DIGIT ONE}", False),  # RE2's classes are ASCII
        (r"abc\z", "abc", True),
        ("(?i)ABC", "abc", True),
        ("(?P<name>a)", "a", True),
        ("^a$", "a", True),
        ("a", "a\n", False),
    ],
)
def test_expressions(pattern: str, text: str, *, matches: bool) -> None:
    """An expression is matched against the whole text by RE2's rules."""
    assert expression_matches(pattern, text) == matches


@pytest.mark.parametrize(
    "pattern", ["(?=a)a", "(?<!b)a", r"(a)\1", "(?P<n>a)(?P=n)", "a*+", "(?(1)a|b)", "[", "(?#x)a"]
)
def test_what_re2_does_not_know_is_invalid(pattern: str) -> None:
    """What only Python's engine knows, and what none knows, matches nothing."""
    assert not valid_expression(pattern)
    assert not expression_matches(pattern, "a")


@pytest.mark.parametrize("pattern", [r"\(?=a", r"\\\\d", "a+b", r"a\++"])
def test_escaped_characters_are_no_constructs(pattern: str) -> None:
    """An escaped bracket or plus is a character."""
    assert valid_expression(pattern)


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("a.example.com", "a.example.com", True),
        ("A.Example.com", "a.example.com", True),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", ".example.com", False),
        ("*.example.com", "badexample.com", False),
    ],
)
def test_hostnames(pattern: str, name: str, *, matches: bool) -> None:
    """A wildcard stands for one label or more."""
    assert hostname_matches(pattern, name) == matches
