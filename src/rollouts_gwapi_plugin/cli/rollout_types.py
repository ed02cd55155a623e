"""The types that the definition of a Rollout gives to its fields: what the API server refuses is found in a file.

The plugin's own reading is more lenient, since what reaches it in a cluster has passed the API server.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from rollouts_gwapi_plugin.cli.subject import unreadable
from rollouts_gwapi_plugin.model.base import JsonObject

# Go's int32.
Integer = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] | None
IntegerOrText = int | str | None


class _Typed(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", alias_generator=to_camel)


class _Service(_Typed):
    name: str | None = None


class _Template(_Typed):
    name: str | None = None
    weight: Integer = None
    replicas: Integer = None
    service: _Service | None = None


class _Experiment(_Typed):
    templates: list[_Template] | None = None
    duration: str | None = None


class _Scale(_Typed):
    weight: Integer = None
    replicas: Integer = None
    match_traffic_weight: bool | None = None


class _Pause(_Typed):
    duration: IntegerOrText = None


class _Mirror(_Typed):
    percentage: Integer = None


class _Step(_Typed):
    set_weight: Integer = None
    pause: _Pause | None = None
    experiment: _Experiment | None = None
    set_canary_scale: _Scale | None = None
    set_mirror_route: _Mirror | None = None


class _Routing(_Typed):
    max_traffic_weight: Integer = None
    managed_routes: list[dict[str, Any]] | None = None
    plugins: dict[str, Any] | None = None


class _Canary(_Typed):
    stable_service: str | None = None
    canary_service: str | None = None
    dynamic_stable_scale: bool | None = None
    abort_scale_down_delay_seconds: Integer = None
    scale_down_delay_seconds: Integer = None
    max_surge: IntegerOrText = None
    max_unavailable: IntegerOrText = None
    steps: list[_Step] | None = None
    traffic_routing: _Routing | None = None


class _Strategy(_Typed):
    canary: _Canary | None = None


class _Spec(_Typed):
    replicas: Integer = None
    strategy: _Strategy | None = None


class _Metadata(_Typed):
    name: str | None = None
    namespace: str | None = None
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _Rollout(_Typed):
    metadata: _Metadata | None = None
    spec: _Spec | None = None


def check_types(raw: JsonObject) -> None:
    """Do nothing where every field has the type that the definition of a Rollout gives it.

    Raises:
        ConfigError: one has not; the API server refuses such a Rollout.

    """
    try:
        _Rollout.model_validate(raw)
    except ValidationError as error:
        raise unreadable(raw, error) from error
