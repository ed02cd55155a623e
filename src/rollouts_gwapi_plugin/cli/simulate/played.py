"""What the played controller reads of a Rollout beyond what the plugin does, checked before anything is played.

A real controller has the API server's validation before it, and its own; a file has neither.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from rollouts_gwapi_plugin.cli.rollout_types import check_types
from rollouts_gwapi_plugin.cli.subject import unreadable
from rollouts_gwapi_plugin.embedded.host.rollout import seconds
from rollouts_gwapi_plugin.errors import shown
from rollouts_gwapi_plugin.model.base import Frozen, JsonObject
from rollouts_gwapi_plugin.model.rollout import MAX_REVISION_DIGITS, REVISION_ANNOTATION


def _none_to_empty(value: Any) -> Any:
    return () if value is None else value


def _duration(value: Any) -> Any:
    seconds(value)
    return value


class _Port(Frozen):
    name: str | None = None
    container_port: int


class _Container(Frozen):
    ports: Annotated[tuple[_Port, ...], BeforeValidator(_none_to_empty)] = ()


class _PodSpec(Frozen):
    containers: Annotated[tuple[_Container, ...], Field(min_length=1)] = (_Container(),)


class _Template(Frozen):
    spec: _PodSpec = _PodSpec()


class _Pause(Frozen):
    duration: Annotated[int | str | None, AfterValidator(_duration)] = None


class _Step(Frozen):
    pause: _Pause | None = None

    @model_validator(mode="before")
    @classmethod
    def _says_something(cls, value: Any) -> Any:
        if value == {}:
            raise ValueError("a step has one of setWeight, pause, setHeaderRoute and so on")
        return value


class _Canary(Frozen):
    steps: Annotated[tuple[_Step, ...], BeforeValidator(_none_to_empty)] = ()


class _Strategy(Frozen):
    canary: _Canary


class _Spec(Frozen):
    replicas: Annotated[int, Field(ge=0)] | None = None
    template: _Template | None = None
    strategy: _Strategy


def _number(annotations: Any) -> Any:
    text = (annotations or {}).get(REVISION_ANNOTATION, "1")
    if not text.isdecimal() or len(text) > MAX_REVISION_DIGITS:
        raise ValueError(f"{REVISION_ANNOTATION} {shown(text)} is no number; only the controller writes it")
    return annotations


class _Metadata(Frozen):
    annotations: Annotated[dict[str, str] | None, AfterValidator(_number)] = None


class _Played(Frozen):
    metadata: _Metadata
    spec: _Spec


def check_played(raw: JsonObject) -> None:
    """Do nothing where the Rollout can be played.

    Raises:
        ConfigError: a field that the controller reads is not what Argo Rollouts takes.

    """
    check_types(raw)
    try:
        _Played.model_validate(raw)
    except ValidationError as error:
        raise unreadable(raw, error) from error
