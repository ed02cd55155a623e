"""The status that a Gateway's controller writes into a route. Pure.

Takes a route, what became of its parentRefs and what is wrong with its backendRefs; returns the status to write, the
same object where nothing changed. Entries of other controllers are kept, `observedGeneration` is the route's, and a
`lastTransitionTime` moves only when its condition's status does.
"""

from collections.abc import Iterable

from rollouts_gwapi_plugin.embedded.dataplane.attachment import Attachment
from rollouts_gwapi_plugin.embedded.dataplane.references import Problem
from rollouts_gwapi_plugin.model.base import JsonObject

CONTROLLER_NAME = "embedded.rollouts-gwapi-plugin/reference-data-plane"


def route_status(
    route: JsonObject, attached: Iterable[Attachment], problems: Iterable[Problem], now: str
) -> JsonObject:
    """Return the route's status; `now` is an RFC 3339 time."""
    status: JsonObject = route.get("status") or {}
    parents: list[JsonObject] = status.get("parents") or []
    generation = route["metadata"].get("generation", 1)
    resolved = _resolved_refs(list(problems), generation)
    ours = [
        {
            "parentRef": attachment.parent_ref,
            "controllerName": CONTROLLER_NAME,
            "conditions": [_accepted(attachment, generation), resolved],
        }
        for attachment in attached
    ]
    for entry in ours:
        _keep_times(entry, parents, now)
    merged = [*(parent for parent in parents if parent.get("controllerName") != CONTROLLER_NAME), *ours]
    return status if merged == parents else {**status, "parents": merged}


def _accepted(attachment: Attachment, generation: int) -> JsonObject:
    return _condition("Accepted", generation, attachment.reason, attachment.message, good=bool(attachment.listeners))


def _resolved_refs(problems: list[Problem], generation: int) -> JsonObject:
    if not problems:
        return _condition("ResolvedRefs", generation, "ResolvedRefs", "all references are resolved", good=True)
    message = "; ".join(problem.message for problem in problems)
    return _condition("ResolvedRefs", generation, problems[0].reason, message, good=False)


def _condition(kind: str, generation: int, reason: str, message: str, *, good: bool) -> JsonObject:
    return {
        "type": kind,
        "status": "True" if good else "False",
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }


def _keep_times(entry: JsonObject, before: list[JsonObject], now: str) -> None:
    old = {
        condition["type"]: condition
        for parent in before
        if parent.get("controllerName") == CONTROLLER_NAME and parent.get("parentRef") == entry["parentRef"]
        for condition in parent.get("conditions") or []
    }
    for condition in entry["conditions"]:
        last = old.get(condition["type"], {})
        unchanged = last.get("status") == condition["status"]
        condition["lastTransitionTime"] = last["lastTransitionTime"] if unchanged else now
