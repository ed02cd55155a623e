"""Names of managed rules."""

import pytest

from rollouts_gwapi_plugin.routes.names import free_name, is_named_after


@pytest.mark.parametrize(
    ("used", "expected"),
    [((), "a"), (("b", "a-1"), "a"), (("a",), "a-1"), (("a", "a-1", "a-3"), "a-2")],
)
def test_the_first_name_that_nobody_bears(used: tuple[str, ...], expected: str) -> None:
    """A name that is taken is numbered, and every such name is known again."""
    assert expected == free_name("a", used)
    assert is_named_after(expected, "a")


@pytest.mark.parametrize("name", [None, "", "b", "a-", "a-0", "a-01", "a-x", "a-1-1", "a-1\n", "xa"])
def test_other_names_are_not_ours(name: str | None) -> None:
    """Only the base itself, and the base with a number from 1 on, are names that we give."""
    assert not is_named_after(name, "a")


def test_a_base_is_no_expression() -> None:
    """A dot in a managed route's name is a dot."""
    assert is_named_after("a.b-1", "a.b")
    assert not is_named_after("axb-1", "a.b")
