"""One route and its record, written in an order that can't orphan a rule (decision D6).

Adding: the ledger first, then the route. Removing: the route first, then the ledger. Changing: the record recognises
the old and the new rule until the route's write is known to have succeeded. Both writes go under the version that was
read; on a conflict both are read again and all is computed again. So at no crash point is there a rule of ours without
a record.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rollouts_gwapi_plugin.errors import KubeError, PluginError
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.edit import retry_on_conflict, under_version_of
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.reconcile import Outcome
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView, RouteRecord
from rollouts_gwapi_plugin.service.cluster import Cluster
from rollouts_gwapi_plugin.service.ledger_session import LedgerSession
from rollouts_gwapi_plugin.service.targets import Target, read_target

# Given the route, the ledger's view and whether the ledger is of use, what should become of the route.
Compute = Callable[[Route, RecordView, PluginError | None], Outcome]
Reason = Callable[[Route], bool]


@dataclass(frozen=True)
class Done:
    """What became of a route: the outcome, the route as it is now, and whether this call wrote it."""

    outcome: Outcome
    route: Route
    written: bool


@dataclass(frozen=True)
class Transaction:
    """The writes of one call on one route."""

    cluster: Cluster
    session: LedgerSession
    deadline: Deadline
    compute: Compute
    has_reason: Reason
    # The Rollout's own managed routes: the Go plugin's old entries of these names are done with after a write.
    managed_names: frozenset[str] = frozenset()

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

        def attempt(tries: int) -> Done:
            nonlocal latest
            if tries > 1:
                latest = read_target(self.cluster, latest, self.deadline)
                self.session.forget()
            return self._attempt(latest)

        return retry_on_conflict(attempt, target.ref, deadline=self.deadline)

    def _view(self, target: Target, route: Route) -> tuple[RecordView, PluginError | None]:
        if not self.has_reason(route):
            return NOTHING_RECORDED, None
        view = self.session.view(target.kind.family, target.name)
        return view, self.session.trouble

    def _attempt(self, target: Target) -> Done:
        if target.raw is None or target.resource is None:
            raise target.error or KubeError(f"{target.ref} was not read")
        route = parse_route(target.raw)
        view, trouble = self._view(target, route)
        outcome = self.compute(route, view, trouble)
        records = self.has_reason(route) and trouble is None
        added = records and view.record.union(outcome.record) != view.record
        if added:
            failure = self._record_ahead(target, outcome.record)
            if failure is not None:
                # What needs no record is still done, weights above all (D8).
                outcome, records = self.compute(route, view, failure), False
        written = outcome.route is not route
        if written:
            raw = under_version_of(target.raw, outcome.route.dump())
            route = parse_route(self.cluster.client.put(target.resource, raw, deadline=self.deadline))
        if records:
            outcome = self._settle(target, outcome, view, added=added and written)
        return Done(outcome, route, written)

    def _record_ahead(self, target: Target, record: RouteRecord) -> PluginError | None:
        """Record what is about to be written beside what is there; return why that failed."""
        try:
            self.session.put(target.kind.family, target.name, lambda found: found.union(record))
        except PluginError as error:
            return error
        return None

    def _settle(self, target: Target, outcome: Outcome, view: RecordView, *, added: bool) -> Outcome:
        """Bring the record to what stands on the route now; trouble here leaves a harmless record, and is told.

        What another process has recorded meanwhile is kept; what it swept before our rule was written is put back.
        """
        ahead = view.record.union(outcome.record)
        # The old entries are not by Rollout: those of other names may be of another one on the same route.
        done = self.managed_names & frozenset(view.legacy)
        if added:
            self.session.forget()
        elif outcome.record == view.record and not done:
            return outcome
        try:
            self.session.put(
                target.kind.family,
                target.name,
                lambda found: found.minus(ahead).union(outcome.record),
                done=done,
            )
        except PluginError as error:
            text = f"{self.session}: {target.ref} is as it should be, its record is not: {error}"
            return replace(outcome, notes=(*outcome.notes, Note("LedgerNotSwept", text)))
        return outcome
