"""A call as it arrives over net/rpc: through gob, as Go sends it, where zero is absent (decision D3)."""

from typing import Any

from rollouts_gwapi_plugin.embedded.host.gotypes import argument
from rollouts_gwapi_plugin.model.calls import HeaderRouteCall, MirrorRouteCall, RolloutCall, WeightCall
from rollouts_gwapi_plugin.wire.gob import INTERFACE, Decoder, Interface
from rollouts_gwapi_plugin.wire.gob.encode import Encoder

MODELS: dict[str, type[RolloutCall]] = {
    "SetWeight": WeightCall,
    "SetHeaderRoute": HeaderRouteCall,
    "SetMirrorRoute": MirrorRouteCall,
}


def through_gob(method: str, arguments: dict[str, Any]) -> RolloutCall:
    """Read a call that went over the wire as Go sends it."""
    decoder = Decoder()
    decoder.receive(Encoder().encode(INTERFACE, argument(method, arguments)))
    value = decoder.next_value()
    assert isinstance(value, Interface)
    return MODELS[method].model_validate(value.value)
