"""`doctor` on steps that no route refuses, but the controller."""

from typing import Any

import pytest
from tests.cli.town import Town
from tests.service.world import header_step

HEADER = {"setHeaderRoute": header_step("beta")}
OTHER = {"setHeaderRoute": header_step("alpha")}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"steps": [HEADER]}, "error managed route: steps[0].setHeaderRoute: beta is not in trafficRouting.managedRou"),
        ({"steps": [{"setWeight": 120}]}, "error weight: steps[0].setWeight is 120; maxTrafficWeight lets it be 0 to"),
        ({"managed": ["beta"]}, "warning managed route: managedRoutes: no step sets beta"),
    ],
)
def test_steps_that_the_controller_refuses(sound: Town, fields: dict[str, Any], text: str) -> None:
    """What `lint` says of weights and managed routes is said of a Rollout in a cluster, too."""
    sound.configure(**fields)

    assert [line for line in sound.bad() if line.startswith(text)]


def test_notes_are_for_lint(sound: Town) -> None:
    """What is only worth a note while the Rollout is written is not repeated."""
    sound.configure(managed=["alpha", "beta"], steps=[HEADER, OTHER])

    assert not [line for line in sound.found() if " managed route: " in line]
