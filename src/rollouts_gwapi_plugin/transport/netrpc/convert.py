"""From gob values to the names that the models read, and from answers to the Go structs of the replies.

A gob struct comes as a dict of Go's field names, which the models accept as they are. Only what the models read is
built (`projections`), with one exception: a canary step is built whole, since a step for which nothing at all was sent
means `setWeight: 0`, and must be told from one that has only fields which we do not read (decision D3).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from rollouts_gwapi_plugin.errors import ConfigError, GobError
from rollouts_gwapi_plugin.model.base import Frozen, JsonObject
from rollouts_gwapi_plugin.model.rollout import Step
from rollouts_gwapi_plugin.transport.calls import METHODS, Answer, Method
from rollouts_gwapi_plugin.transport.netrpc import gotypes
from rollouts_gwapi_plugin.wire.gob import GoType, Interface, Projection
from rollouts_gwapi_plugin.wire.netrpc import Unreadable

# Models whose structs are built with all their fields.
WHOLE: tuple[type[Frozen], ...] = (Step,)
# The service that a dispensed plugin is, as Go's net/rpc names it.
SERVICE = "Plugin"


@dataclass(frozen=True)
class Reply:
    """What goes back: a value of a Go type, or an error of net/rpc itself."""

    go_type: GoType
    value: Any
    error: str = ""


def arguments(method: Method, argument: Any) -> JsonObject:
    """Return the struct in a call's argument, which Go sends inside an interface.

    Raises:
        ConfigError: The argument is nil or something else.
        GobError: It could not be read.

    """
    if isinstance(argument, Unreadable):
        raise GobError(f"the arguments of {method.name} can't be read: {argument.error}") from argument.error
    value = argument.value if isinstance(argument, Interface) else argument
    if not isinstance(value, dict):
        found = "nothing" if value is None else type(value).__name__
        raise ConfigError(f"{method.name} takes a struct of arguments, {found} was sent")
    if "Rollout" not in value:
        raise ConfigError(f"the arguments of {method.name} hold no Rollout, only {', '.join(value) or 'nothing'}")
    return value


def reply(method: Method, answer: Answer) -> Reply:
    """Make the reply of a call; an error of ours is part of the value, as in the Go types."""
    error = {"ErrorString": answer.error}
    if method.name == "Type":
        return Reply(gotypes.TYPE, answer.text)
    if method.name == "VerifyWeight":
        return Reply(gotypes.VERIFY_WEIGHT_RESPONSE, {"Verified": int(answer.verified), "Err": error})
    return Reply(gotypes.RPC_ERROR, error)


def projections() -> dict[str, Projection | None]:
    """Return, by net/rpc method, the fields of its argument that the models read."""
    return {
        f"{SERVICE}.{method.name}": {} if method.arguments is None else projection(method.arguments)
        for method in METHODS.values()
    }


def projection(model: type[Frozen]) -> Projection:
    """Return the fields that a model reads, by all the names that it knows for them."""
    return {
        name: None if below is None else projection(below)
        for info in model.model_fields.values()
        for below in [_model_below(info)]
        for name in _names(info)
    }


def _names(info: FieldInfo) -> list[str]:
    alias = info.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [choice for choice in choices if isinstance(choice, str)]


def _model_below(info: FieldInfo) -> type[Frozen] | None:
    """Return the model in a field, also in an optional, a tuple or a dict; None where all is to be built."""
    models = [part for part in _parts(info.annotation) if isinstance(part, type) and issubclass(part, Frozen)]
    return models[0] if len(models) == 1 and models[0] not in WHOLE else None


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)
