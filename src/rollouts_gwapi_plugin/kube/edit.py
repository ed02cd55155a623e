"""Read an object, apply a function, write if it changed; after a conflict read and apply again (decisions D6, D21).

The function takes the object as read and returns that same object (nothing to do) or a new one; it must not change its
input, and it may be called several times. It runs inside the loop: what is written was always computed from the version
it replaces. A lost answer to a write ends as a conflict, the re-read then shows our own write, and nothing is written.

`retry_on_conflict` is the loop alone, for writes of more than one object.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rollouts_gwapi_plugin.errors import Conflict
from rollouts_gwapi_plugin.kube.deadline import REAL_TIME, Deadline, Timing
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ObjectRef, ResourceType

# Ten writers that hammer one object of a busy API server (60 ms between read and write) lose 14 times in a row at
# worst in 6000 simulated edits; with 12 tries 7 % of them gave up. The deadline ends it earlier where it is short.
MAX_TRIES = 25
# A read and a write take 5-50 ms, so the writer that won is gone after the first wait or two.
FIRST_BACKOFF = 0.02
LONGEST_BACKOFF = 1.0

Result = TypeVar("Result")
Change = Callable[[JsonObject], JsonObject]


class ObjectStore(Protocol):
    """What an edit needs of a client."""

    def get(self, resource: ResourceType, namespace: str, name: str, *, deadline: Deadline) -> JsonObject:
        """Return the object."""

    def put(self, resource: ResourceType, obj: JsonObject, *, dry_run: bool = False, deadline: Deadline) -> JsonObject:
        """Write the object under the resourceVersion in it."""


@dataclass(frozen=True)
class EditResult:
    """What an edit did: the object as last read, as it is now, whether a write of ours made it so, and the reads."""

    before: JsonObject
    after: JsonObject
    written: bool
    tries: int


def edit(  # noqa: PLR0913 - an object's address is three of them
    client: ObjectStore,
    resource: ResourceType,
    namespace: str,
    name: str,
    change: Change,
    *,
    deadline: Deadline,
    timing: Timing = REAL_TIME,
) -> EditResult:
    """Bring one object to what `change` makes of it.

    Raises:
        Conflict: Others wrote in between at every try.
        KubeError: As the client's get and put.
        PluginError: Whatever `change` raises; nothing was written then.
    """
    maybe_written = False

    def attempt(tries: int) -> EditResult:
        nonlocal maybe_written
        before = client.get(resource, namespace, name, deadline=deadline)
        wanted = change(before)
        if unchanged(before, wanted):
            return EditResult(before, before, maybe_written, tries)
        try:
            after = client.put(resource, under_version_of(before, wanted), deadline=deadline)
        except Conflict as conflict:
            maybe_written = maybe_written or conflict.answer_lost
            raise
        return EditResult(before, after, written=True, tries=tries)

    return retry_on_conflict(attempt, ObjectRef(resource.kind, namespace, name), deadline=deadline, timing=timing)


def retry_on_conflict(
    attempt: Callable[[int], Result], ref: ObjectRef, *, deadline: Deadline, timing: Timing = REAL_TIME
) -> Result:
    """Run `attempt` (it gets the number of the try, from 1) until it raises no `Conflict`.

    Raises:
        Conflict: It raised one at the last try, or no time is left; the message names the object and the tries.
    """
    tries = 0
    while True:
        tries += 1
        try:
            return attempt(tries)
        except Conflict as conflict:
            wait = timing.spread(min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (tries - 1)))
            if tries >= MAX_TRIES or wait >= deadline.remaining():
                raise Conflict(
                    f"{ref}: others wrote it in between at each of {tries} tries in {deadline.limit:g} s; the next "
                    f"reconcile tries again (last: {conflict})",
                    answer_lost=conflict.answer_lost,
                ) from conflict
            timing.sleep(wait)


def unchanged(before: JsonObject, wanted: JsonObject) -> bool:
    """Whether a write would say nothing new: the same object, or an equal one."""
    return wanted is before or wanted == before


def under_version_of(before: JsonObject, wanted: JsonObject) -> JsonObject:
    """Return the wanted object so that it is only taken if `before` is still the latest version."""
    version = before["metadata"]["resourceVersion"]
    metadata = wanted["metadata"]
    if metadata.get("resourceVersion") == version:
        return wanted
    return {**wanted, "metadata": {**metadata, "resourceVersion": version}}
