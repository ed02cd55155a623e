"""One route and its record, written in an order that can't orphan a rule (decision D6).

Adding: the ledger first, then the route. Removing: the route first, then the ledger. Changing: the record recognises
the old and the new rule until the route's write is known to have succeeded. Both writes go under the version that was
read; on a conflict both are read again and all is computed again. So at no crash point is there a rule of ours without
a record. What else a managed route needs (companions) is there before the route is written, and goes after it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rollouts_gwapi_plugin.errors import Conflict, Forbidden, Invalid, KubeError, PluginError, RouteError
from rollouts_gwapi_plugin.kube.conflicts import retry_on_conflict, under_version_of
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ResourceType
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.dispatch import reconciler_of
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.reconcile import Outcome
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView, RouteRecord
from rollouts_gwapi_plugin.service.cluster import Cluster
from rollouts_gwapi_plugin.service.companions import CompanionWriter
from rollouts_gwapi_plugin.service.ledger_session import LedgerSession, OldEntries
from rollouts_gwapi_plugin.service.targets import Target, read_target

# Given the route, the ledger's view and whether the ledger is of use, what should become of the route.
Compute = Callable[[Route, RecordView, PluginError | None], Outcome]
Reason = Callable[[Route], bool]
# Names of managed routes whose old entries of the Go plugin are done with once this call is.
Settled = Callable[[Route, RecordView], frozenset[str]]


class ManagedRefusedError(RouteError):
    """The API server refuses the route with its managed routes as they would be."""


@dataclass(frozen=True)
class Done:
    """What became of a route: the outcome, the route as it is now, and whether this call wrote it."""

    outcome: Outcome
    route: Route
    written: bool


@dataclass
class _Written:
    """What this call's writes did to the Go plugin's old entries, kept over conflicts: the ledger learns it last.

    The entries are places in the list of rules, and not by Rollout: a write moves those of others, too.
    """

    any: bool = False
    settled: frozenset[str] = frozenset()
    # Where entries pointed and where their rules stand now, by the managed route's name.
    moves: dict[str, tuple[int, int]] = field(default_factory=dict)

    def note(self, view: RecordView, before: Route, after: Route, settled: frozenset[str]) -> None:
        """Note a write of the route; what this Rollout does not own stays the same object."""
        self.any = True
        self.settled |= settled
        places = {id(rule): place for place, rule in enumerate(after.rules)}
        for name, index in view.legacy.items():
            first, now = self.moves.get(name, (index, index))
            # Somebody else wrote the entry meanwhile: it points at what stands there now.
            now = now if first == index else index
            if 0 <= now < len(before.rules):
                self.moves[name] = (index, places.get(id(before.rules[now]), now))

    def old_entries(self, view: RecordView, settled: frozenset[str]) -> OldEntries:
        """Return what the ledger has to learn."""
        done = (self.settled if self.any else settled) & frozenset(view.legacy)
        moves = {name: move for name, move in self.moves.items() if name not in done and move[0] != move[1]}
        return OldEntries(done, {name: move for name, move in moves.items() if view.legacy.get(name) == move[0]})


@dataclass(frozen=True)
class Transaction:
    """The writes of one call on one route."""

    cluster: Cluster
    session: LedgerSession
    deadline: Deadline
    compute: Compute
    has_reason: Reason
    settled: Settled = lambda _route, _view: frozenset()
    # Whether the call is about weights: managed routes that the API server refuses must not hold them back.
    sets_weights: bool = False

    def prepare(self, target: Target) -> Outcome:
        """Compute without writing: what is wrong with a route is found before the first write (D21).

        Raises:
            PluginError: the route can't be read, or can't take what is asked.

        """
        if target.raw is None:
            raise target.error or KubeError(f"{target.ref} was not read")
        route = parse_route(target.raw)
        view, trouble = self._view(target, route)
        return self.compute(route, view, trouble)

    def run(self, target: Target) -> Done:
        """Write what `compute` asks for, again after each conflict.

        Raises:
            PluginError: as `prepare`, or the writes failed.

        """
        latest = target
        written = _Written()

        def attempt(tries: int) -> Done:
            nonlocal latest
            if tries > 1:
                latest = read_target(self.cluster, latest, self.deadline)
                self.session.forget()
            return self._attempt(latest, written)

        done = retry_on_conflict(attempt, target.ref, deadline=self.deadline)
        return replace(done, written=written.any)

    def _view(self, target: Target, route: Route) -> tuple[RecordView, PluginError | None]:
        if not self.has_reason(route):
            return NOTHING_RECORDED, None
        return self.session.view(target.kind.family, target.name)

    def _attempt(self, target: Target, written: "_Written") -> Done:
        if target.raw is None or target.resource is None:
            raise target.error or KubeError(f"{target.ref} was not read")
        route = before = parse_route(target.raw)
        view, trouble = self._view(target, route)
        outcome = self.compute(route, view, trouble)
        records = self.has_reason(route) and trouble is None
        adds = records and reconciler_of(route).adds(route, outcome)
        if adds or (records and view.record.union(outcome.record) != view.record):
            failure = self._record_ahead(target, outcome.record, touch=adds)
            if failure is not None:
                # What needs no record is still done, weights above all (D8).
                outcome, records, adds = self.compute(route, view, failure), False, False
        outcome = self._companions_ahead(target, outcome)
        if outcome.route is not route:
            try:
                route = self._put(target.resource, target.raw, outcome.route)
            except (Invalid, Forbidden) as error:
                if not (self.sets_weights and records):
                    raise
                # What was recorded ahead of the refused write is to be swept.
                ahead = replace(view, record=view.record.union(outcome.record))
                outcome, view = self._as_it_stands(before, view, outcome, error), ahead
                adds = reconciler_of(before).adds(before, outcome)
                if outcome.route is not before:
                    route = self._put(target.resource, target.raw, outcome.route)
        if outcome.route is not before:
            written.note(view, before, outcome.route, self.settled(before, view))
        outcome = self._companions_behind(target, outcome, view)
        if records:
            old = written.old_entries(view, self.settled(before, view))
            outcome = self._settle(target, outcome, view, old, added=adds)
        return Done(outcome, route, written=written.any)

    def _put(self, resource: ResourceType, read: JsonObject, route: Route) -> Route:
        raw = under_version_of(read, route.dump())
        return parse_route(self.cluster.client.put(resource, raw, deadline=self.deadline))

    def _as_it_stands(self, route: Route, view: RecordView, refused: Outcome, error: KubeError) -> Outcome:
        """Return what is to be written with the managed routes as they stand; without a difference, raise the error."""
        outcome = self.compute(route, view, ManagedRefusedError(str(error)))
        if outcome.route.dump() == refused.route.dump():
            raise error
        return outcome

    def _record_ahead(self, target: Target, record: RouteRecord, *, touch: bool) -> PluginError | None:
        """Record what is about to be written beside what is there; return why that failed.

        A rule to be added makes a new version of the ledger even where its mark is there already, left over: another
        process that is about to sweep the mark is refused then, and looks at the route again.
        """
        try:
            self.session.put(target.kind.family, target.name, lambda found: found.union(record), touch=touch)
        except PluginError as error:
            return error
        return None

    def _companions(self, target: Target) -> CompanionWriter | None:
        kind = target.kind.companion
        return None if kind is None else CompanionWriter(self.cluster, kind, target.namespace, self.deadline)

    def _companions_ahead(self, target: Target, outcome: Outcome) -> Outcome:
        """Have the companions there before the route is written; where the call is not about them, trouble is told.

        Raises:
            PluginError: a companion that the call is about can't be written, or others wrote it in between.

        """
        writer, notes = self._companions(target), list(outcome.notes)
        if writer is None:
            return outcome
        for wanted in outcome.companions.wanted:
            try:
                writer.ensure(wanted)
            except PluginError as error:
                if outcome.companions.required or isinstance(error, Conflict):
                    raise
                text = f"{target.ref}: {wanted['kind']} {wanted['metadata']['name']} is not as it should be: {error}"
                notes.append(Note("CompanionNotWritten", text))
        return replace(outcome, notes=tuple(notes))

    def _companions_behind(self, target: Target, outcome: Outcome, view: RecordView) -> Outcome:
        """Delete the companions that no route needs any more; what can't be deleted stays on record."""
        writer = self._companions(target)
        failure = writer.delete_all(outcome.companions.obsolete) if writer else None
        if failure is None:
            return outcome
        text = f"{target.ref}: what belonged to its mirror routes can't be deleted yet: {failure}"
        record = outcome.record.union(RouteRecord(mirrors=view.record.mirrors))
        return replace(outcome, record=record, notes=(*outcome.notes, Note("CompanionNotDeleted", text)))

    def _settle(self, target: Target, outcome: Outcome, view: RecordView, old: OldEntries, *, added: bool) -> Outcome:
        """Bring the record to what stands on the route now; trouble here leaves a harmless record, and is told.

        What another process has recorded meanwhile is kept; what it swept before our rule was written is put back. A
        sweep goes under the version that the call began with: if another process wrote the ledger since, it may have
        added the very rule whose mark is to go, so the route is looked at again.

        Raises:
            Conflict: read both again.

        """
        ahead = view.record.union(outcome.record)
        if not added and outcome.record == view.record and not old.any:
            return outcome
        try:
            self.session.put(
                target.kind.family,
                target.name,
                lambda found: found.minus(ahead).union(outcome.record),
                old=old,
                touch=added,
                again=added,
            )
        except Conflict:
            raise
        except PluginError as error:
            text = f"{self.session}: {target.ref} is as it should be, its record is not: {error}"
            return replace(outcome, notes=(*outcome.notes, Note("LedgerNotSwept", text)))
        return outcome
