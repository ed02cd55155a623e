"""What the Rollouts of the machines do."""

from tests.service.world import header_step
from tests.stateful.records import Json, Pair

Plan = list[Json]


def header(name: str, header: str = "X-A", value: str = "1") -> Json:
    """Make a setHeaderRoute step."""
    return {"setHeaderRoute": header_step(name, header, value)}


def mirror(name: str) -> Json:
    """Make a setMirrorRoute step."""
    return {"setMirrorRoute": {"name": name, "percentage": 30, "match": [{"method": {"exact": "GET"}}]}}


PAUSE: Json = {"pause": {}}
EXPERIMENT: Json = {"experiment": {"templates": [{"name": "base", "specRef": "stable", "weight": 5}]}}
NO_MIRROR: Json = {"setMirrorRoute": {"name": "m-m"}}
PLANS: tuple[Plan, ...] = (
    [header("m-a"), {"setWeight": 20}, PAUSE, {"setWeight": 60}, PAUSE],
    [{"setCanaryScale": {"replicas": 1}}, header("m-a"), PAUSE, {"setWeight": 10}, header("m-b", "X-B"), PAUSE],
    [{"setWeight": 10}, mirror("m-m"), PAUSE, NO_MIRROR, {"setWeight": 50}],
    [header("m-a"), mirror("m-m"), {"setWeight": 30}, PAUSE, {"setHeaderRoute": {"name": "m-a"}}, PAUSE],
    [{"setWeight": 20}, EXPERIMENT, {"setWeight": 40}, PAUSE],
    [header("m-a"), EXPERIMENT, header("m-b", "X-A", "2"), PAUSE],
)
# Stable out of its routes in the middle, with managed routes and experiments.
FULL_PLANS: tuple[Plan, ...] = (
    [header("m-a"), {"setWeight": 20}, PAUSE, mirror("m-m"), {"setWeight": 100}, PAUSE, {"setWeight": 5}],
    [mirror("m-m"), {"setWeight": 100}, PAUSE, header("m-b", "X-B"), NO_MIRROR, PAUSE],
    [{"setWeight": 100}, PAUSE, {"setWeight": 10}, EXPERIMENT, {"setWeight": 0}, PAUSE],
)
SIDE_PLAN: Plan = [header("m-side"), {"setWeight": 50}, PAUSE]
MANAGED = {"web": ("m-b", "m-a", "m-m"), "side": ("m-side",)}


def rollout(pair: Pair, steps: Plan, plugins: Json) -> Json:
    """Return the pair's Rollout with these steps."""
    routing = {"managedRoutes": [{"name": name} for name in MANAGED[pair.rollout]], "plugins": plugins}
    canary = {"stableService": pair.stable, "canaryService": pair.canary, "steps": steps, "trafficRouting": routing}
    metadata = {"name": pair.rollout, "namespace": "shop", "uid": f"uid-{pair.rollout}"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {**metadata, "resourceVersion": "1", "generation": 1},
        "spec": {
            "replicas": 4,
            "strategy": {"canary": canary},
            "template": {"spec": {"containers": [{"image": "v1"}]}},
        },
    }
