"""What holds for the calls of every reconcile, whatever users and pods do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.host import actions
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, ReplicaSet
from rollouts_gwapi_plugin.embedded.host.sequence import Plan
from rollouts_gwapi_plugin.model.calls import (
    HeaderRouteCall,
    MirrorRouteCall,
    RemoveManagedRoutesCall,
    RolloutCall,
    UpdateHashCall,
    WeightCall,
)

MODELS: dict[str, type[RolloutCall]] = {
    "UpdateHash": UpdateHashCall,
    "SetWeight": WeightCall,
    "VerifyWeight": WeightCall,
    "SetHeaderRoute": HeaderRouteCall,
    "SetMirrorRoute": MirrorRouteCall,
    "RemoveManagedRoutes": RemoveManagedRoutesCall,
}
STEPS = st.lists(
    st.sampled_from(
        [
            {"setWeight": 0},
            {"setWeight": 30},
            {"setWeight": 100},
            {"pause": {}},
            {"setCanaryScale": {"replicas": 0}},
            {"setCanaryScale": {"matchTrafficWeight": True}},
            {"setHeaderRoute": {"name": "h", "match": [{"headerName": "a", "headerValue": {"exact": "1"}}]}},
            {"setMirrorRoute": {"name": "m", "percentage": 50, "match": [{"method": {"exact": "GET"}}]}},
        ]
    ),
    max_size=5,
)


def some_available(share: int) -> Callable[[Cluster], Cluster]:
    """Return a change after which only a share of the wanted pods is available."""

    def change(cluster: Cluster) -> Cluster:
        found = {
            name: ReplicaSet(one.desired, one.desired * share // 100, one.scale_down_at)
            for name, one in cluster.replica_sets.items()
        }
        return replace(cluster, replica_sets=found)

    return change


CHANGES = st.sampled_from(
    [
        actions.promote,
        actions.promote_full,
        actions.abort,
        actions.retry,
        lambda cluster: actions.new_revision(cluster, "v2"),
        lambda cluster: actions.new_revision(cluster, "v3"),
        lambda cluster: actions.set_paused(cluster, paused=True),
        lambda cluster: actions.set_paused(cluster, paused=False),
        Cluster.all_available,
        some_available(0),
        some_available(60),
    ]
)
ORDER = [
    "RemoveManagedRoutes",
    "SetHeaderRoute",
    "SetMirrorRoute",
    "SetWeight",
    "UpdateHash",
    "SetWeight",
    "VerifyWeight",
]


def in_order(methods: list[str]) -> bool:
    """Tell whether the methods stand in the controller's order."""
    rest = iter(ORDER)
    return all(method in rest for method in methods)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.lists(CHANGES, max_size=25), st.booleans(), st.sampled_from([(1, 7), (1, 8), (1, 9)]))
def test_every_reconcile(
    rollout: Callable[..., dict[str, Any]],
    raw_world: Callable[..., Any],
    steps: list[dict[str, Any]],
    changes: list[Callable[[Cluster], Cluster]],
    dynamic: bool,  # noqa: FBT001 - hypothesis gives arguments by position
    version: tuple[int, int],
) -> None:
    """Calls stand in order, weights in range and alike, models read them, and any story can be brought to its end."""
    world = raw_world(rollout(*steps, dynamicStableScale=dynamic), version=version)
    for change in [Cluster.all_available, *changes]:
        for _ in range(3):
            check(world.controller.reconcile().plan, world.cluster)
        world.controller.act(change)
        world.now += 10

    world.controller.act(lambda cluster: actions.set_paused(actions.retry(cluster), paused=False))
    world.settle()
    world.controller.act(actions.promote_full)
    last = world.settle()[-1]
    assert last == ["B", "RemoveManagedRoutes", "UpdateHash", "SetWeight 0", "VerifyWeight 0"]
    assert world.cluster.read.fully_promoted


def check(plan: Plan, cluster: Cluster) -> None:
    """Check the calls of one reconcile."""
    methods = [call.method for call in plan.calls]
    assert in_order(methods)
    parsed = [MODELS[call.method].model_validate(call.arguments) for call in plan.calls]
    weights = [call.desired_weight for call in parsed if isinstance(call, WeightCall)]
    assert len(set(weights)) <= 1
    assert all(0 <= weight <= cluster.read.max_weight for weight in weights)
    assert ("VerifyWeight" in methods) == plan.sets_weight == ("UpdateHash" in methods)
