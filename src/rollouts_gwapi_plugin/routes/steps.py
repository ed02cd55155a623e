"""The steps of managed routes, for every kind of route: which made what stands there, and which can be made now.

A managed route without a step (None) is one whose step is not known, or not to be applied: what is there of it stays.
"""

from collections.abc import Callable, Iterable, Mapping

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute
from rollouts_gwapi_plugin.routes.desired import Desired, ManagedStep
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose, records_of
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.record import RouteRecord

Steps = Mapping[str, ManagedStep | None]


def steps_there(owners: Iterable[Owned | None], record: RouteRecord, desired: Desired) -> Steps:
    """Return the managed routes of which a rule is there, each with the step that made it."""
    steps: dict[str, ManagedStep | None] = {}
    for owner in owners:
        if owner is not None:
            known = records_of(record, owner.purpose).get(owner.name)
            steps[owner.name] = (known.step if known else None) or _step_of_rollout(owner, desired)
    return steps


def _step_of_rollout(owner: Owned, desired: Desired) -> ManagedStep | None:
    """Return the Rollout's own step for a rule without a record: the last up to now, else any with a match."""
    for step in (desired.steps.get(owner.name), *desired.all_steps):
        if step is None or step.name != owner.name or not step.match:
            continue
        if isinstance(step, SetHeaderRoute) == (owner.purpose is Purpose.HEADER):
            return step
    return None


def other_steps(there: Steps, name: str, desired: Desired) -> Steps:
    """Return what is there of other names, with the steps by which it is made anew."""
    return {other: None if desired.keep_managed else step for other, step in there.items() if other != name}


def possible_steps(
    wanted: Steps, there: Steps, make: Callable[[Steps], object], route: str
) -> tuple[Steps, tuple[Note, ...]]:
    """Return the managed routes without those that can't be made now: they are left as they stand, and told."""
    steps: dict[str, ManagedStep | None] = {name: None for name in wanted if name in there}
    notes: list[Note] = []
    for name, step in wanted.items():
        try:
            make({**steps, name: step})
        except RouteError as error:
            text = f"{route}: managed route {name} is left as it is: {error}"
            notes.append(Note("ManagedRouteNotRestored", text))
        else:
            steps[name] = step
    return steps, tuple(notes)
