"""From gob values to the models: projections, decision D3, replies; judged by what Go itself has sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.calls import Verification, WeightCall
from rollouts_gwapi_plugin.transport.calls import METHODS, Answer
from rollouts_gwapi_plugin.transport.netrpc import convert, gotypes
from rollouts_gwapi_plugin.wire.gob import Interface
from rollouts_gwapi_plugin.wire.netrpc import CallReceived, ServerConnection

GOLDEN = Path(__file__).parent.parent.parent / "wire" / "golden" / "rpc"
CAPTURES = sorted(path.name.removesuffix(".request.bin") for path in GOLDEN.glob("*.request.bin"))
# What gob can't carry: mirror percentage 0 looks like no percentage (decision D3).
LOST_MIRROR_ZERO = {"nil-pointers"}


def _calls(name: str, projections: Any) -> list[CallReceived]:
    return ServerConnection(projections=projections).receive((GOLDEN / f"{name}.request.bin").read_bytes())


def _read(call: CallReceived) -> Any:
    """Read a call's arguments by its model; None where it has none."""
    method = METHODS[call.method.removeprefix("Plugin.")]
    if method.arguments is None:
        return None
    return method.arguments.model_validate(convert.arguments(method, call.argument))


def test_there_are_captures() -> None:
    """The tests below have something to read."""
    assert len(CAPTURES) >= 20


@pytest.mark.parametrize("name", [name for name in CAPTURES if name != "wrong-arguments"])
def test_projections_lose_nothing(name: str) -> None:
    """With only the projected fields built the models read the same as with all."""
    projected, whole = _calls(name, convert.projections()), _calls(name, None)

    assert [_read(call) for call in projected] == [_read(call) for call in whole]
    assert len(projected) == len(whole) > 0


@pytest.mark.parametrize("name", [name for name in CAPTURES if name != "wrong-arguments"])
def test_gob_means_what_the_controller_held(name: str) -> None:
    """A call read from Go's bytes equals the call read from the JSON of what Go held, as it comes over gRPC."""
    meant = json.loads((GOLDEN / f"{name}.request.json").read_bytes())["calls"]
    for call, held in zip(_calls(name, convert.projections()), meant, strict=True):
        got = _read(call)
        if got is None:
            continue
        arguments = {key: value for key, value in held["args"].items() if value is not None}
        wanted = METHODS[held["method"].removeprefix("Plugin.")].arguments.model_validate(arguments)  # type: ignore[union-attr]
        assert _comparable(got, name) == _comparable(wanted, name)


def _comparable(call: Any, name: str) -> Any:
    """Return a call without the spelling of the plugin's configuration: JSON bytes in gob, values in JSON."""
    fields = call.model_dump(mode="python")
    canary = fields["rollout"]["spec"]["strategy"]["canary"] or {}
    routing = canary.get("traffic_routing") or {}
    plugins = routing.get("plugins") or {}
    routing["plugins"] = {key: json.loads(raw) if isinstance(raw, bytes) else raw for key, raw in plugins.items()}
    if name in LOST_MIRROR_ZERO and fields.get("mirror_route"):
        fields["mirror_route"]["percentage"] = fields["mirror_route"]["percentage"] or None
    return fields


@pytest.mark.parametrize(
    ("step", "weight"),
    [({}, 0), ({"SetWeight": 20}, 20), ({"Pause": {}}, None), ({"Analysis": {}}, None), ({"SetCanaryScale": {}}, None)],
)
def test_an_empty_step_is_weight_zero(step: dict[str, Any], weight: int | None) -> None:
    """A step for which nothing was sent is `setWeight: 0`; one with only fields that we don't read is not."""
    call = WeightCall.model_validate({"Rollout": {"Spec": {"Strategy": {"Canary": {"Steps": [step]}}}}})

    assert call.rollout.canary.steps[0].set_weight == weight


def test_steps_and_configuration_are_built_whole() -> None:
    """The projection stops where all must be seen, and skips what no model reads."""
    tree = convert.projection(WeightCall)
    canary: Any = tree["Rollout"]["Spec"]["Strategy"]["Canary"]  # type: ignore[index]

    assert canary["Steps"] is None
    assert canary["TrafficRouting"]["Plugins"] is None
    assert "Template" not in tree["Rollout"]["Spec"]  # type: ignore[index, operator]
    assert set(convert.projections()) == {f"Plugin.{name}" for name in METHODS}
    assert convert.projections()["Plugin.Type"] == {}


@pytest.mark.parametrize("argument", [None, 7, Interface("X", None), Interface("X", {"Other": 1}), {}])
def test_arguments_that_are_none_are_told(argument: Any) -> None:
    """What is no struct with a Rollout is an error of ours."""
    with pytest.raises(ConfigError, match="SetWeight"):
        convert.arguments(METHODS["SetWeight"], argument)


def test_replies_have_the_types_of_go() -> None:
    """Each method's reply is the struct that the controller's client decodes."""
    answer = Answer(error="why", text="GatewayAPI", verified=Verification.VERIFIED)
    error = {"ErrorString": "why"}
    types = {name: convert.reply(method, answer).go_type for name, method in METHODS.items()}

    assert types.pop("Type") == gotypes.TYPE
    assert types.pop("VerifyWeight") is gotypes.VERIFY_WEIGHT_RESPONSE
    assert set(map(id, types.values())) == {id(gotypes.RPC_ERROR)}
    assert convert.reply(METHODS["Type"], answer).value == "GatewayAPI"
    assert convert.reply(METHODS["SetWeight"], answer).value == error
    assert convert.reply(METHODS["VerifyWeight"], answer).value == {"Verified": 1, "Err": error}
