"""How many pods the controller wants: its own cases, and what decides that a step's pods are there."""

from collections.abc import Callable
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, ReplicaSet
from rollouts_gwapi_plugin.embedded.host.desired import Branch, desired_traffic
from rollouts_gwapi_plugin.embedded.host.rollout import seconds, short_hash, timestamp
from rollouts_gwapi_plugin.embedded.host.scaling import at_desired_counts, replica_counts

MakeRollout = Callable[..., dict[str, Any]]
STEPS = [{"setWeight": 20}, {"setWeight": 60}]


def weights(canary: int) -> dict[str, Any]:
    """Return status.canary.weights."""
    return {"canary": {"weight": canary}, "stable": {"weight": 100 - canary}}


def cluster(rollout: dict[str, Any], *, index: int, canary: ReplicaSet, stable: ReplicaSet, **status: Any) -> Cluster:
    """Return a cluster in the middle of an update."""
    wanted = short_hash(rollout["spec"]["template"])
    rollout["status"] = {
        "stableRS": "old",
        "currentPodHash": wanted,
        "currentStepHash": short_hash(rollout["spec"]["strategy"]["canary"]["steps"]),
        "currentStepIndex": index,
        **status,
    }
    return Cluster(rollout, {wanted: canary, "old": stable})


@pytest.mark.parametrize(
    ("canary_options", "index", "expected"),
    [
        ({}, 0, (2, 10)),
        ({}, 1, (6, 10)),
        ({}, 2, (10, 10)),
        ({"trafficRouting": {"maxTrafficWeight": 200}}, 1, (3, 10)),
        ({"minPodsPerReplicaSet": 4}, 0, (4, 10)),
        ({"dynamicStableScale": True}, 1, (6, 4)),
        ({"steps": [{"setCanaryScale": {"replicas": 3}}, {"setWeight": 60}]}, 1, (3, 10)),
        ({"steps": [{"setCanaryScale": {"weight": 50}}, {"setWeight": 60}]}, 1, (5, 10)),
        (
            {"steps": [{"setCanaryScale": {"replicas": 3}}, {"setCanaryScale": {"matchTrafficWeight": True}}]},
            1,
            (0, 10),
        ),
    ],
)
def test_counts(rollout: MakeRollout, canary_options: dict[str, Any], index: int, expected: tuple[int, int]) -> None:
    """The canary's pods follow the weight or setCanaryScale, stable's are all, or the rest with dynamicStableScale."""
    made = rollout(*STEPS, **canary_options)
    found = cluster(made, index=index, canary=ReplicaSet(), stable=ReplicaSet(10, 10))

    assert replica_counts(found, None) == expected


@pytest.mark.parametrize(
    ("canary", "stable", "expected"),
    [
        (ReplicaSet(6, 6), ReplicaSet(4, 4), (6, 8)),  # the next step down is 20
        (ReplicaSet(1, 1), ReplicaSet(4, 4), (6, 8)),
        (ReplicaSet(2, 2), ReplicaSet(8, 4), (6, 8)),
        (ReplicaSet(2, 2), ReplicaSet(8, 8), (6, 10)),  # no step is below
    ],
)
def test_dynamic_abort(rollout: MakeRollout, canary: ReplicaSet, stable: ReplicaSet, expected: tuple[int, int]) -> None:
    """With dynamicStableScale an aborted update keeps its traffic's pods and adds stable's by the steps backwards."""
    made = rollout(*STEPS, dynamicStableScale=True)
    found = cluster(made, index=0, canary=canary, stable=stable, abort=True)

    assert replica_counts(found, weights(60)) == expected


@pytest.mark.parametrize(
    ("threshold", "available", "there"),
    [
        (None, 5, False),
        (None, 6, True),
        ({"type": "Percentage", "value": 80}, 4, False),
        ({"type": "Percentage", "value": 80}, 5, True),
        ({"type": "Pod", "value": 3}, 3, True),
        ({"type": "Pod", "value": -1}, 5, False),
    ],
)
def test_progress_threshold(
    rollout: MakeRollout, threshold: dict[str, Any] | None, available: int, *, there: bool
) -> None:
    """A step's pods are there when all are available, or as many as replicaProgressThreshold says."""
    made = rollout(*STEPS, **({"replicaProgressThreshold": threshold} if threshold else {}))
    found = cluster(made, index=1, canary=ReplicaSet(6, available), stable=ReplicaSet(10, 10))

    assert at_desired_counts(found, None) == there


def test_a_late_pod_lowers_the_weight_to_the_last_steps(rollout: MakeRollout) -> None:
    """Past the steps, with one of five pods, the weight is the last setWeight again."""
    made = rollout({"setWeight": 20}, {"setWeight": 80})
    made["spec"]["replicas"] = 5
    late = cluster(made, index=2, canary=ReplicaSet(5, 1), stable=ReplicaSet(5, 5))
    whole = cluster(made, index=2, canary=ReplicaSet(5, 5), stable=ReplicaSet(5, 5))

    assert [(one.branch, one.weight) for one in (desired_traffic(late, (1, 9)), desired_traffic(whole, (1, 9)))] == [
        (Branch.SCALING, 80),
        (Branch.PAST_STEPS, 100),
    ]


def test_an_index_beyond_the_end_is_the_maximum(rollout: MakeRollout) -> None:
    """An index larger than the number of steps counts as a step that asks for everything."""
    found = cluster(rollout(*STEPS), index=4, canary=ReplicaSet(10, 10), stable=ReplicaSet(10, 10))
    desired = desired_traffic(found, (1, 9))

    assert (desired.branch, desired.weight) == (Branch.STEP, 100)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        (30, 30),
        ("30", 30),
        ("10s", 10),
        ("5m", 300),
        ("1h", 3600),
        ("1h30m", 5400),
        ("1.5h500ms", 5400.5),
    ],
)
def test_durations(text: Any, expected: float | None) -> None:
    """A pause's duration is seconds, or a duration of Go."""
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "x", "-5", -1, "1d", "5m ", "nan", float("inf"), "9" * 5000, "600000h"])
def test_durations_that_are_none(text: Any) -> None:
    """What the controller refuses, or can't hold, is an error that shows it."""
    with pytest.raises(ValueError, match="is no duration, such as 30 or 1h30m"):
        seconds(text)


def test_timestamps_never_come_early() -> None:
    """A moment between two seconds is written as the later one, so no pause is cut short."""
    assert timestamp(0.0) == "1970-01-01T00:00:00Z"
    assert timestamp(0.1) == "1970-01-01T00:00:01Z"
