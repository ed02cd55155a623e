"""How what is foreign is shown in messages."""

import pytest
from pydantic import ValidationError

from rollouts_gwapi_plugin.errors import cause, cut, shown
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a", "'a'"), (5, "'5'"), ({"a": None}, "\"{'a': None}\""), ("a\nb", r"'a\nb'"), ("x" * 81, f"'{'x' * 80}'")],
)
def test_a_foreign_value_stays_a_line(value: object, expected: str) -> None:
    """It is quoted and cut, with the ends of lines escaped."""
    assert expected == shown(value)


@pytest.mark.parametrize(("text", "expected"), [("[1]", "[1]"), ("x" * 80, "x" * 80), ("x" * 81, "x" * 80 + "…")])
def test_a_cut_is_seen(text: str, expected: str) -> None:
    """What was written out already ends with a sign where some of it is left out."""
    assert expected == cut(text)


def test_a_foreign_error_has_its_kind() -> None:
    """Its text alone may say nothing (a KeyError's is the key)."""
    assert "KeyError: 'version'" == cause(KeyError("version"))
    assert "ValueError: " + "x" * 200 == cause(ValueError("x" * 1000))


def test_a_foreign_error_is_one_line() -> None:
    """Pydantic's has several, and the address of a page on its kind."""
    with pytest.raises(ValidationError) as raised:
        SetHeaderRoute.model_validate({"name": 5})
    told = cause(raised.value)

    assert "name Input should be a valid string" in told
    assert "\n" not in told
    assert "http" not in told
