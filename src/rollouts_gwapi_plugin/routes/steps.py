"""The steps of managed routes, for every kind of route: which made what stands there, and which can be made now.

A managed route without a step (None) is one whose step is not known, or not to be applied: what is there of it stays.
"""

from collections.abc import Callable, Iterable, Mapping

from rollouts_gwapi_plugin.errors import RouteError, StepNotTakenError
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute
from rollouts_gwapi_plugin.routes.desired import Desired, ManagedStep
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose, records_of
from rollouts_gwapi_plugin.routes.notes import MIRROR_LEFT_OUT, Note
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


def refusal(name: str, notes: Iterable[Note], nothing: str, where: str) -> RouteError:
    """Return the error for a step of which nothing was made; `notes` say what was left out, `nothing` that none fits.

    Requests that route and step have in common, and that can't be told apart, are missed: whatever other routes do.
    """
    left = tuple(notes)
    why = "; ".join(note.text for note in left) or nothing
    text = f"{where}: managed route {name} can't be set: {why}"
    if any(note.reason == MIRROR_LEFT_OUT for note in left):
        return RouteError(text)
    return StepNotTakenError(text, why=why)


def not_taken(route: str, name: str, error: StepNotTakenError) -> Note:
    """Tell that a route takes no part in a managed route."""
    return Note("StepNotTaken", f"{route} takes no part in managed route {name}: {error.why}")


def possible_steps(
    wanted: Steps, there: Steps, make: Callable[[Steps], object], route: str
) -> tuple[Steps, tuple[Note, ...]]:
    """Return the managed routes without those that can't be made now: they are left as they stand, and told."""
    steps: dict[str, ManagedStep | None] = {name: None for name in wanted if name in there}
    notes: list[Note] = []
    for name, step in wanted.items():
        try:
            make({**steps, name: step})
        except StepNotTakenError as error:
            # What an earlier step of the name made is not what is asked for now.
            steps.pop(name, None)
            notes.append(not_taken(route, name, error))
        except RouteError as error:
            text = f"{route}: managed route {name} is left as it is: {error}"
            notes.append(Note("ManagedRouteNotRestored", text))
        else:
            steps[name] = step
    return steps, tuple(notes)
