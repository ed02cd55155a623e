"""Routes that left the configuration while something of the Rollout stands on them are given back (decision D29).

They are known from the ledger where it was read, else from this process's memory. Managed rules, experiment backends
and our label entry go in any case; the weights only where this process wrote the live ones.
"""

from collections.abc import Iterable
from dataclasses import replace

from rollouts_gwapi_plugin.errors import KindNotFound, NotFound, PluginError
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.dispatch import reconciler_of
from rollouts_gwapi_plugin.routes.kinds import KINDS
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.reconcile import Outcome, Scope
from rollouts_gwapi_plugin.routes.record import RecordView
from rollouts_gwapi_plugin.service.ledger_session import LedgerSession
from rollouts_gwapi_plugin.service.memory import RoutePlace, Shift
from rollouts_gwapi_plugin.service.targets import Target, read_target
from rollouts_gwapi_plugin.service.work import Work


def give_back_left_routes(work: Work, targets: Iterable[Target]) -> None:
    """Give back each route that this Rollout stood on and that is configured no more; trouble is told, not raised."""
    listed = list(targets)
    configured = {(target.kind.family, target.namespace, target.name) for target in listed}
    # Where a selector could not be asked, any route of its kind may be configured still.
    unknown = {target.kind.family for target in listed if target.is_selector and not target.selects_nothing}
    remembered = work.memory.places.get(work.rollout.key) or {}
    places = {**dict.fromkeys(_recorded(work)), **remembered}
    for place, shift in places.items():
        if place.kind.family in unknown or (place.kind.family, place.namespace, place.name) in configured:
            continue
        try:
            _give_back(work, place, shift)
        except PluginError as error:
            if isinstance(error, NotFound) and not isinstance(error, KindNotFound):
                work.memory.drop_place(work.rollout.key, place)
                work.sweep(place.kind, place.name, _session(work, place))
                continue
            text = f"{place} left the configuration and can't be given back: {error}"
            work.report(str(place), Note("RouteNotGivenBack", text))


def _recorded(work: Work) -> list[RoutePlace]:
    if not work.has_own_reason:
        return []
    places = []
    # Another family's routes are those of the Rollout's other plugin, if it has one.
    for family in work.config.known_families:
        if work.session.trouble(family) is None:
            names = work.session.ledger(family).routes_of(work.rollout.key)
            places += [RoutePlace(KINDS[family], work.namespace, name, work.config.config_map) for name in names]
    return places


def _session(work: Work, place: RoutePlace) -> LedgerSession:
    lock = work.memory.lock("ConfigMap", place.namespace, place.config_map)
    return work.session.at(place.namespace, place.config_map, lock)


def _give_back(work: Work, place: RoutePlace, shift: Shift | None) -> None:
    there = replace(work, session=_session(work, place))
    target = read_target(
        work.cluster, Target(place.kind, place.namespace, place.name, takes_headers=False), work.deadline
    )
    if target.error is not None:
        raise target.error

    def compute(route: Route, scope: Scope, view: RecordView, _trouble: PluginError | None) -> Outcome:
        reconciler = reconciler_of(route)
        if shift is None:
            return reconciler.give_back(route, work.desired, view, scope, weights=False)
        # The rule that was weighted is the one that was configured then.
        desired = replace(work.desired, rule_name=shift.rule_name)
        wrote = reconciler.is_at(route, desired, shift.weight)
        return reconciler.give_back(route, desired, view, scope, weights=wrote)

    done = there.write(target, there.transaction(target, compute))
    work.memory.drop_place(work.rollout.key, place)
    if done.written:
        text = f"{target.ref} left the configuration and was given back: no rule, backend or label of ours is on it"
        work.report(str(place), Note("RouteGivenBack", text, warning=False))
