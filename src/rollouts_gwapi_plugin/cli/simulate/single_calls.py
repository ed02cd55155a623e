"""The calls of `--call`, made one after the other in the middle of an update."""

import json
from collections.abc import Sequence
from typing import Any, Final

import click

from rollouts_gwapi_plugin.cli.rehearsal import raw_steps
from rollouts_gwapi_plugin.cli.simulate.stage import Stage
from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.errors import ConfigError, shown
from rollouts_gwapi_plugin.model.base import JsonObject

_STEP_CALLS: Final = {"set-header-route": "SetHeaderRoute", "set-mirror-route": "SetMirrorRoute"}
_ALL: Final = ("set-weight=N", "set-header-route=NAME", "set-mirror-route=NAME", "remove-managed-routes")

# No weight needs more, and what has more could not even be read as a number.
MAX_DIGITS: Final = 18


def make_calls(stage: Stage, raw: JsonObject, texts: Sequence[str]) -> None:
    """Make the calls; the Rollout stands at the step of the last managed route that was set.

    Raises:
        BadParameter: a text is no call.
        ConfigError: a text names a managed route that no step sets.

    """
    index = 0
    for number, text in enumerate(texts):
        name, _, value = text.partition("=")
        rollout = _in_update(raw, index, number)
        stage.step = f"call {number}"
        if name == "set-weight" and value.isdecimal() and len(value) <= MAX_DIGITS:
            weight: JsonObject = {"rollout": rollout, "desiredWeight": int(value), "additionalDestinations": []}
            stage.call(Call("SetWeight", weight))
            stage.call(Call("VerifyWeight", weight))
        elif name in _STEP_CALLS and value:
            method = _STEP_CALLS[name]
            field = method[0].lower() + method[1:]
            index, body = _step(raw, field, value)
            stage.call(Call(method, {"rollout": _in_update(raw, index, number), field: body}))
        elif text == "remove-managed-routes":
            stage.call(Call("RemoveManagedRoutes", {"rollout": rollout}))
        else:
            raise click.BadParameter(f"{shown(text)} is no call; there are {', '.join(_ALL)}", param_hint="--call")


def _in_update(raw: JsonObject, index: int, version: int) -> JsonObject:
    """Return the Rollout in the middle of its second revision."""
    annotations = {**(raw["metadata"].get("annotations") or {}), "rollout.argoproj.io/revision": "2"}
    metadata = {**raw["metadata"], "annotations": annotations, "resourceVersion": str(version)}
    status = {"stableRS": "stable", "currentPodHash": "canary", "currentStepIndex": index}
    return {**raw, "metadata": metadata, "status": status}


def _step(raw: JsonObject, field: str, value: str) -> tuple[int, JsonObject]:
    """Return the body of a managed route's step, and its index; 0 for a body that is given."""
    if value.startswith("{"):
        try:
            body: Any = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"--call {field}: {shown(value)} is not JSON: {error}") from error
        return 0, body
    found = [
        (index, step[field])
        for index, step in enumerate(raw_steps(raw))
        if isinstance(step.get(field), dict) and step[field].get("name") == value
    ]
    with_match = [one for one in found if one[1].get("match")]
    if not found:
        raise ConfigError(f"no step of the Rollout is a {field} of managed route {value}; give its body as JSON")
    return (with_match or found)[0]
