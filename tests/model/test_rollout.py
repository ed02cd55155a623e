"""The Rollout in both spellings: JSON (gRPC) and Go names without zero values (gob, decision D3, invariant G1)."""

from typing import Any

import pytest
from hypothesis import given, settings
from tests.gob_view import through_gob
from tests.strategies import Json, header_steps, mirror_steps, rollouts, weights

from rollouts_gwapi_plugin.model.calls import HeaderRouteCall, MirrorRouteCall, RolloutCall, WeightCall
from rollouts_gwapi_plugin.model.rollout import Rollout, SetMirrorRoute, parse_rollout


def comparable(call: RolloutCall) -> Json:
    """Return a call without what the two spellings are allowed to tell apart: the plugins' values are texts in gob."""
    dumped: Json = call.model_dump()
    routing = (dumped["rollout"]["spec"]["strategy"]["canary"] or {}).get("traffic_routing") or {}
    routing.pop("plugins", None)
    return dumped


@settings(max_examples=100)
@given(rollout=rollouts(), weight=weights, share=weights)
def test_a_weight_call_means_the_same_over_both_wires(rollout: Json, weight: int, share: int) -> None:
    """Zero is absent in gob, and reads as zero: steps, index, weights, experiments (G1)."""
    destinations = [{"serviceName": "b", "podTemplateHash": "x", "weight": share}]
    arguments = {"rollout": rollout, "desiredWeight": weight, "additionalDestinations": destinations}

    assert comparable(WeightCall.model_validate(arguments)) == comparable(through_gob("SetWeight", arguments))


@settings(max_examples=50)
@given(rollout=rollouts(), header=header_steps("h"), mirror=mirror_steps("m", "HTTPRoute"))
def test_managed_route_calls_mean_the_same_over_both_wires(rollout: Json, header: Json, mirror: Json) -> None:
    """Header and mirror steps come with names, matches and percentage."""
    header_call = {"rollout": rollout, "setHeaderRoute": header}
    mirror_call = {"rollout": rollout, "setMirrorRoute": mirror}
    read_header, read_mirror = HeaderRouteCall.model_validate(header_call), MirrorRouteCall.model_validate(mirror_call)

    assert comparable(read_header) == comparable(through_gob("SetHeaderRoute", header_call))
    assert comparable(read_mirror) == comparable(through_gob("SetMirrorRoute", mirror_call))


def test_mirror_percentage_zero_is_the_one_exception() -> None:
    """Over gob it can't be told from absent, which means 100; over gRPC it is 0 (D3)."""
    body = {"name": "m", "match": [{"method": {"exact": "GET"}}], "percentage": 0}
    call = through_gob("SetMirrorRoute", {"rollout": {}, "setMirrorRoute": body})

    assert isinstance(call, MirrorRouteCall)
    assert call.mirror_route.percentage is None
    assert 0 == SetMirrorRoute.model_validate(body).percentage


@pytest.mark.parametrize(
    ("step", "weight"),
    [({}, 0), ({"SetWeight": None, "Pause": None}, 0), ({"Pause": {}}, None), ({"Analysis": {"x": 1}}, None)],
)
def test_a_step_of_which_nothing_was_sent_is_weight_zero(step: Json, weight: int | None) -> None:
    """A step of another kind, whose fields we do not read, is not (D3)."""
    rollout = parse_rollout({"Spec": {"Strategy": {"Canary": {"Steps": [step]}}}})

    assert [weight] == [item.set_weight for item in rollout.canary.steps]


@pytest.mark.parametrize(
    ("text", "revision"), [("2", 2), ("", 1), ("x", 1), ("-3", 1), ("9" * 5000, 1), ("²", 1), ("17", 17)]
)
def test_the_revision_is_the_annotations_number(text: str, revision: int) -> None:
    """Absent or unreadable means 1, whatever somebody wrote there."""
    annotations = {"rollout.argoproj.io/revision": text} if text else {}

    assert revision == parse_rollout({"metadata": {"annotations": annotations}}).revision


def test_an_empty_rollout_has_defaults() -> None:
    """Nothing sent is no steps, no Services, a maximum of 100, revision 1, and fully promoted as in the controller."""
    rollout = Rollout()

    assert ("/", 100, 1, True) == (rollout.key, rollout.max_traffic_weight, rollout.revision, rollout.fully_promoted)
    assert () == rollout.canary.steps
    assert {} == rollout.traffic_routing.plugins


@pytest.mark.parametrize("null", [None, {}])
def test_nulls_read_as_absent(null: Any) -> None:
    """JSON of other makers than Go may hold nulls where Go leaves a field out."""
    canary = {"steps": None, "trafficRouting": {"managedRoutes": None, "plugins": None}, "pingPong": None}
    status = {"currentStepIndex": None, "stableRS": None, "canary": {"stablePingPong": None, "weights": null}}
    raw = {"metadata": {"name": None, "annotations": None}, "spec": {"strategy": {"canary": canary}}, "status": status}
    rollout = parse_rollout(raw)

    assert () == rollout.canary.steps
    assert "" == rollout.status.canary.stable_ping_pong
    assert 0 == rollout.status.current_step_index
