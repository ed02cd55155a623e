"""A RouteTable taken apart: the user's routes, ours, another Rollout's, and what is known and kept of each.

`candidates` are the routes that may be weighted: all but managed ones, of every section, in order. Selection, entries
of the annotation and sources are told by their places among the candidates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from rollouts_gwapi_plugin.model.gloo_config import GlooConfig
from rollouts_gwapi_plugin.model.route_tables import SECTIONS
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.canonical import BackendIdentity
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.experiments import service_pattern
from rollouts_gwapi_plugin.routes.gloo.destination import SERVICE, kind_of, name_of, service_identity
from rollouts_gwapi_plugin.routes.gloo.kept import Annotation, Kept, Out, assign, parse_annotation
from rollouts_gwapi_plugin.routes.gloo.managed import ManagedRoute, Order
from rollouts_gwapi_plugin.routes.gloo.marks import LABELS, Claim, is_marked
from rollouts_gwapi_plugin.routes.gloo.pair import GlooPair, find_pair, names
from rollouts_gwapi_plugin.routes.gloo.table import Table, TableRoute, read_table
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose, records_of
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.record import ManagedRecord, RecordView
from rollouts_gwapi_plugin.routes.steps import Steps, steps_there

NO_COPIES: Final[Mapping[int, TableRoute]] = MappingProxyType({})


@dataclass(frozen=True)
class TableStanding:
    """What stands on a RouteTable, for one Rollout."""

    route: Route
    desired: Desired
    view: RecordView
    table: Table
    # Of each HTTP route, whose it is; None: not this Rollout's.
    owners: tuple[Owned | None, ...]
    annotation: Annotation

    @property
    def namespace(self) -> str:
        """The RouteTable's namespace."""
        return self.route.metadata.namespace or self.desired.namespace

    @property
    def key(self) -> str:
        """The RouteTable's `namespace/name`."""
        return f"{self.namespace}/{self.route.metadata.name}"

    @property
    def config(self) -> GlooConfig:
        """The configuration."""
        return self.desired.gloo or GlooConfig()

    @cached_property
    def order(self) -> Order:
        """The HTTP routes' order."""
        ours = tuple(owner is not None for owner in self.owners)
        foreign = tuple(
            owner is None and is_marked(item) for item, owner in zip(self.table["http"], self.owners, strict=True)
        )
        return Order(ours, foreign)

    @cached_property
    def candidates(self) -> list[TableRoute]:
        """The routes that may be weighted."""
        managed = [own or foreign for own, foreign in zip(self.order.ours, self.order.foreign, strict=True)]
        http = [item for item, of_ours in zip(self.table["http"], managed, strict=True) if not of_ours]
        return [*http, *self.table["tcp"], *self.table["tls"]]

    @cached_property
    def others(self) -> list[tuple[TableRoute, bool]]:
        """The HTTP routes that are not ours, each with whether it is another Rollout's managed route."""
        every = zip(self.table["http"], self.order.ours, self.order.foreign, strict=True)
        return [(item, foreign) for item, own, foreign in every if not own]

    def users(
        self, candidates: Sequence[TableRoute], copies: Mapping[int, TableRoute] = NO_COPIES
    ) -> dict[str, list[TableRoute]]:
        """Return by section the routes that are not ours, with these candidates in the place of those as read.

        `copies` are what others' managed routes are to be, by their places among the routes that are not ours.
        """
        new = iter(candidates)
        http = [copies.get(place, item) if foreign else next(new) for place, (item, foreign) in enumerate(self.others)]
        rest = {section: [next(new) for _ in self.table[section]] for section in SECTIONS if section != "http"}
        return {"http": http, **rest}

    @cached_property
    def user_places(self) -> list[int]:
        """Of each HTTP candidate, its place among the HTTP routes that are not ours."""
        return [place for place, (_, foreign) in enumerate(self.others) if not foreign]

    def copies_of(self, index: int) -> list[int]:
        """Return the places of other Rollouts' mirror routes that stand before an HTTP candidate: its copies."""
        end = self.user_places[index]
        begin = self.user_places[index - 1] + 1 if index else 0
        return [place for place in range(begin, end) if LABELS[Purpose.MIRROR] in self.others[place][0].labels]

    @cached_property
    def selected(self) -> frozenset[int]:
        """The candidates that are to be managed: all, or those of the routeSelector (only HTTP routes have names)."""
        selector = self.config.route_selector
        if selector is None or not (selector.name or selector.labels):
            return frozenset(range(len(self.candidates)))
        return frozenset(
            index
            for index, item in enumerate(self.candidates)
            if selector.name in ("", item.name)
            and all(item.labels.get(key) == value for key, value in selector.labels.items())
            and item.section == "http"
        )

    @cached_property
    def kept(self) -> dict[int, Kept]:
        """Which entry of the annotation is of which candidate."""
        stable, canary = names(self.desired, self.config)
        bare = [
            any(name_of(raw) == canary and raw.get("weight") for raw in item.destinations)
            and not any(name_of(raw) == stable for raw in item.destinations)
            for item in self.candidates
        ]
        return assign(self.annotation.own, self.candidates, bare)

    @property
    def lost(self) -> tuple[Note, ...]:
        """Tell which routes are not found any more whose stable destination was out: nobody puts it back now."""
        found = list(self.kept.values())
        lost = [(entry, entry.stable) for entry in self.annotation.own if entry.stable and entry not in found]
        return tuple(Note("DestinationsNotKept", f"{self.route}: {_told_lost(*one)}") for one in lost)

    def find_pair(self) -> tuple[GlooPair, tuple[Note, ...]]:
        """Find the pair among the selected routes.

        Raises:
            RouteError: no route has the stable destination, or it is not clear which is meant.

        """
        routes = [self.candidates[index] for index in sorted(self.selected)]
        stashed = [entry.stable.raw for index, entry in self.kept.items() if entry.stable and index in self.selected]
        return find_pair(str(self.route), self.namespace, routes, stashed, self.desired)

    def is_weighted(self, index: int, pair: GlooPair) -> bool:
        """Whether the candidate is selected and has stable's destination, in it or kept of it."""
        return index in self.selected and self.has_stable(index, pair)

    def has_stable(self, index: int, pair: GlooPair) -> bool:
        """Whether the candidate has stable's destination, in it or kept of it; of two that take turns, either."""
        entry, there = self.kept.get(index), self.candidates[index].destinations
        if self.desired.ping_pong and any(map(pair.is_canary, there)):
            return True
        return any(map(pair.is_stable, there)) or bool(entry and entry.stable)

    @cached_property
    def experiments(self) -> frozenset[BackendIdentity]:
        """Destinations of this Rollout's experiments: recorded, kept, asked for, or known by their names."""
        asked = {destination.name for destination in self.desired.destinations}
        asked |= {name for entry in self.annotation.own for name in entry.experiments}
        pattern = None if self.view.known else service_pattern(self.desired)
        there = {
            service_identity(raw, self.namespace)
            for item in self.candidates
            for raw in item.destinations
            if kind_of(raw) == SERVICE
            and (name_of(raw) in asked or (pattern is not None and pattern.fullmatch(name_of(raw))))
        }
        return frozenset({*self.view.record.experiments, *there, *self._asked()})

    def _asked(self) -> set[BackendIdentity]:
        """Return the identities that destinations of experiments get when they are added."""
        return {
            ("", SERVICE, namespace, destination.name)
            for destination in self.desired.destinations
            for namespace in (self.namespace, self.desired.namespace)
        }

    @cached_property
    def owned_names(self) -> frozenset[str]:
        """The managed routes of which a route is there, or an entry on record."""
        there = {owner.name for owner in self.owners if owner is not None}
        return frozenset(there | set(self.view.record.headers) | set(self.view.record.mirrors))

    def managed_routes(self) -> list[ManagedRoute]:
        """Return our routes as they stand now."""
        result, users = [], 0
        for item, owner in zip(self.table["http"], self.owners, strict=True):
            if owner is None:
                users += 1
            else:
                result.append(ManagedRoute(owner, item, users))
        return result

    def record_of(self, owner: Owned) -> ManagedRecord | None:
        """Return the record of a managed route."""
        return records_of(self.view.record, owner.purpose).get(owner.name)

    def steps(self) -> Steps:
        """Return the managed routes that are there, each with the step that made it; None: not known."""
        return steps_there(self.owners, self.view.record, self.desired)


def _told_lost(entry: Kept, stable: Out) -> str:
    name = f"{entry.section} route {entry.name or 'without a name'}"
    return (
        f"the {name} is there neither by its name nor by what it matches any more; its stable destination was out of"
        f" it, put it back where it belongs: {stable.raw}"
    )


def take_apart(
    route: Route, desired: Desired, view: RecordView, *, setting: frozenset[str] = frozenset()
) -> TableStanding:
    """Tell the user's routes from ours; unrecorded header routes of the names being set are taken over.

    Raises:
        RouteError: the object has not the API's shape, or an annotation that only a newer plugin can read.

    """
    table = read_table(route)
    namespace = route.metadata.namespace or desired.namespace
    _, canary = names(desired, desired.gloo or GlooConfig())
    claim = Claim(f"{namespace}/{route.metadata.name}", desired, view, canary, setting)
    owners = tuple(claim.owner(item) for item in table["http"])
    annotation = parse_annotation(route.metadata.annotations or {}, desired.rollout, str(route))
    return TableStanding(route, desired, view, table, owners, annotation)
