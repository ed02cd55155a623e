"""The host's gob is what the Go controller sends, for the fields that the host knows."""

import json
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.host.gotypes import ARGUMENTS, argument
from rollouts_gwapi_plugin.model.calls import WeightCall
from rollouts_gwapi_plugin.wire.gob import INTERFACE, Decoder, GoType, MapOf, SliceOf, StructOf
from rollouts_gwapi_plugin.wire.gob.encode import Encoder
from rollouts_gwapi_plugin.wire.gob.notation import to_json

GOLDEN = Path(__file__).parents[2] / "wire" / "golden" / "rpc"
VECTORS = ["rich-SetWeight", "rich-SetMirrorRoute", "header-kinds", "whole-session", "zero-values", "minimal-SetWeight"]


def known(value: Any, go_type: GoType) -> Any:
    """Return a decoded value without the fields that the host's types lack."""
    if isinstance(go_type, StructOf):
        types = {field.name: field.type for field in go_type.fields}
        return {name: known(field, types[name]) for name, field in value.items() if name in types}
    if isinstance(go_type, SliceOf):
        return [known(element, go_type.element) for element in value]
    if isinstance(go_type, MapOf):
        return {key: known(element, go_type.element) for key, element in value.items()}
    return value


@pytest.mark.parametrize("name", VECTORS)
def test_like_the_controller(name: str) -> None:
    """Each call of a Go session, made again from its JSON, decodes to what Go sent."""
    calls = json.loads((GOLDEN / f"{name}.request.json").read_text())["calls"]
    for call in calls:
        method = call["method"].removeprefix("Plugin.")
        # The argument structs have no JSON names of their own.
        arguments = {field[:1].lower() + field[1:]: value for field, value in (call.get("args") or {}).items()}
        made = argument(method, arguments)
        decoder = Decoder()
        decoder.receive(Encoder().encode(INTERFACE, made))
        decoded = to_json(decoder.next_value())

        if made is None:
            assert decoded is call["body"] is None
            continue
        registered, shape = ARGUMENTS[method]
        assert decoded == {"$iface": registered, "$value": known(call["body"]["$value"], shape.go_type)}


def test_read_by_the_model() -> None:
    """The models read what the host sends, from the plugin's configuration to the weights of the status."""
    calls = json.loads((GOLDEN / "rich-SetWeight.request.json").read_text())["calls"]
    arguments = {field[:1].lower() + field[1:]: value for field, value in calls[0]["args"].items()}
    made = argument("SetWeight", arguments)
    assert made is not None
    call = WeightCall.model_validate(made.value)

    assert (call.desired_weight, call.rollout.key, call.rollout.revision) == (500, "shop-prod/checkout", 17)
    assert call.rollout.traffic_routing.managed_routes[0].name == "canary-header"
    assert b"httpRoutes" in call.rollout.traffic_routing.plugins["argoproj-labs/gatewayAPI"]
    assert call.rollout.canary.steps[0].set_weight == 0
