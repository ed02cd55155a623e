"""A RouteTable put together again: routes, annotation, label, record and MirrorPolicies of one outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.companions import Companions
from rollouts_gwapi_plugin.routes.gloo.destination import service_identity
from rollouts_gwapi_plugin.routes.gloo.kept import Annotation, Kept, dump_annotation
from rollouts_gwapi_plugin.routes.gloo.managed import Managed, ManagedRoute
from rollouts_gwapi_plugin.routes.gloo.marks import LABELS, fingerprint, identity
from rollouts_gwapi_plugin.routes.gloo.pair import GlooPair
from rollouts_gwapi_plugin.routes.gloo.policies import mirror_policy
from rollouts_gwapi_plugin.routes.gloo.standing import TableStanding
from rollouts_gwapi_plugin.routes.gloo.table import Table, TableRoute, write_table
from rollouts_gwapi_plugin.routes.label import mark_in_progress
from rollouts_gwapi_plugin.routes.managed import Purpose, record_of_rule
from rollouts_gwapi_plugin.routes.reconcile import Outcome
from rollouts_gwapi_plugin.routes.record import RouteRecord, RuleMark

# The API's limit of a section's routes.
MAX_ROUTES: Final = 10_000


@dataclass(frozen=True)
class Weighted:
    """The candidates as they should be, and the annotation's entries of this Rollout then.

    `copies` are other Rollouts' mirror routes of them that change, too, by their places among the routes not ours.
    """

    candidates: Sequence[TableRoute]
    kept: tuple[Kept, ...]
    copies: Mapping[int, TableRoute] = field(default_factory=dict)


def as_they_are(standing: TableStanding) -> Weighted:
    """Return the candidates and their entries unchanged."""
    return Weighted(standing.candidates, standing.annotation.own)


def finish(standing: TableStanding, weighted: Weighted, managed: Managed, pair: GlooPair | None) -> Outcome:
    """Put everything together.

    Raises:
        RouteError: the RouteTable would be more than the API takes.

    """
    route = standing.route
    users = standing.users(weighted.candidates, weighted.copies)
    table: Table = {**users, "http": standing.order.assemble(users["http"], managed.routes)}
    count = len(table["http"])
    if count > max(MAX_ROUTES, len(standing.table["http"])):
        raise RouteError(f"{route}: spec.http: {count} routes needed, Gloo takes {MAX_ROUTES}; nothing was written")
    entries = Annotation(weighted.kept, standing.annotation.others)
    annotations = dump_annotation(route.metadata.annotations or {}, entries, standing.desired.rollout, str(route))
    record = _record(standing, weighted, managed)
    stands = not record.empty or _canary_has_weight(weighted, pair)
    marked = mark_in_progress(
        write_table(route, table, annotations), standing.desired.label, standing.desired.rollout, standing=stands
    )
    notes = (*standing.annotation.notes, *standing.lost, *managed.notes)
    return Outcome(marked, record, notes, companions=_companions(standing, managed, route))


def _canary_has_weight(weighted: Weighted, pair: GlooPair | None) -> bool:
    if pair is None:
        return False
    return any(
        raw.get("weight") and pair.is_canary(raw) and any(map(pair.is_stable, item.destinations))
        for item in weighted.candidates
        for raw in item.destinations
    ) or any(entry.stable is not None for entry in weighted.kept)


def _record(standing: TableStanding, weighted: Weighted, managed: Managed) -> RouteRecord:
    present = (service_identity(raw, standing.namespace) for item in weighted.candidates for raw in item.destinations)
    record = RouteRecord(experiments=tuple(dict.fromkeys(found for found in present if found in standing.experiments)))
    experiment_names = [name for _, _, _, name in standing.experiments]
    for item in managed.routes:
        mark = RuleMark(item.item.name, (fingerprint(item.item.raw, experiment_names),))
        known = standing.record_of(item.owned)
        record = record.union(record_of_rule(item.owned, mark, item.step or (known.step if known else None)))
    return record


def _companions(standing: TableStanding, managed: Managed, route: Route) -> Companions:
    """Return the policies of the mirror routes that are to stand, and the names of those whose routes are not."""
    mirrors = [item for item in managed.routes if item.owned.purpose is Purpose.MIRROR]
    wanted = tuple(mirror_policy(item, route, standing.desired.rollout) for item in mirrors if item.percent is not None)
    stays = {_policy_name(item) for item in mirrors}
    known = [_policy_name(item) for item in standing.managed_routes() if item.owned.purpose is Purpose.MIRROR]
    known += [
        identity(standing.desired.rollout, standing.key, mark.name)
        for record in standing.view.record.mirrors.values()
        for mark in record.rules
    ]
    return Companions(wanted, tuple(dict.fromkeys(name for name in known if name not in stays)))


def _policy_name(item: ManagedRoute) -> str:
    return item.item.labels.get(LABELS[Purpose.MIRROR], "")
