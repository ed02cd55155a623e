"""The eight calls of the controller's plugin interface, as frozen values; the same for both transports."""

from enum import IntEnum
from typing import Protocol

from pydantic import Field

from rollouts_gwapi_plugin.model.base import Frozen, names
from rollouts_gwapi_plugin.model.rollout import Number, Rollout, SetHeaderRoute, SetMirrorRoute, Text, WeightDestination


class Verification(IntEnum):
    """The answer of VerifyWeight, numbered as on the wire."""

    NOT_VERIFIED = 0
    VERIFIED = 1
    NOT_IMPLEMENTED = 2


class RolloutCall(Frozen):
    """What every call about a Rollout carries."""

    rollout: Rollout = Rollout()


class WeightCall(RolloutCall):
    """Arguments of SetWeight and VerifyWeight; an absent weight is 0 (D3)."""

    desired_weight: Number = 0
    additional_destinations: tuple[WeightDestination, ...] = ()


class UpdateHashCall(RolloutCall):
    """Arguments of UpdateHash."""

    canary_hash: Text = ""
    stable_hash: Text = ""
    additional_destinations: tuple[WeightDestination, ...] = ()


class HeaderRouteCall(RolloutCall):
    """Arguments of SetHeaderRoute."""

    header_route: SetHeaderRoute = Field(
        default=SetHeaderRoute(), validation_alias=names("setHeaderRoute", "SetHeaderRoute")
    )


class MirrorRouteCall(RolloutCall):
    """Arguments of SetMirrorRoute."""

    mirror_route: SetMirrorRoute = Field(
        default=SetMirrorRoute(), validation_alias=names("setMirrorRoute", "SetMirrorRoute")
    )


class RemoveManagedRoutesCall(RolloutCall):
    """Arguments of RemoveManagedRoutes."""


class TrafficRouterService(Protocol):
    """The eight calls, as a transport sees them.

    Each raises `PluginError` with a text for the user; `verify_weight` never does (D19).
    """

    def init_plugin(self) -> None:
        """Prepare; may fail, and is then tried again by the next call (D4)."""

    def type_name(self) -> str:
        """Return the type that the controller shows."""

    def update_hash(self, call: UpdateHashCall) -> None:
        """Take note of new pod hashes."""

    def set_weight(self, call: WeightCall) -> None:
        """Bring every configured route to the weight."""

    def verify_weight(self, call: WeightCall) -> Verification:
        """Tell whether the routes and their gateways are at the weight."""

    def set_header_route(self, call: HeaderRouteCall) -> None:
        """Add, change or remove one managed header route."""

    def set_mirror_route(self, call: MirrorRouteCall) -> None:
        """Add, change or remove one managed mirror route."""

    def remove_managed_routes(self, call: RemoveManagedRoutesCall) -> None:
        """Remove all managed routes of the Rollout."""
