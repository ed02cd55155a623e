"""Objects of another kind that belong to a route: made before the route needs them, gone after it does not.

A reconciler says which must be there and which must not; the service creates, updates and deletes them in the order
that leaves none without a record (decision D6). Only kinds whose managed routes need such objects have any.
"""

from dataclasses import dataclass
from typing import Final

from rollouts_gwapi_plugin.model.base import JsonObject


@dataclass(frozen=True)
class CompanionKind:
    """A kind of companion, as `RouteKind` has it for routes."""

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str


@dataclass(frozen=True)
class Companions:
    """The objects that must be there, and the names of those in the route's namespace that must not."""

    wanted: tuple[JsonObject, ...] = ()
    obsolete: tuple[str, ...] = ()
    # The call is about the wanted ones: without them it has failed.
    required: bool = False


NO_COMPANIONS: Final = Companions()
