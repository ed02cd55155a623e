"""Who lives in the stateful property of RouteTables: two Rollouts, their plans, the RouteTable, a plugin that dies.

The RouteTable has routes of every section, weighted siblings, a canary of the user's own and one pinned to the canary.
"""

from tests.service.gloo.world import KEY, destination, http, table
from tests.stateful.gloo_model import GlooPair, Json
from tests.stateful.machine import PLANS, InProcess

from rollouts_gwapi_plugin.service.router import TrafficRouter

PAIRS = (GlooPair("shop/web", "s", "c"), GlooPair("shop/side", "t", "d"))
# Beside those of the other machine: stable out of its routes in the middle, with managed routes and experiments.
MORE_PLANS: list[list[Json]] = [
    [PLANS[0][0], {"setWeight": 20}, {"pause": {}}, PLANS[2][1], {"setWeight": 100}, {"pause": {}}, {"setWeight": 5}],
    [PLANS[2][1], {"setWeight": 100}, {"pause": {}}, PLANS[1][4], {"setMirrorRoute": {"name": "m-m"}}, {"pause": {}}],
    [{"setWeight": 100}, {"pause": {}}, {"setWeight": 10}, PLANS[4][1], {"setWeight": 0}, {"pause": {}}],
]
SIDE_PLAN: list[Json] = [
    {"setHeaderRoute": {"name": "m-side", "match": [{"headerName": "X-S", "headerValue": {"exact": "1"}}]}},
    {"setWeight": 50},
    {"pause": {}},
]
WRITTEN = ("routetables", "configmaps", "mirrorpolicies")


class MortalPlugin(InProcess):
    """The plugin in this process; it can die after a delete, too."""

    def _start(self) -> TrafficRouter:
        router = super()._start()
        client = router._connector.cluster().client
        client.delete = self._dying(client.delete)  # type: ignore[method-assign]
        return router


def manifest() -> Json:
    """Return the user's RouteTable."""
    own = {**destination("c", 0), "port": {"name": "canary"}, "retries": 2}
    return table(
        http("s", "main", matchers=[{"uri": {"prefix": "/a"}}], labels={"team/policy": "x"}),
        http("s60 x40", "shared", matchers=[{"uri": {"prefix": "/b"}}], forwardTo={"pathRewrite": "/"}, later={"a": 1}),
        {"name": "own", "forwardTo": {"destinations": [destination("s", 100), own]}, "matchers": [{"method": "PUT"}]},
        http("c", "pinned", matchers=[{"uri": {"exact": "/pinned"}}]),
        http("t y20", "side", matchers=[{"uri": {"prefix": "/t"}}]),
        http("other", "free"),
        tcp=({**http("s70 x30"), "matchers": [{"port": 1}]},),
        tls=({**http("s"), "matchers": [{"sniHosts": ["a"]}]},),
    )


def rollout(name: str, pair: GlooPair, steps: list[Json], managed: list[str]) -> Json:
    """Return a Rollout of the pair with these steps."""
    plugins = {KEY: {"routeTableSelector": {"name": "web"}}}
    routing = {"managedRoutes": [{"name": item} for item in managed], "plugins": plugins}
    canary = {"stableService": pair.stable, "canaryService": pair.canary, "steps": steps, "trafficRouting": routing}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1},
        "spec": {
            "replicas": 4,
            "strategy": {"canary": canary},
            "template": {"spec": {"containers": [{"image": "v1"}]}},
        },
    }
