"""One route and its record, written in an order that can't orphan a rule (decision D6).

Adding: the ledger first, then the route. Removing: the route first, then the ledger. Changing: the record recognises
the old and the new rule until the route's write is known to have succeeded. Both writes go under the version that was
read; on a conflict both are read again and all is computed again. So at no crash point is there a rule of ours without
a record.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rollouts_gwapi_plugin.errors import Conflict, KubeError, PluginError
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
        writes: list[Route] = []

        def attempt(tries: int) -> Done:
            nonlocal latest
            if tries > 1:
                latest = read_target(self.cluster, latest, self.deadline)
                self.session.forget()
            return self._attempt(latest, writes)

        done = retry_on_conflict(attempt, target.ref, deadline=self.deadline)
        return replace(done, written=bool(writes))

    def _view(self, target: Target, route: Route) -> tuple[RecordView, PluginError | None]:
        if not self.has_reason(route):
            return NOTHING_RECORDED, None
        view = self.session.view(target.kind.family, target.name)
        return view, self.session.trouble

    def _attempt(self, target: Target, writes: list[Route]) -> Done:
        if target.raw is None or target.resource is None:
            raise target.error or KubeError(f"{target.ref} was not read")
        route = parse_route(target.raw)
        view, trouble = self._view(target, route)
        outcome = self.compute(route, view, trouble)
        records = self.has_reason(route) and trouble is None
        adds = records and _adds(route, outcome.route)
        if adds or (records and view.record.union(outcome.record) != view.record):
            failure = self._record_ahead(target, outcome.record, touch=adds)
            if failure is not None:
                # What needs no record is still done, weights above all (D8).
                outcome, records, adds = self.compute(route, view, failure), False, False
        if outcome.route is not route:
            raw = under_version_of(target.raw, outcome.route.dump())
            route = parse_route(self.cluster.client.put(target.resource, raw, deadline=self.deadline))
            writes.append(route)
        if records:
            outcome = self._settle(target, outcome, view, added=adds)
        return Done(outcome, route, written=bool(writes))

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

    def _settle(self, target: Target, outcome: Outcome, view: RecordView, *, added: bool) -> Outcome:
        """Bring the record to what stands on the route now; trouble here leaves a harmless record, and is told.

        What another process has recorded meanwhile is kept; what it swept before our rule was written is put back. A
        sweep goes under the version that the call began with: if another process wrote the ledger since, it may have
        added the very rule whose mark is to go, so the route is looked at again.

        Raises:
            Conflict: read both again.

        """
        ahead = view.record.union(outcome.record)
        # The old entries are not by Rollout: those of other names may be of another one on the same route.
        done = self.managed_names & frozenset(view.legacy)
        if not added and outcome.record == view.record and not done:
            return outcome
        try:
            self.session.put(
                target.kind.family,
                target.name,
                lambda found: found.minus(ahead).union(outcome.record),
                done=done,
                touch=added,
                again=added,
            )
        except Conflict:
            raise
        except PluginError as error:
            text = f"{self.session}: {target.ref} is as it should be, its record is not: {error}"
            return replace(outcome, notes=(*outcome.notes, Note("LedgerNotSwept", text)))
        return outcome


def _adds(before: Route, after: Route) -> bool:
    """Whether a rule or a backend is on the route that was not: what must not be there without a record."""
    names = {rule.name for rule in before.rules}
    backends = [sum(len(rule.backends) for rule in route.rules) for route in (before, after)]
    return any(rule.name not in names for rule in after.rules) or backends[1] > backends[0]
