"""The weights of one route: whole numbers that add up to 100, and no destination without a share (decision D9).

Takes a route with stable's destination, and what is kept of it; returns its destinations and what is to be kept then.
Other destinations of the route keep content, order and weight; stable, canary and experiments share the rest, by
largest remainder. A destination whose share is 0 is taken out: what we added is gone, what the user wrote is kept. With
no canary and no experiment at all the pair is as the user wrote it, so far as that says 0 for the canary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.routes.canonical import BackendIdentity
from rollouts_gwapi_plugin.routes.desired import Desired, Destination
from rollouts_gwapi_plugin.routes.gloo.destination import (
    FULL,
    effective_weights,
    name_of,
    same,
    service_identity,
    with_weight,
    without_weight,
)
from rollouts_gwapi_plugin.routes.gloo.experiments import experiment_destination
from rollouts_gwapi_plugin.routes.gloo.kept import Kept, Original, Out
from rollouts_gwapi_plugin.routes.gloo.pair import GlooPair
from rollouts_gwapi_plugin.routes.gloo.shares import largest_remainder
from rollouts_gwapi_plugin.routes.gloo.table import TableRoute
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.weights import ExperimentError

# The API's limit of a route's destinations.
MAX_DESTINATIONS: Final = 100


class Role(Enum):
    """What a destination is in its route."""

    STABLE = "stable"
    CANARY = "canary"
    EXPERIMENT = "experiment"
    # Somebody else's: it keeps its weight.
    OTHER = "other"


@dataclass(frozen=True)
class Seen:
    """A destination with its role; `live` is whether it stands in the route now."""

    role: Role
    raw: JsonObject
    live: bool = True


@dataclass(frozen=True)
class Weighed:
    """A route as it should be, what is kept of it, and what is told."""

    route: TableRoute
    kept: Kept | None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Scale:
    """What is to be weighed in every route of a RouteTable."""

    pair: GlooPair
    desired: Desired
    # Experiment destinations of this Rollout, recorded or asked for.
    experiments: frozenset[BackendIdentity]
    # Without experiments their share stays with stable (D31).
    with_experiments: bool = True
    # Put the pair back as the user wrote it, whatever was written (D29).
    gives_back: bool = False

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """The experiments' destinations that are wanted."""
        return self.desired.destinations if self.with_experiments else ()

    @property
    def keeps_zero(self) -> bool:
        """Whether what the user wrote stays in the route with an explicit weight of 0."""
        return self.desired.gloo is not None and self.desired.gloo.zero_weight == "keep"

    def role(self, raw: JsonObject) -> Role:
        """Return what the destination is."""
        if self.pair.is_stable(raw):
            return Role.STABLE
        if self.pair.is_canary(raw):
            return Role.CANARY
        known = name_of(raw) and service_identity(raw, self.pair.table_namespace) in self.experiments
        return Role.EXPERIMENT if known else Role.OTHER


def seen_in(item: TableRoute, kept: Kept | None, scale: Scale, where: str) -> list[Seen]:
    """Return the route's destinations with those that are kept of it in their places.

    Raises:
        RouteError: stable's or the canary's destination is there twice.

    """
    seen = [Seen(scale.role(raw), raw) for raw in item.destinations]
    for role in (Role.STABLE, Role.CANARY):
        if sum(one.role is role for one in seen) > 1:
            raise RouteError(
                f"{where}: {role.value}'s destination is there more than once; say which is meant by"
                f" {role.value}Destination.port or .subset in the plugin's configuration"
            )
    outs = [(Role.STABLE, kept.stable), (Role.CANARY, kept.canary)] if kept else []
    for kept_as, out in sorted(((r, o) for r, o in outs if o is not None), key=lambda found: found[1].index):
        role = _role_now(kept_as, out.raw, scale)
        if not any(one.role is role for one in seen):
            seen.insert(out.index, Seen(role, out.raw, live=False))
    if not any(one.role is Role.STABLE for one in seen):
        # Two Services that take turns: the user wrote the one that was stable before.
        place, canary = next((place, one.raw) for place, one in enumerate(seen) if one.role is Role.CANARY)
        seen.insert(place + 1, Seen(Role.STABLE, scale.pair.derive_stable(canary), live=False))
    return seen


def _role_now(kept_as: Role, raw: JsonObject, scale: Scale) -> Role:
    """Return the role of a kept destination; where two Services take turns, a promotion may have changed it since."""
    role = scale.role(raw)
    return role if scale.desired.ping_pong and role in {Role.STABLE, Role.CANARY} else kept_as


def weigh(item: TableRoute, kept: Kept | None, scale: Scale, where: str) -> Weighed:
    """Return the route at the wanted weight; `where` names it in errors.

    Raises:
        ExperimentError: an experiment's Service has no port that fits, or the route no room for it.
        RouteError: the other destinations leave nothing to share.

    """
    seen = seen_in(item, kept, scale, where)
    stable = next(one.raw for one in seen if one.role is Role.STABLE)
    original = kept.original if kept else _original(seen, scale)
    if not any(one.role is Role.CANARY for one in seen):
        # Two Services that take turns have one place among the others, whichever of them is there.
        place = next(place for place, one in enumerate(seen) if one.role is Role.STABLE)
        end = place + 1 if scale.desired.ping_pong else len(seen)
        seen.insert(end, Seen(Role.CANARY, scale.pair.derive_canary(stable), live=False))
    seen += _new_experiments(seen, stable, scale)
    shares, notes = _shares(item, seen, scale, original, where)
    layout = _Layout(scale, original, shares)
    destinations = layout.destinations(seen)
    if len(destinations) > max(MAX_DESTINATIONS, len(item.destinations)):
        raise ExperimentError(
            f"{where}: {len(destinations)} destinations needed, Gloo takes {MAX_DESTINATIONS}; nothing was written"
        )
    kept_now = layout.kept(item, seen, destinations)
    return Weighed(item.with_destinations(destinations), kept_now, notes)


def _original(seen: Sequence[Seen], scale: Scale) -> Original:
    """Return the pair as it stands there before our first write.

    A canary that is just what we would add is taken for added, by us or by the proof-of-concept plugin; an explicit
    weight of 0 is the user's own, since that plugin never writes one.
    """
    found = next(one for one in seen if one.role is Role.STABLE)
    stable = found.raw
    canary = next((one.raw for one in seen if one.role is Role.CANARY), None)
    if canary is not None and not found.live:
        return Original(canary.get("weight"))
    if canary is None:
        return Original(stable.get("weight"))
    alike = same(canary, scale.pair.derive_canary(stable), scale.pair.table_namespace)
    if scale.desired.ping_pong and canary.get("weight") and not stable.get("weight"):
        # Two Services that take turns: the weights are of a time when the other one was stable.
        stable, canary = canary, stable
    if canary.get("weight") != 0 and alike:
        return Original(stable.get("weight"))
    return Original(stable.get("weight"), has_canary=True, canary_weight=canary.get("weight"))


def _new_experiments(seen: Sequence[Seen], stable: JsonObject, scale: Scale) -> list[Seen]:
    there = {name_of(one.raw) for one in seen if one.role is Role.EXPERIMENT}
    return [
        Seen(
            Role.EXPERIMENT,
            experiment_destination(asked, stable, scale.pair.table_namespace, scale.desired),
            live=False,
        )
        for asked in scale.destinations
        if asked.name not in there and asked.weight
    ]


def _shares(
    item: TableRoute, seen: Sequence[Seen], scale: Scale, original: Original, where: str
) -> tuple[dict[int, int], tuple[Note, ...]]:
    """Return the share of each destination that is ours to weigh, by its place in `seen`."""
    effective = effective_weights(item.destinations)
    live = [one for one in seen if one.live]
    others = sum(weight for one, weight in zip(live, effective, strict=True) if one.role is Role.OTHER)
    if others >= FULL:
        raise RouteError(
            f"{where}: the other destinations' weights add up to {others} of {FULL}, so nothing is left for stable and"
            " canary; lower their weights"
        )
    asked = {destination.name: destination.weight for destination in scale.destinations}
    parts = _parts(scale, original, FULL - others, sum(asked.values()))
    ours = [index for index, one in enumerate(seen) if one.role is not Role.OTHER]
    # Stable first, then the canary: the order decides between equal remainders.
    ours.sort(key=lambda index: (list(Role).index(seen[index].role), index))
    wanted = [parts.get(seen[index].role, asked.get(name_of(seen[index].raw), 0)) for index in ours]
    shares = dict(zip(ours, largest_remainder(FULL - others, wanted), strict=True))
    lost = [name_of(seen[index].raw) for index, part in zip(ours, wanted, strict=True) if part and not shares[index]]
    text = f"{where}: of {FULL - others} parts in whole numbers none is left for {', '.join(lost)}; it gets no traffic"
    return shares, (Note("ShareRoundedToZero", text),) if lost else ()


def _parts(scale: Scale, original: Original, total: int, experiments: int) -> dict[Role, int]:
    """Return what stable and the canary are to have beside the experiments, in the controller's scale."""
    desired = scale.desired
    if scale.gives_back and original.canary_weight:
        # What the user gave the canary, they get back; stable has its own, or the rest.
        return {
            Role.STABLE: original.stable_weight or max(1, total - original.canary_weight),
            Role.CANARY: original.canary_weight,
        }
    return {
        Role.STABLE: max(0, desired.max_weight - desired.weight - experiments),
        Role.CANARY: desired.weight,
    }


@dataclass(frozen=True)
class _Layout:
    """Which destinations stand in the route, and with which weights."""

    scale: Scale
    original: Original
    shares: dict[int, int]

    def destinations(self, seen: Sequence[Seen]) -> list[JsonObject]:
        """Return the route's destinations, in order."""
        rests = self._rests(seen)
        result = []
        for index, one in enumerate(seen):
            if one.role is Role.OTHER:
                result.append(one.raw)
            elif one.role is Role.CANARY and self._as_written(rests=rests):
                result.append(self._canary_as_written(one.raw))
            elif self.shares[index]:
                omit = one.role is Role.STABLE and rests and self.original.stable_weight is None
                result.append(without_weight(one.raw) if omit else with_weight(one.raw, self.shares[index]))
            elif self.scale.keeps_zero and self._is_users(one.role):
                result.append(with_weight(one.raw, 0))
        return result if self._differs(result, seen) or self._ends_turn(seen) else self._live(seen)

    def kept(self, item: TableRoute, seen: Sequence[Seen], destinations: Sequence[JsonObject]) -> Kept | None:
        """Return what is to be kept of the route as it will be; None where nothing is."""
        present = {self.scale.role(raw): raw for raw in destinations}
        experiments = tuple(name_of(raw) for raw in destinations if self.scale.role(raw) is Role.EXPERIMENT)
        outs = {
            one.role: Out(index, without_weight(one.raw))
            for index, one in enumerate(seen)
            if one.role in {Role.STABLE, Role.CANARY} and one.role not in present and self._is_users(one.role)
        }
        if not outs and not experiments and self._is_as_written(present):
            return None
        stable, canary = outs.get(Role.STABLE), outs.get(Role.CANARY)
        return Kept(item.section, item.name, item.print, self.original, stable, canary, experiments)

    def _is_users(self, role: Role) -> bool:
        return role is Role.STABLE or (role is Role.CANARY and self.original.has_canary)

    def _rests(self, seen: Sequence[Seen]) -> bool:
        """Whether stable has all that there is to share."""
        return not any(share for index, share in self.shares.items() if seen[index].role is not Role.STABLE)

    def _as_written(self, *, rests: bool) -> bool:
        """Whether the user's canary goes back into the route with its own weight, which is none or 0."""
        original = self.original
        zero = original.has_canary and not original.canary_weight and original.stable_weight
        return bool(rests and zero and (self.scale.desired.resting or self.scale.gives_back))

    def _canary_as_written(self, raw: JsonObject) -> JsonObject:
        weight = self.original.canary_weight
        return without_weight(raw) if weight is None else with_weight(raw, weight)

    def _is_as_written(self, present: dict[Role, JsonObject]) -> bool:
        """Whether the route's pair is as the user wrote it, so that nothing need be kept."""
        canary, weight = present.get(Role.CANARY), present[Role.STABLE].get("weight")
        if canary is not None and not self.original.has_canary:
            return False
        if canary is not None and canary.get("weight") != self.original.canary_weight:
            return False
        return (weight is None) == (self.original.stable_weight is None)

    def _differs(self, result: Sequence[JsonObject], seen: Sequence[Seen]) -> bool:
        """Whether the live weights mean something else; a weight that says what absence says is left alone."""
        live = self._live(seen)
        same_ones = [without_weight(raw) for raw in result] == [without_weight(raw) for raw in live]
        return not same_ones or effective_weights(result) != effective_weights(live)

    def _ends_turn(self, seen: Sequence[Seen]) -> bool:
        """Whether stable, which was the canary before two Services took turns, has a weight where the user has none."""
        if not self.scale.desired.ping_pong or not self._rests(seen) or self.original.stable_weight is not None:
            return False
        return any(one.live and one.role is Role.STABLE and one.raw.get("weight") for one in seen)

    @staticmethod
    def _live(seen: Sequence[Seen]) -> list[JsonObject]:
        return [one.raw for one in seen if one.live]
