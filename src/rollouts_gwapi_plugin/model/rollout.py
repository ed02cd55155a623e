"""The Rollout as the controller sends it: only the fields that a traffic router reads.

Takes a dict in JSON spelling (gRPC) or in Go spelling (gob). Zero is absent in gob (decision D3), so every number that
may be zero has the default that Go's zero has, and a step for which nothing at all was sent is `setWeight: 0`.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from rollouts_gwapi_plugin.model.base import Frozen, JsonObject, names

REVISION_ANNOTATION = "rollout.argoproj.io/revision"
# The controller counts revisions in an int; a longer text is not its own, and Python refuses thousands of digits.
MAX_REVISION_DIGITS = 18
DEFAULT_MAX_TRAFFIC_WEIGHT = 100


def _none_to_empty(value: Any) -> Any:
    return () if value is None else value


def _none_to_empty_map(value: Any) -> Any:
    return {} if value is None else value


def _none_to_text(value: Any) -> Any:
    return "" if value is None else value


def _none_to_zero(value: Any) -> Any:
    return 0 if value is None else value


Text = Annotated[str, BeforeValidator(_none_to_text)]
Number = Annotated[int, BeforeValidator(_none_to_zero)]
StringMap = Annotated[dict[str, str], BeforeValidator(_none_to_empty_map)]


class StringMatch(Frozen):
    """One of exact, prefix, regex; all empty where Go sent a zero value."""

    exact: Text = ""
    prefix: Text = ""
    regex: Text = ""


class HeaderRoutingMatch(Frozen):
    """One entry of `setHeaderRoute.match`."""

    header_name: Text = ""
    header_value: StringMatch | None = None


class SetHeaderRoute(Frozen):
    """A `setHeaderRoute` step; without a match it removes the route of that name."""

    name: Text = ""
    match: Annotated[tuple[HeaderRoutingMatch, ...], BeforeValidator(_none_to_empty)] = ()


class RouteMatch(Frozen):
    """One entry of `setMirrorRoute.match`: method, path and headers must all match."""

    method: StringMatch | None = None
    path: StringMatch | None = None
    headers: Annotated[dict[str, StringMatch], BeforeValidator(_none_to_empty_map)] = Field(default_factory=dict)


class SetMirrorRoute(Frozen):
    """A `setMirrorRoute` step; without a match it removes that route, without a percentage it mirrors all."""

    name: Text = ""
    match: Annotated[tuple[RouteMatch, ...], BeforeValidator(_none_to_empty)] = ()
    percentage: int | None = None


class TemplateService(Frozen):
    """What an experiment's template says of its Service."""

    name: Text = ""


class ExperimentTemplate(Frozen):
    """One template of an experiment step; its Service is named `<experiment>-<template>` unless it says otherwise."""

    name: Text = ""
    service: TemplateService | None = None


class ExperimentStep(Frozen):
    """An `experiment` step."""

    templates: Annotated[tuple[ExperimentTemplate, ...], BeforeValidator(_none_to_empty)] = ()


class Step(Frozen):
    """One canary step; a step of another kind (pause, analysis, …) has none of these fields."""

    set_weight: int | None = None
    set_header_route: SetHeaderRoute | None = None
    set_mirror_route: SetMirrorRoute | None = None
    experiment: ExperimentStep | None = None

    @model_validator(mode="before")
    @classmethod
    def _nothing_sent_is_weight_zero(cls, value: Any) -> Any:
        """Read a step without any field, known to us or not, as `setWeight: 0` (D3)."""
        if isinstance(value, dict) and not any(field is not None for field in value.values()):
            return {"setWeight": 0}
        return value


class NamedRoute(Frozen):
    """An entry of `trafficRouting.managedRoutes`."""

    name: Text = ""


class TrafficRouting(Frozen):
    """`spec.strategy.canary.trafficRouting`; `plugins` values are JSON bytes in gob, JSON values over gRPC."""

    managed_routes: Annotated[tuple[NamedRoute, ...], BeforeValidator(_none_to_empty)] = ()
    max_traffic_weight: int | None = None
    plugins: Annotated[dict[str, Any], BeforeValidator(_none_to_empty_map)] = Field(default_factory=dict)


class PingPong(Frozen):
    """The two Services that take turns as stable and canary."""

    ping_service: Text = ""
    pong_service: Text = ""


class Canary(Frozen):
    """`spec.strategy.canary`."""

    canary_service: Text = ""
    stable_service: Text = ""
    ping_pong: PingPong | None = None
    steps: Annotated[tuple[Step, ...], BeforeValidator(_none_to_empty)] = ()
    traffic_routing: TrafficRouting | None = None


class Strategy(Frozen):
    """`spec.strategy`."""

    canary: Canary | None = None


class RolloutSpec(Frozen):
    """`spec`."""

    strategy: Strategy = Strategy()


class ObjectMeta(Frozen):
    """`metadata`."""

    name: Text = ""
    namespace: Text = ""
    uid: Text = Field(default="", validation_alias=names("uid", "UID"))
    resource_version: Text = ""
    annotations: StringMap = Field(default_factory=dict)


class WeightDestination(Frozen):
    """A Service with its share of the traffic, in the controller's words."""

    service_name: Text = ""
    weight: Number = 0


class CanaryStatus(Frozen):
    """`status.canary`."""

    stable_ping_pong: Annotated[Literal["", "ping", "pong"], BeforeValidator(_none_to_text)] = ""


class RolloutStatus(Frozen):
    """`status`, as of the previous reconcile."""

    abort: bool = False
    promote_full: bool = False
    stable_rs: Text = Field(default="", validation_alias=names("stableRS", "StableRS"))
    current_pod_hash: Text = ""
    current_step_index: Number = 0
    canary: CanaryStatus = CanaryStatus()


class Rollout(Frozen):
    """A Rollout. Its identity everywhere is `namespace/name` (decision D5)."""

    metadata: ObjectMeta = Field(default=ObjectMeta(), validation_alias=names("metadata", "ObjectMeta"))
    spec: RolloutSpec = RolloutSpec()
    status: RolloutStatus = RolloutStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def canary(self) -> Canary:
        """The canary strategy, empty where the Rollout has none."""
        return self.spec.strategy.canary or Canary()

    @property
    def traffic_routing(self) -> TrafficRouting:
        """The traffic routing, empty where the Rollout has none."""
        return self.canary.traffic_routing or TrafficRouting()

    @property
    def max_traffic_weight(self) -> int:
        """The weight that means all traffic; absent and 0 mean 100, as in the controller."""
        return self.traffic_routing.max_traffic_weight or DEFAULT_MAX_TRAFFIC_WEIGHT

    @property
    def revision(self) -> int:
        """The revision annotation; absent or unreadable means 1 (D3)."""
        text = self.metadata.annotations.get(REVISION_ANNOTATION, "")
        return int(text) if text.isdecimal() and len(text) <= MAX_REVISION_DIGITS else 1

    @property
    def fully_promoted(self) -> bool:
        """Whether stable is what the spec asks for; both empty counts, as in the controller."""
        return self.status.stable_rs == self.status.current_pod_hash


def parse_rollout(raw: JsonObject) -> Rollout:
    """Read a Rollout from a dict of JSON names or of Go names."""
    return Rollout.model_validate(raw)
