"""From protobuf messages to the models' names: what is absent, what is zero, and nested messages."""

import json

import pytest

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.calls import HeaderRouteCall, MirrorRouteCall, Verification, WeightCall
from rollouts_gwapi_plugin.transport.calls import Answer
from rollouts_gwapi_plugin.transport.grpc import convert
from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2 as pb

ROLLOUT = json.dumps({"metadata": {"name": "demo", "namespace": "shop"}}).encode()


def test_weights_and_destinations() -> None:
    """Numbers and repeated messages arrive, zeros as zeros."""
    destinations = [
        pb.WeightDestination(service_name="a", pod_template_hash="h", weight=5),
        pb.WeightDestination(service_name="b"),
    ]
    request = pb.SetWeightRequest(rollout=ROLLOUT, desired_weight=0, additional_destinations=destinations)
    call = WeightCall.model_validate(convert.arguments(request))

    assert call.rollout.key == "shop/demo"
    assert call.desired_weight == 0
    got = [(each.service_name, each.weight) for each in call.additional_destinations]
    assert got == [("a", 5), ("b", 0)]


def test_a_header_route() -> None:
    """All three kinds of match arrive."""
    match = [
        pb.HeaderRoutingMatch(header_name="x", header_value=pb.StringMatch(exact="1")),
        pb.HeaderRoutingMatch(header_name="y", header_value=pb.StringMatch(prefix="2")),
        pb.HeaderRoutingMatch(header_name="z", header_value=pb.StringMatch(regex="3")),
    ]
    request = pb.SetHeaderRouteRequest(rollout=ROLLOUT, header_route=pb.SetHeaderRoute(name="beta", match=match))
    route = HeaderRouteCall.model_validate(convert.arguments(request)).header_route

    values = [each.header_value for each in route.match if each.header_value is not None]
    assert route.name == "beta"
    assert [each.header_name for each in route.match] == ["x", "y", "z"]
    assert [(value.exact, value.prefix, value.regex) for value in values] == [
        ("1", "", ""),
        ("", "2", ""),
        ("", "", "3"),
    ]


@pytest.mark.parametrize("percentage", [None, 0, 30])
def test_a_mirror_route_keeps_the_difference_of_zero_and_absent(percentage: int | None) -> None:
    """Percentage 0 means no mirror and absence means all, so both arrive."""
    match = pb.RouteMatch(
        method=pb.StringMatch(exact="GET"),
        path=pb.StringMatch(prefix="/shop"),
        headers={"camelCase_Key": pb.StringMatch(exact="v")},
    )
    mirror = pb.SetMirrorRoute(name="copy", match=[match], percentage=percentage)
    request = pb.SetMirrorRouteRequest(rollout=ROLLOUT, mirror_route=mirror)
    route = MirrorRouteCall.model_validate(convert.arguments(request)).mirror_route

    assert route.percentage == percentage
    assert route.match[0].method is not None
    assert route.match[0].method.exact == "GET"
    assert route.match[0].path is not None
    assert route.match[0].path.prefix == "/shop"
    assert list(route.match[0].headers) == ["camelCase_Key"]


def test_a_missing_step_is_an_empty_one() -> None:
    """A request without its message reads like one with an empty message."""
    request = pb.SetHeaderRouteRequest(rollout=ROLLOUT)

    assert HeaderRouteCall.model_validate(convert.arguments(request)).header_route.name == ""


def test_a_rollout_that_is_no_object_is_refused() -> None:
    """The error says what was found."""
    with pytest.raises(ConfigError, match="a JSON str, not an object"):
        convert.arguments(pb.SetWeightRequest(rollout=b'"text"'))


def test_something_that_is_no_message_is_a_bug() -> None:
    """The types promise a message; a mistake of ours is told as such."""

    class Strange:
        rollout = b"{}"

    with pytest.raises(TypeError, match="Strange"):
        convert.arguments(Strange())


def test_replies() -> None:
    """Answers become the messages of the Go types."""
    answer = Answer(error="why", text="GatewayAPI", verified=Verification.NOT_IMPLEMENTED)

    assert convert.rpc_error(answer).error_string == "why"
    assert convert.type_response(answer).type == "GatewayAPI"
    assert convert.verify_response(answer).verified == pb.VerifyWeightResponse.NOT_IMPLEMENTED
    assert convert.verify_response(answer).err.error_string == "why"
