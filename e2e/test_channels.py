"""Cases on the Gateway API's experimental channel: all other tests run on the standard one.

The experimental channel serves more versions of the same kinds, keeps fields that the standard one prunes, and wants
rule names to differ.
"""

from collections.abc import Callable

import pytest

from e2e.runner.case import CASES, read
from e2e.runner.target import Target
from e2e.test_cases import OUT, told_right

TOLD = ("basic-canary", "four-kinds", "header-route", "udp", "experimental-fields")


@pytest.mark.e2e
@pytest.mark.timeout(900, func_only=True)
@pytest.mark.parametrize("name", TOLD)
def test_case_on_the_experimental_channel(
    name: str, experimental_target: Target, record_property: Callable[[str, object], None]
) -> None:
    """The case goes as its file says on this channel, too."""
    case = read(CASES / name / "case.yaml")

    told_right(case, experimental_target, OUT / f"{name}-experimental", record_property)
