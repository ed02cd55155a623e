"""Partial objects: what matches, and what is said where it does not."""

import pytest

from e2e.load.record import Record
from e2e.load.traffic import version_of, versions, wrong_share
from e2e.runner.match import differences

pytestmark = pytest.mark.e2e_short


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": {"b": None}}, {}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}),
        ({"a": "~ ^x.z$"}, {"a": "xyz"}),
    ],
)
def test_parts_match(expected: object, found: object) -> None:
    """An object that has the expected part matches."""
    assert differences(expected, found) == []


@pytest.mark.parametrize(
    ("expected", "found", "said"),
    [
        ({"a": 1}, {}, "a: absent instead of 1"),
        ({"a": {"b": None}}, {"a": {"b": 1}}, "a.b: 1 instead of nothing"),
        ({"a": [1]}, {"a": [1, 2]}, "a: 2 items instead of 1"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, "a[0].b: 2 instead of 1"),
        ({"a": "~ ^x$"}, {"a": "y"}, "a: 'y' does not match '^x$'"),
        ({"a": {"b": 1}}, {"a": 3}, "a: 3 instead of a mapping"),
    ],
)
def test_differences_are_said(expected: object, found: object, said: str) -> None:
    """An object that lacks the expected part does not match, and the difference is said with its path."""
    assert differences(expected, found) == [said]


def _answers(**counts: int) -> list[Record]:
    return [Record("plain", 0.0, 0.0, version=version) for version, count in counts.items() for _ in range(count)]


def test_no_request_may_stray_where_the_share_is_zero() -> None:
    """One answer of a version that should have no traffic is wrong."""
    assert "v2" in wrong_share(versions(_answers(v1=999, v2=1)), {"v1": 100})


def test_shares_within_chance_are_right() -> None:
    """A share that chance allows is right, one beyond it is not."""
    assert wrong_share(versions(_answers(v1=78, v2=22)), {"v1": 80, "v2": 20}) == ""
    assert wrong_share(versions(_answers(v1=60, v2=40)), {"v1": 80, "v2": 20}) != ""


def test_a_gateway_that_deals_in_turn_has_less_tolerance() -> None:
    """Where shares are exact, what chance would allow is wrong."""
    found = versions(_answers(v1=72, v2=28))

    assert wrong_share(found, {"v1": 80, "v2": 20}) == ""
    assert wrong_share(found, {"v1": 80, "v2": 20}, exact=True) != ""


def test_pods_of_one_version_are_told_apart_by_their_names() -> None:
    """Answers count under a version's name, or under that of an expression that the pod's name has."""
    pods = {"baseline": "-baseline-"}

    assert version_of("web-1-2-0-baseline-x", "v1", pods) == "baseline"
    assert version_of("web-1-x", "v1", pods) == "v1"
