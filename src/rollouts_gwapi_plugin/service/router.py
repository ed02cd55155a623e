"""The eight calls of the controller (semantics 1): configuration, routes, ledger and reconcilers put together.

Every call is idempotent and converges: it reads all routes first, computes each, then writes each sound one, and
reports each broken one. Nothing that it must know is kept in memory only.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from rollouts_gwapi_plugin.errors import LedgerError, PluginError, StepNotTakenError
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.log import bound, get_logger
from rollouts_gwapi_plugin.model.calls import (
    HeaderRouteCall,
    MirrorRouteCall,
    RemoveManagedRoutesCall,
    RolloutCall,
    UpdateHashCall,
    Verification,
    WeightCall,
)
from rollouts_gwapi_plugin.model.configuration import parse_configuration
from rollouts_gwapi_plugin.model.rollout import Rollout, SetHeaderRoute
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.observe.metrics import Metrics
from rollouts_gwapi_plugin.routes.desired import (
    Desired,
    ManagedStep,
    base_desired,
    clamp_weight,
    destinations_of,
    progressing,
)
from rollouts_gwapi_plugin.routes.dispatch import reconciler_of
from rollouts_gwapi_plugin.routes.notes import Note, one_a_reason
from rollouts_gwapi_plugin.routes.reconcile import Outcome, Scope
from rollouts_gwapi_plugin.routes.record import RecordView
from rollouts_gwapi_plugin.routes.steps import not_taken
from rollouts_gwapi_plugin.service import TYPE_NAME
from rollouts_gwapi_plugin.service.cluster import Connector
from rollouts_gwapi_plugin.service.leaving import give_back_left_routes
from rollouts_gwapi_plugin.service.ledger_session import LedgerSession
from rollouts_gwapi_plugin.service.memory import Memory
from rollouts_gwapi_plugin.service.plugin_key import plugin_key
from rollouts_gwapi_plugin.service.reporter import Reporter
from rollouts_gwapi_plugin.service.scope import scope_of
from rollouts_gwapi_plugin.service.services import ServiceReader
from rollouts_gwapi_plugin.service.targets import Target, read_target, route_namespace
from rollouts_gwapi_plugin.service.transaction import ManagedRefusedError
from rollouts_gwapi_plugin.service.verify import GAVE_UP, REASON, Verifier
from rollouts_gwapi_plugin.service.work import LEDGER_TROUBLE, Work, named, raise_all

# The host has no timeout of its own and ten workers: a call must end whatever the API server does.
CALL_SECONDS: Final = 30.0

log = get_logger()


class TrafficRouter:
    """The service behind both transports; thread-safe."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._connector = Connector(settings, metrics)
        self._memory = Memory()
        self._reporter = Reporter()

    def init_plugin(self) -> None:
        """Connect to the API server's configuration; a failure is met again, and told, by each later call."""
        self._connector.cluster()

    def type_name(self) -> str:
        """Return the type that the controller shows."""
        return TYPE_NAME

    def update_hash(self, call: UpdateHashCall) -> None:
        """Do nothing: routes know Services, not pod hashes."""

    def set_weight(self, call: WeightCall) -> None:
        """Bring every configured route to the weight, with experiments, and restore managed routes (D17)."""
        with self._call("SetWeight", call):
            work, notes = self._weight_work(call)
            suppressed = self._memory.removed.get(call.rollout.key) == call.rollout.metadata.resource_version
            heal = work.config.self_heal and progressing(call.rollout) and not suppressed
            work = replace(work, desired=replace(work.desired, heal=heal), sets_weights=True)
            for note in one_a_reason(notes):
                work.report("weights", note)
            targets = work.targets()
            errors = work.run(targets, lambda *found: _compute_weight(work, *found))
            give_back_left_routes(work, targets)
            raise_all([*errors, *self._not_removed(call, errors)])

    def verify_weight(self, call: WeightCall) -> Verification:
        """Tell whether routes and gateways are at the weight; never raises (D19)."""
        try:
            with self._call("VerifyWeight", call):
                self._memory.removed.forget(call.rollout.key)
                return self._verify(call)
        except PluginError as error:
            log.warning("the weight can't be verified", rollout=call.rollout.key, reason=str(error))
        except Exception:
            # Of an error the controller would promote: even one of ours must not become that.
            log.exception("the weight can't be verified, by a bug", rollout=call.rollout.key)
        return Verification.NOT_VERIFIED

    def set_header_route(self, call: HeaderRouteCall) -> None:
        """Set or remove one managed header route on each route that takes header routes."""
        with self._call("SetHeaderRoute", call):
            self._set_managed(call.rollout, call.header_route)

    def set_mirror_route(self, call: MirrorRouteCall) -> None:
        """Set or remove one managed mirror route on each HTTPRoute and GRPCRoute."""
        with self._call("SetMirrorRoute", call):
            self._set_managed(call.rollout, call.mirror_route)

    def remove_managed_routes(self, call: RemoveManagedRoutesCall) -> None:
        """Remove all managed routes of the Rollout; a route that is gone is fine.

        What is wrong with a route is raised by the SetWeight that follows, after its own work.
        """
        with self._call("RemoveManagedRoutes", call):
            self._memory.removed.set(call.rollout.key, call.rollout.metadata.resource_version)
            work = self._work(call.rollout)
            targets = work.targets()
            able = [target for target in targets if target.kind.match is not None]
            for target in able:
                if target.is_deleted:
                    text = f"{target.ref} is gone, and with it what was to be removed"
                    work.report(str(target.ref), Note("RouteGone", text, warning=False))
                    work.sweep(target.kind, target.name, work.session)
            present = [target for target in able if not target.missing]
            errors = work.run(present, lambda *found: _compute_removal(work, *found))
            give_back_left_routes(work, targets)
            # Raised, they would end the reconcile before the SetWeight that takes an abort's traffic off the canary.
            self._memory.unremoved.set(call.rollout.key, (call.rollout.metadata.resource_version, tuple(errors)))
            for error in errors:
                log.warning("managed routes could not be removed; the reconcile's SetWeight says so", reason=str(error))

    def _not_removed(self, call: WeightCall, told: list[PluginError]) -> list[PluginError]:
        """Return what the RemoveManagedRoutes of the same reconcile could not do, where that is not told already."""
        version, left = self._memory.unremoved.get(call.rollout.key) or ("", ())
        self._memory.unremoved.forget(call.rollout.key)
        texts = {str(error) for error in told}
        current = version == call.rollout.metadata.resource_version
        return [error for error in left if str(error) not in texts] if current else []

    def close(self, seconds: float) -> None:
        """Make the Events that wait, for so long at most."""
        self._connector.close(seconds)

    @contextmanager
    def _call(self, method: str, call: RolloutCall) -> Iterator[None]:
        """Bind log lines to the call and count it."""
        started, outcome = time.monotonic(), "ok"
        with bound(call=method, rollout=call.rollout.key):
            try:
                yield
            except BaseException as error:
                outcome = type(error).__name__
                raise
            finally:
                self._metrics.call_done(method, outcome, time.monotonic() - started)

    def _work(self, rollout: Rollout) -> Work:
        """Return the call's work.

        Raises:
            PluginError: no connection, no configuration, or one that can't be used.

        """
        cluster = self._connector.cluster()
        deadline = Deadline.after(CALL_SECONDS)
        key = plugin_key(rollout.traffic_routing.plugins, self._settings, rollout.key)
        config = parse_configuration(rollout.traffic_routing.plugins[key], key)
        namespace = route_namespace(rollout, config, self._settings.allowed_namespaces)
        session = LedgerSession(
            client=cluster.client,
            namespace=namespace,
            name=config.config_map,
            rollout=rollout.key,
            uid=rollout.metadata.uid,
            deadline=deadline,
            lock=self._memory.lock("ConfigMap", namespace, config.config_map),
        )
        work = Work(
            rollout=rollout,
            config=config,
            desired=base_desired(rollout, config),
            namespace=namespace,
            cluster=cluster,
            deadline=deadline,
            session=session,
            services=ServiceReader(cluster.client, deadline),
            memory=self._memory,
            reporter=self._reporter,
        )
        for name in config.unknown_keys:
            text = (
                f"Rollout {rollout.key}: plugins[{key!r}] has the key {name!r}, which this plugin does not know; remove"
                " it, or see docs/configuration.md for the right one"
            )
            work.report(name, Note("UnknownKey", text))
        return work

    def _weight_work(self, call: WeightCall) -> tuple[Work, tuple[Note, ...]]:
        work = self._work(call.rollout)
        base = work.desired
        weight, clamped = clamp_weight(call.desired_weight, base.max_weight, base.rollout)
        pair = (base.stable, base.canary)
        destinations, over = destinations_of(call.additional_destinations, base.rollout, base.max_weight, weight, pair)
        desired = replace(base, weight=weight, destinations=destinations)
        return replace(work, desired=desired), (*clamped, *over)

    def _set_managed(self, rollout: Rollout, step: ManagedStep) -> None:
        status = rollout.status
        if status.abort or status.promote_full or rollout.fully_promoted:
            # The controller sends the step of the index in these reconciles, too, right after it removed all (1.3).
            return
        work = self._work(rollout)
        work = replace(work, desired=_with_step(work.desired, step))
        targets = work.targets()
        able = [target for target in targets if target.kind.match is not None]
        if isinstance(step, SetHeaderRoute):
            able = [target for target in able if target.takes_headers]
        if not able:
            work.report(*_nobody_takes(work, step))
        errors = work.run(
            able,
            lambda *found: _compute_managed(work, step, *found),
            otherwise=lambda *found: _compute_not_taken(work, step, *found),
        )
        give_back_left_routes(work, targets)
        raise_all(errors)

    def _verify(self, call: WeightCall) -> Verification:
        work, _ = self._weight_work(call)
        if work.config.verify == "off":
            return Verification.VERIFIED
        promoted_rest = call.rollout.fully_promoted and work.desired.weight == 0
        verifier = Verifier(
            memory=self._memory,
            config=work.config,
            names=frozenset({work.desired.stable, work.desired.canary, *(d.name for d in work.desired.destinations)}),
            deadline=work.deadline,
            read=lambda target: read_target(work.cluster, target, work.deadline),
            wrong=lambda route, target: _wrong(work, route, target),
            may_wait=not promoted_rest,
        )
        verified = Verification.VERIFIED
        for target, note in verifier.problems(work.targets()):
            about = str(target.ref)
            if note is None:
                self._reporter.settle(call.rollout, about, REASON, work.cluster.events)
                continue
            work.report(about, note)
            if note.reason != GAVE_UP:
                verified = Verification.NOT_VERIFIED
        return verified


def _with_step(desired: Desired, step: ManagedStep) -> Desired:
    """Return `desired` with the step of the call among the Rollout's own, where it is not already."""
    names = desired.managed_names if step.name in desired.managed_names else (*desired.managed_names, step.name)
    return replace(desired, managed_names=names, all_steps=(*desired.all_steps, step))


def _nobody_takes(work: Work, step: ManagedStep) -> tuple[str, Note]:
    """Return what the note is about, and the note."""
    about = f"{'setHeaderRoute' if isinstance(step, SetHeaderRoute) else 'setMirrorRoute'} {step.name}"
    text = (
        f"Rollout {work.rollout.key}: no configured route takes the step {about}; it needs an HTTPRoute or"
        " GRPCRoute" + (" with useHeaderRoutes: true" if isinstance(step, SetHeaderRoute) else "")
    )
    return about, Note("StepTakenByNoRoute", text)


def _trouble_note(work: Work, error: PluginError, what: str) -> Note:
    return Note(LEDGER_TROUBLE, f"{work.session}: {error}; {what}")


def _compute_weight(work: Work, route: Route, scope: Scope, view: RecordView, trouble: PluginError | None) -> Outcome:
    desired = work.with_former_rule(route, scope.kind)
    needed = reconciler_of(route).services_needed(route, desired, view, scope)
    notes: tuple[Note, ...] = ()
    if isinstance(trouble, ManagedRefusedError):
        desired = replace(desired, heal=False, keep_managed=True)
        text = f"{route}: managed routes are left as they are, since the API server refuses the change: {trouble}"
        notes = (Note("ManagedRouteNotRestored", text),)
    elif trouble is not None:
        desired = replace(desired, heal=False, keep_managed=True)
        notes = (_trouble_note(work, trouble, "weights are set all the same, managed routes are not restored"),)
        if needed:
            problem = f"experiment backends can't be recorded in {work.session}, so they are not set: {trouble}"
            desired = replace(desired, destination_problem=problem)
    if needed and not desired.destination_problem:
        desired = work.services.with_ports(desired, needed)
    outcome = reconciler_of(route).set_weight(route, desired, view, scope)
    return replace(outcome, notes=(*notes, *outcome.notes))


def _compute_managed(
    work: Work, step: ManagedStep, route: Route, scope: Scope, view: RecordView, trouble: PluginError | None
) -> Outcome:
    desired = replace(work.desired, keep_managed=trouble is not None)
    outcome = reconciler_of(route).set_managed_route(route, step, desired, view, scope)
    if trouble is not None and view.record.union(outcome.record) != view.record and step.match:
        raise LedgerError(
            f"{route}: managed route {step.name} is not set, since it can't be recorded in {work.session}: {trouble}"
        ) from trouble
    return outcome


def _compute_not_taken(
    work: Work, step: ManagedStep, route: Route, scope: Scope, view: RecordView, trouble: PluginError | None
) -> Outcome:
    """Leave a route out of a step that another one takes; what an earlier step of the name made there goes."""
    try:
        return _compute_managed(work, step, route, scope, view, trouble)
    except StepNotTakenError as error:
        gone = step.model_copy(update={"match": ()})
        outcome = _compute_managed(work, gone, route, scope, view, trouble)
        return outcome.with_notes(not_taken(str(route), step.name, error))


def _compute_removal(work: Work, route: Route, scope: Scope, view: RecordView, trouble: PluginError | None) -> Outcome:
    outcome = reconciler_of(route).remove_managed_routes(route, work.desired, view, scope)
    if trouble is None:
        return outcome
    note = _trouble_note(work, trouble, "managed routes are removed by their names only")
    return replace(outcome, notes=(note, *outcome.notes))


def _wrong(work: Work, route: Route, target: Target) -> str:
    view = RecordView()
    if work.has_reason(route):
        view, _ = work.session.view(target.kind.family, target.name)
    try:
        scope = scope_of(work.cluster, target, work.desired, work.deadline)
        return reconciler_of(route).wrong_weights(route, work.desired, view, scope)
    except PluginError as error:
        return str(named(target, error))
