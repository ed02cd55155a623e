"""The steps of managed routes."""

from dataclasses import replace

import pytest
from tests.routes.wanted import WEB

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.rollout import HeaderRoutingMatch, SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose
from rollouts_gwapi_plugin.routes.record import ManagedRecord, RouteRecord
from rollouts_gwapi_plugin.routes.steps import Steps, other_steps, possible_steps, steps_there

GONE = SetHeaderRoute(name="a")
FIRST, SECOND = (SetHeaderRoute(name="a", match=(HeaderRoutingMatch(header_name=name),)) for name in ("x", "y"))
OWNED = Owned(Purpose.HEADER, "a")


@pytest.mark.parametrize(
    ("desired", "record", "expected"),
    [
        (replace(WEB, steps={"a": SECOND}), RouteRecord(headers={"a": ManagedRecord((), FIRST)}), FIRST),
        (replace(WEB, steps={"a": SECOND}, all_steps=(FIRST,)), RouteRecord(), SECOND),
        (replace(WEB, steps={"a": GONE}, all_steps=(FIRST, GONE)), RouteRecord(), FIRST),
        (replace(WEB, steps={"a": SECOND}), RouteRecord(headers={"a": ManagedRecord(())}), SECOND),
        (WEB, RouteRecord(mirrors={"a": ManagedRecord((), SetMirrorRoute(name="a"))}), None),
    ],
    ids=["record", "up-to-now", "any", "record-without-step", "other-purpose"],
)
def test_the_step_that_made_what_is_there(
    desired: Desired, record: RouteRecord, expected: SetHeaderRoute | None
) -> None:
    """It is on record; else it is the Rollout's last of that name up to now, else any that makes a rule."""
    assert {"a": expected} == steps_there([None, OWNED, OWNED], record, desired)


def test_what_can_not_be_recorded_is_not_made_anew() -> None:
    """The managed routes of other names keep their rules while the ledger is in trouble."""
    there: Steps = {"a": FIRST, "b": FIRST, "c": None}
    assert other_steps(there, "b", WEB) == {"a": FIRST, "c": None}
    assert other_steps(there, "b", replace(WEB, keep_managed=True)) == {"a": None, "c": None}


def test_one_that_can_not_be_made_stays_as_it_is() -> None:
    """Of two managed routes that fit only one at a time the first is made, and the other is told."""

    def make(steps: Steps) -> None:
        if sum(step is not None for step in steps.values()) > 1:
            raise RouteError("no room")

    steps, notes = possible_steps({"a": FIRST, "b": SECOND, "c": SECOND}, {"b": FIRST}, make, "HTTPRoute shop/web")

    assert steps == {"a": FIRST, "b": None}
    assert [note.text for note in notes] == [
        "HTTPRoute shop/web: managed route b is left as it is: no room",
        "HTTPRoute shop/web: managed route c is left as it is: no room",
    ]
