"""One call's work: what is wanted, where, and how each route is brought there (decision D21)."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rollouts_gwapi_plugin.errors import PluginError, RouteError, StepNotTakenError
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.configuration import Configuration
from rollouts_gwapi_plugin.model.kube import ObjectRef
from rollouts_gwapi_plugin.model.rollout import Rollout
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.desired import Desired, Former
from rollouts_gwapi_plugin.routes.dispatch import reconciler_of
from rollouts_gwapi_plugin.routes.kinds import RouteKind
from rollouts_gwapi_plugin.routes.label import without_labels
from rollouts_gwapi_plugin.routes.managed import settled_entries
from rollouts_gwapi_plugin.routes.notes import Note, one_a_reason
from rollouts_gwapi_plugin.routes.reconcile import Outcome, Scope
from rollouts_gwapi_plugin.routes.record import RecordView, RouteRecord
from rollouts_gwapi_plugin.service.cluster import Cluster
from rollouts_gwapi_plugin.service.ledger_session import LedgerSession
from rollouts_gwapi_plugin.service.memory import Memory, RoutePlace, Shift, Written
from rollouts_gwapi_plugin.service.reporter import Reporter
from rollouts_gwapi_plugin.service.scope import scope_of
from rollouts_gwapi_plugin.service.services import ServiceReader
from rollouts_gwapi_plugin.service.targets import Target, find_targets
from rollouts_gwapi_plugin.service.transaction import Done, Transaction

LEDGER_TROUBLE = "LedgerTrouble"

# What a call makes of one route: the route, how it takes part, the ledger's view, and why the ledger is of no use.
Computation = Callable[[Route, Scope, RecordView, PluginError | None], Outcome]


@dataclass(frozen=True)
class Work:
    """Everything that a call needs while it runs."""

    rollout: Rollout
    config: Configuration
    desired: Desired
    namespace: str
    cluster: Cluster
    deadline: Deadline
    session: LedgerSession
    services: ServiceReader
    memory: Memory
    reporter: Reporter
    # Whether the call is about weights; other calls leave them as they are.
    sets_weights: bool = False

    def targets(self) -> list[Target]:
        """Read all routes of the configuration; a selector that takes nothing is no error where there are others."""
        targets = find_targets(self.cluster, self.config, self.namespace, self.deadline)
        found = [target for target in targets if not target.selects_nothing]
        for target in targets if found else ():
            if target.selects_nothing:
                self.report(str(target.ref), Note("SelectorTakesNothing", str(target.error)))
        return found or targets

    def sweep(self, kind: RouteKind, route: str, session: LedgerSession) -> None:
        """Remove the record of a route that is gone: made anew under its name it would be the user's alone."""
        if not self.has_own_reason:
            return
        try:
            session.put(kind.family, route, lambda _: RouteRecord())
        except PluginError as error:
            gone = str(ObjectRef(kind.kind, session.namespace, route))
            text = f"{session}: the record of {gone}, which is gone, stays: {error}"
            self.report(gone, Note("LedgerNotSwept", text))

    def has_reason(self, route: Route) -> bool:
        """Whether the ledger must be read for this route (D8)."""
        return self.has_own_reason or reconciler_of(route).shows_traces(route, self.desired)

    @property
    def has_own_reason(self) -> bool:
        """Whether the Rollout or the call gives a reason to read the ledger."""
        return bool(self.desired.managed_names or self.desired.destinations)

    def run(
        self, targets: Iterable[Target], compute: Computation, otherwise: Computation | None = None
    ) -> list[PluginError]:
        """Compute all routes, write the sound ones, and return what is wrong with the others.

        `otherwise` is what to make of a route that can't take the step where another one takes it.
        """
        errors: list[PluginError] = []
        sound: list[tuple[Target, Transaction]] = []
        refused: list[tuple[Target, StepNotTakenError]] = []
        for target in targets:
            if target.error is not None:
                # What reading met names the object already.
                errors.append(target.error)
                continue
            transaction = self.transaction(target, compute)
            try:
                transaction.prepare(target)
            except StepNotTakenError as error:
                refused.append((target, error))
            except PluginError as error:
                errors.append(named(target, error))
            else:
                sound.append((target, transaction))
        if sound and otherwise is not None:
            sound += [(target, self.transaction(target, otherwise)) for target, _ in refused]
        else:
            errors += [named(target, error) for target, error in refused]
        for target, transaction in sound:
            try:
                errors += self._finish(target, self.write(target, transaction))
            except PluginError as error:
                errors.append(named(target, error))
        return errors

    def transaction(self, target: Target, compute: Computation) -> Transaction:
        """Return the transaction of one route."""
        scope = scope_of(self.cluster, target, self.desired, self.deadline)
        place = (target.kind.kind, target.namespace, target.name)
        if self.desired.label is not None and self.desired.label.enabled:
            self.memory.note_label(place, self.desired.label)

        def labelled(route: Route, view: RecordView, trouble: PluginError | None) -> Outcome:
            outcome = compute(route, scope, view, trouble)
            return replace(outcome, route=without_labels(route, outcome.route, self.memory.labels(place)))

        return Transaction(
            self.cluster,
            self.session,
            self.deadline,
            labelled,
            self.has_reason,
            lambda route, view: settled_entries(route, self.desired, view),
            self.sets_weights,
        )

    def write(self, target: Target, transaction: Transaction) -> Done:
        """Run the transaction; calls of this process on one route take turns.

        Raises:
            PluginError: the lock was not to be had in time, or as the transaction.

        """
        lock = self.memory.lock(target.kind.kind, target.namespace, target.name)
        if not lock.acquire(timeout=self.deadline.remaining()):
            raise RouteError(f"{target.ref}: other calls of this process held it for {self.deadline.limit:g} s")
        try:
            return transaction.run(target)
        finally:
            lock.release()

    def _finish(self, target: Target, done: Done) -> list[PluginError]:
        if done.written:
            self._remember(target, done)
        for note in one_a_reason(done.outcome.notes):
            self.report(str(target.ref), note)
        if not any(note.reason == LEDGER_TROUBLE for note in done.outcome.notes):
            self.reporter.settle(self.rollout, str(target.ref), LEDGER_TROUBLE, self.cluster.events)
        return [done.outcome.problem] if done.outcome.problem is not None else []

    def _remember(self, target: Target, done: Done) -> None:
        metadata, now = done.route.metadata, time.monotonic()
        before = ((target.raw or {}).get("metadata") or {}).get("generation")
        if metadata.generation != before:
            self.memory.unseen.set(metadata.uid, Written(metadata.generation, now))
            self.memory.first_seen.set((metadata.uid, metadata.generation), now)
        place = RoutePlace(target.kind, target.namespace, target.name, self.config.config_map)
        shift = Shift(self.desired.weight, self.desired.on(done.route).rule_name) if self.sets_weights else None
        self.memory.note_place(self.rollout.key, place, shift)

    def with_former_rule(self, route: Route, kind: RouteKind) -> Desired:
        """Return what is wanted, with the rules of the route that this process weighted under another `ruleName`."""
        namespace = route.metadata.namespace or self.namespace
        place = RoutePlace(kind, namespace, route.metadata.name, self.config.config_map)
        shift = (self.memory.places.get(self.rollout.key) or {}).get(place)
        if shift is None or shift.rule_name == self.desired.on(route).rule_name:
            return self.desired
        return replace(self.desired, former=Former(shift.rule_name, shift.weight))

    def report(self, about: str, note: Note) -> None:
        """Log a note, and make an Event of a warning; `about` is unlike anything else's: a route with its kind, say."""
        self.reporter.report(self.rollout, about, note, self.cluster.events)


def named(target: Target, error: PluginError) -> PluginError:
    """Return the error, with the route's name in it."""
    if str(target.ref) in str(error):
        return error
    named_error = RouteError(f"{target.ref}: {error}")
    named_error.__cause__ = error
    return named_error


def raise_all(errors: list[PluginError]) -> None:
    """Raise what is wrong: the one error as it is, several as one that has all texts.

    Raises:
        PluginError: if there is any.

    """
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise RouteError("; ".join(str(error) for error in errors)) from errors[0]
