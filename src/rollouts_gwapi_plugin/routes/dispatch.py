"""Which reconcilers a kind of route has: a row an API group.

The callers of reconcilers ask here and know no kind; each row has the functions of `reconcile` with the same meaning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes import reconcile
from rollouts_gwapi_plugin.routes.desired import Desired, ManagedStep
from rollouts_gwapi_plugin.routes.gloo import reconcile as gloo
from rollouts_gwapi_plugin.routes.gloo.status import table_verdict
from rollouts_gwapi_plugin.routes.kinds import GATEWAY_GROUP, GLOO_GROUP
from rollouts_gwapi_plugin.routes.reconcile import Outcome, Scope
from rollouts_gwapi_plugin.routes.record import RecordView
from rollouts_gwapi_plugin.routes.status import Verdict, status_verdict


class GiveBack(Protocol):
    """`reconcile.give_back`."""

    def __call__(self, route: Route, desired: Desired, view: RecordView, scope: Scope, *, weights: bool) -> Outcome:
        """Remove everything of the Rollout from a route."""


@dataclass(frozen=True)
class Reconciler:
    """All that is done with a route; `reconcile` says what each does."""

    set_weight: Callable[[Route, Desired, RecordView, Scope], Outcome]
    set_managed_route: Callable[[Route, ManagedStep, Desired, RecordView, Scope], Outcome]
    remove_managed_routes: Callable[[Route, Desired, RecordView, Scope], Outcome]
    give_back: GiveBack
    services_needed: Callable[[Route, Desired, RecordView, Scope], tuple[str, ...]]
    wrong_weights: Callable[[Route, Desired, RecordView, Scope], str]
    shows_traces: Callable[[Route, Desired], bool]
    adds: Callable[[Route, Outcome], bool]
    is_at: Callable[[Route, Desired, int], bool]
    verdict: Callable[[Route, frozenset[str]], Verdict]


RECONCILERS: Final[Mapping[str, Reconciler]] = {
    GATEWAY_GROUP: Reconciler(
        set_weight=reconcile.set_weight,
        set_managed_route=reconcile.set_managed_route,
        remove_managed_routes=reconcile.remove_managed_routes,
        give_back=reconcile.give_back,
        services_needed=reconcile.services_needed,
        wrong_weights=reconcile.wrong_weights,
        shows_traces=reconcile.shows_traces,
        adds=reconcile.adds,
        is_at=reconcile.is_at,
        verdict=status_verdict,
    ),
    GLOO_GROUP: Reconciler(
        set_weight=gloo.set_weight,
        set_managed_route=gloo.set_managed_route,
        remove_managed_routes=gloo.remove_managed_routes,
        give_back=gloo.give_back,
        services_needed=gloo.services_needed,
        wrong_weights=gloo.wrong_weights,
        shows_traces=gloo.shows_traces,
        adds=gloo.adds,
        is_at=gloo.is_at,
        verdict=table_verdict,
    ),
}


def reconciler_of(route: Route) -> Reconciler:
    """Return the reconcilers of a route's kind."""
    return RECONCILERS.get(route.api_version.rpartition("/")[0], RECONCILERS[GATEWAY_GROUP])
