"""Whether a stage's expectations are fulfilled: each look returns all that is not so yet, in words."""

import re
from dataclasses import dataclass
from typing import Any

from e2e.runner.actions import Scene, load_manifest
from e2e.runner.case import ControllerState, EventSeen, Expect, RolloutState
from e2e.runner.match import differences

_HASH_LABEL = "rollouts-pod-template-hash"
# What was seen instead is said each time that a wait looks, and printed once: enough to know an Event or a log's end.
_EVENT_LENGTH = 200
_LOG_LENGTH = 800


@dataclass(frozen=True)
class Before:
    """What was there when the stage began: lengths of log and exits, and the counts of each Event."""

    log: int
    exits: int
    events: dict[str, int]


def remember(scene: Scene, expect: Expect) -> Before:
    """Note what must not be taken for this stage's doing."""
    log, exits = (
        ("", []) if expect.controller is None else (scene.target.controller_log(), scene.target.controller_exits())
    )
    events = {item["metadata"]["uid"]: int(item.get("count") or 1) for item in _events(scene)}
    return Before(len(log), len(exits), events)


def unfulfilled(scene: Scene, expect: Expect, before: Before) -> list[str]:
    """Return what is not as expected; traffic is judged elsewhere."""
    missing: list[str] = []
    for name, state in expect.rollouts.items():
        missing += _rollout(scene, name, state)
    for route, weights in expect.weights.items():
        missing += _weights(scene, route, weights)
    for part in [*expect.objects, *(load_manifest(scene.case, expect.file) if expect.file else [])]:
        missing += _object(scene, scene.filled(part))
    for item in expect.absent:
        if scene.api.read(item.kind, scene.filled(item.namespace) or scene.namespace, scene.filled(item.name)):
            missing.append(f"{item.kind} {item.name} is still there")
    for kind, number in expect.number.items():
        found = [item["metadata"]["name"] for item in scene.api.all_of(kind, scene.namespace)]
        missing += [] if len(found) == number else [f"{kind}: {found} instead of {number}"]
    for event in expect.events:
        missing += _event(scene, event, before)
    if expect.controller:
        missing += _controller(scene, expect.controller, before)
    return missing


def _rollout(scene: Scene, name: str, expected: RolloutState) -> list[str]:
    found = scene.api.read("Rollout", scene.namespace, name)
    if found is None:
        return [f"Rollout {name} is not there"]
    status: dict[str, Any] = found.get("status", {})
    if not _is_current(scene, found):
        return [f"Rollout {name}: its last change has not reached its status yet ({status.get('message', '')})"]
    seen = {
        "phase": status.get("phase"),
        "step": status.get("currentStepIndex", 0),
        "aborted": status.get("abort", False),
    }
    missing = [
        f"Rollout {name}: {key} {seen[key]!r} instead of {wanted!r} ({status.get('message', '')})"
        for key, wanted in (("phase", expected.phase), ("step", expected.step), ("aborted", expected.aborted))
        if wanted is not None and seen[key] != wanted
    ]
    if expected.message and not re.search(scene.filled(expected.message), str(status.get("message", ""))):
        missing.append(f"Rollout {name}: message {status.get('message')!r} instead of {expected.message!r}")
    return missing


def _is_current(scene: Scene, rollout: dict[str, Any]) -> bool:
    """Whether the status speaks of the spec's template: the controller writes the generation first, the rest later."""
    status = rollout.get("status", {})
    if str(status.get("observedGeneration", "")) != str(rollout["metadata"]["generation"]):
        return False
    current = status.get("currentPodHash", "")
    sets = scene.api.all_of("ReplicaSet", scene.namespace)
    templates = [item["spec"]["template"] for item in sets if item["metadata"]["labels"].get(_HASH_LABEL) == current]
    return bool(templates) and not differences(rollout["spec"]["template"], templates[0])


def _weights(scene: Scene, route: str, expected: dict[str, int]) -> list[str]:
    kind, _, name = route.partition("/")
    found = scene.api.read(kind, scene.namespace, name)
    if found is None:
        return [f"{route} is not there"]
    rules = [
        {item["name"]: int(item.get("weight", 1)) for item in rule.get("backendRefs", [])}
        for rule in found["spec"]["rules"]
    ]
    pairs = [weights for weights in rules if set(expected) <= set(weights)]
    wrong = [weights for weights in pairs if {name: weights[name] for name in expected} != expected]
    return [] if pairs and not wrong else [f"{route}: weights {wrong or rules} instead of {expected}"]


def _object(scene: Scene, expected: dict[str, Any]) -> list[str]:
    kind, metadata = expected["kind"], expected["metadata"]
    place = metadata.get("namespace") or scene.namespace
    found = scene.api.read(kind, place, metadata["name"])
    if found is None:
        return [f"{kind} {metadata['name']} is not there"]
    return [f"{kind} {metadata['name']}: {text}" for text in differences(expected, found)]


def _events(scene: Scene) -> list[dict[str, Any]]:
    return scene.api.all_of("Event", scene.namespace)


def _event(scene: Scene, expected: EventSeen, before: Before) -> list[str]:
    new = [
        item for item in _events(scene) if int(item.get("count") or 1) > before.events.get(item["metadata"]["uid"], 0)
    ]
    pattern = re.compile(scene.filled(expected.message))
    times = sum(
        int(item.get("count") or 1) - before.events.get(item["metadata"]["uid"], 0)
        for item in new
        if item.get("reason") == expected.reason and pattern.search(item.get("message", ""))
    )
    if times and expected.times in {0, times}:
        return []
    if times:
        return [f"Event {expected.reason} with {expected.message!r} came {times} times instead of {expected.times}"]
    seen = [f"{item.get('reason')}: {item.get('message', '')[:_EVENT_LENGTH]}" for item in new]
    return [f"no Event {expected.reason} with {expected.message!r}; there are {seen}"]


def _controller(scene: Scene, expected: ControllerState, before: Before) -> list[str]:
    missing = []
    new_exits = scene.target.controller_exits()[before.exits :]
    if not expected.running and not any(new_exits):
        missing.append(f"the controller did not end with an error; it ended with {new_exits}")
    if expected.running and not scene.target.controller_healthy():
        missing.append("the controller is not healthy")
    new_log = scene.target.controller_log()[before.log :]
    if expected.log and not re.search(scene.filled(expected.log), new_log):
        missing.append(f"the controller did not log {expected.log!r}; last lines: {new_log[-_LOG_LENGTH:]}")
    return missing
