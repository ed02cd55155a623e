"""Label and field selectors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.apiserver import StatusError
from rollouts_gwapi_plugin.embedded.apiserver.selectors import label_selector


def _object(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "x", "labels": labels}}


@pytest.mark.parametrize(
    ("selector", "matching", "other"),
    [
        ("a=1", _object(a="1"), _object(a="2")),
        ("a==1", _object(a="1"), _object()),
        ("a!=1", _object(), _object(a="1")),
        ("a=", _object(a=""), _object(a="1")),
        ("a in (1, 2)", _object(a="2"), _object(a="3")),
        ("a in (1,)", _object(a=""), _object(a="3")),
        ("a notin (1,2)", _object(), _object(a="2")),
        ("a", _object(a=""), _object(b="")),
        ("!a", _object(b=""), _object(a="")),
        ("a=1,b in (x,y),!c", _object(a="1", b="y"), _object(a="1", b="y", c="")),
        (" example.com/a = b-c ", {"metadata": {"labels": {"example.com/a": "b-c"}}}, _object()),
    ],
)
def test_selector_chooses(selector: str, matching: Any, other: Any) -> None:
    """A selector takes what it describes and nothing else."""
    chosen = label_selector(selector)

    assert chosen(matching)
    assert not chosen(other)


@pytest.mark.parametrize(
    "selector", ["a in", "a in (1", "a in (1 2)", "=", "a==b=c", "a,,b", "a b", "!", "!=a", ",a", "a>1"]
)
def test_unreadable_selector_is_400(selector: str) -> None:
    """What is no selector is refused, not taken for something else."""
    with pytest.raises(StatusError) as caught:
        label_selector(selector)

    assert caught.value.code == 400


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text does anything else than select or be refused with 400."""
    try:
        label_selector(text)(_object(a="1"))
    except StatusError as error:
        assert error.code == 400  # noqa: PT017 - most texts are refused, some are not
