"""Regular expressions as RE2 has them, and hostnames."""

import pytest

from rollouts_gwapi_plugin.embedded.dataplane.patterns import expression_matches, hostname_matches


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
    ("pattern", "text"),
    [
        ("(?=a)a", "a"),
        ("(?<!b)a", "a"),
        (r"(a)\1", "aa"),
        ("(?P<n>a)(?P=n)", "aa"),
        ("a*+", "a"),
        ("(a)(?(1)b|c)", "ab"),
        ("[", "["),
        ("(?#x)a", "a"),
    ],
)
def test_what_re2_does_not_know_matches_nothing(pattern: str, text: str) -> None:
    """What only Python's engine knows, and what none knows, matches not even the text that it is meant for."""
    assert not expression_matches(pattern, text)


@pytest.mark.parametrize(("pattern", "text"), [(r"\(?=a", "(=a"), (r"\\\\d", r"\\d"), ("a+b", "aab"), (r"a\++", "a++")])
def test_escaped_characters_are_no_constructs(pattern: str, text: str) -> None:
    """An escaped bracket or plus is a character."""
    assert expression_matches(pattern, text)


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
