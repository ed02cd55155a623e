"""Give back one Rollout: what would change on each route, and the change itself, written as the plugin writes.

`plan` reads and computes, `carry_out` writes by the plugin's own transaction: the route, then the record; on a conflict
both are read and computed again. What cannot be done on one route does not keep it from the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rollouts_gwapi_plugin.cli.cleanup.empty_records import is_empty_record
from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.cli.printing import difference
from rollouts_gwapi_plugin.cli.standing import RouteFound
from rollouts_gwapi_plugin.cli.subject import Subject
from rollouts_gwapi_plugin.cli.survey import look_at, survey
from rollouts_gwapi_plugin.errors import ConfigError, Conflict, NotFound, PluginError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.dispatch import reconciler_of
from rollouts_gwapi_plugin.routes.kinds import KINDS
from rollouts_gwapi_plugin.routes.managed import settled_entries
from rollouts_gwapi_plugin.routes.reconcile import Outcome, Scope
from rollouts_gwapi_plugin.routes.record import RecordView, RouteRecord
from rollouts_gwapi_plugin.service.ledger_session import LedgerSession
from rollouts_gwapi_plugin.service.targets import Target, read_target
from rollouts_gwapi_plugin.service.transaction import Transaction

MISSING: Final = "the route does not exist; its record goes"


@dataclass(frozen=True)
class RoutePlan:
    """What giving back means for one route; `error` says why it can't be done there."""

    found: RouteFound
    diff: str = ""
    drops_record: bool = False
    notes: tuple[str, ...] = ()
    error: str = ""

    @property
    def does_something(self) -> bool:
        """Whether anything would be written."""
        return bool(self.diff or self.drops_record)


@dataclass(frozen=True)
class Giving:
    """One Rollout to give back."""

    connection: Connection
    subject: Subject
    weights: bool

    def plan(self, routes: Sequence[str] = ()) -> list[RoutePlan]:
        """Return what would change; `routes` are further ones, each as KIND/NAME.

        Raises:
            PluginError: a route's name is none, or the routes can't be found at all.

        """
        found = survey(self.connection, self.subject)
        known = {(one.target.kind.family, one.target.name) for one in found}
        named = [self._named(text) for text in routes]
        found += [look_at(self.subject, one, "--route") for one in named if (one.kind.family, one.name) not in known]
        return [self._plan_route(one) for one in found]

    def carry_out(self, plans: Sequence[RoutePlan]) -> list[str]:
        """Write what the plans say; return what went wrong."""
        self.subject.renew(self.connection)
        session = self.subject.session
        session.forget()
        wrong = []
        for plan in plans:
            try:
                if plan.does_something:
                    wrong += self._write(session, plan.found.target)
            except PluginError as error:
                wrong.append(str(error))
        return wrong

    def empty_record(self) -> JsonObject | None:
        """Return the ConfigMap if it is the plugin's own and nothing is in it (any more)."""
        session = self.subject.session
        deadline = self.connection.deadline()
        try:
            value = self.connection.cluster.client.get(CONFIG_MAPS, session.namespace, session.name, deadline=deadline)
        except NotFound:
            return None
        return value if is_empty_record(value) else None

    def delete_empty_record(self) -> bool:
        """Delete the ConfigMap if it is the plugin's own and empty; return whether that was so."""
        value, session = self.empty_record(), self.subject.session
        if value is None:
            return False
        version = value["metadata"]["resourceVersion"]
        deadline = self.connection.deadline()
        try:
            self.connection.cluster.client.delete(
                CONFIG_MAPS, session.namespace, session.name, deadline=deadline, resource_version=version
            )
        except (NotFound, Conflict):
            # Gone already, or another Rollout has just recorded something.
            return False
        return True

    def _named(self, text: str) -> Target:
        kind_name, _, name = text.partition("/")
        kind = next((one for one in KINDS.values() if kind_name.lower() in {one.kind.lower(), one.plural}), None)
        if kind is None or not name:
            kinds = ", ".join(one.kind for one in KINDS.values())
            raise ConfigError(f"--route {text!r}: KIND/NAME is expected, KIND one of {kinds}")
        target = Target(kind, self.subject.namespace, name, takes_headers=False)
        return read_target(self.connection.cluster, target, self.connection.deadline())

    def _plan_route(self, found: RouteFound) -> RoutePlan:
        recorded = not found.view.record.empty
        if found.target.missing:
            return RoutePlan(found, drops_record=recorded, notes=(MISSING,) if recorded else ())
        if found.error is not None:
            return RoutePlan(found, error=f"{found.target.ref}: {found.error}")
        try:
            outcome = self._transaction(self.subject.session).prepare(found.target)
        except PluginError as error:
            return RoutePlan(found, error=f"{found.target.ref}: {error}")
        diff = difference(found.target.raw or {}, outcome.route.dump())
        gone = [f"{name} goes, which belongs to a managed route" for name in outcome.companions.obsolete]
        return RoutePlan(found, diff, recorded, (*self._notes(found), *gone))

    def _notes(self, found: RouteFound) -> Iterator[str]:
        for rule in found.alikes:
            yield f"rule {rule.place} is left: {rule.alike}; `adopt` it first if it is the plugin's"
        record = found.view.record
        names = {mark.name for one in (*record.headers.values(), *record.mirrors.values()) for mark in one.rules}
        for rule in found.rules:
            if rule.owner is None and rule.name in names:
                yield (
                    f"rule {rule.place} is left: it bears the recorded name {rule.name}, but was changed, and the"
                    " canary is not behind it; --canary NAME says what the canary was"
                )
        # Without names nothing was looked for; that they are missing is told of the whole Rollout.
        named = self.subject.desired.stable and self.subject.desired.canary
        if self.weights and found.pair is None and named:
            yield f"no weights are given back: {found.pair_error}"
        trouble = self.subject.session.trouble(found.target.kind.family)
        if trouble is not None:
            yield f"the record can't be used, so rules are known by their names only: {trouble}"

    def _write(self, session: LedgerSession, target: Target) -> list[str]:
        if target.missing:
            session.put(target.kind.family, target.name, lambda _: RouteRecord())
            return []
        done = self._transaction(session).run(target)
        return [note.text for note in done.outcome.notes if note.warning]

    def _transaction(self, session: LedgerSession) -> Transaction:
        desired = self.subject.desired

        def compute(route: Route, view: RecordView, _trouble: PluginError | None) -> Outcome:
            kind = next(one for one in KINDS.values() if one.kind == route.kind)
            return reconciler_of(route).give_back(route, desired, view, Scope(kind), weights=self.weights)

        return Transaction(
            self.connection.cluster,
            session,
            session.deadline,
            compute,
            lambda _route: True,
            lambda route, view: settled_entries(route, desired, view),
        )
