"""The status that the data plane writes as a Gateway's controller."""

from typing import Any

from rollouts_gwapi_plugin.embedded.dataplane.attachment import Attachment
from rollouts_gwapi_plugin.embedded.dataplane.references import Problem
from rollouts_gwapi_plugin.embedded.dataplane.status import route_status

REF = {"name": "edge"}
FOREIGN = {"controllerName": "example.com/other", "parentRef": REF, "conditions": []}


def route(generation: int, parents: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return a route at a generation."""
    return {"metadata": {"name": "web", "generation": generation}, "status": {"parents": parents or []}}


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, int, str]]:
    """Return our conditions in short."""
    return {
        one["type"]: (one["status"], one["reason"], one["observedGeneration"], one["lastTransitionTime"])
        for one in status["parents"][-1]["conditions"]
    }


def test_accepted_and_resolved() -> None:
    """A route that is taken has both conditions True at its generation, and other controllers' entries stay."""
    status = route_status(route(7, [FOREIGN]), [Attachment(REF, ("http",))], [], "T1")

    assert status["parents"][0] == FOREIGN
    assert status["parents"][1]["parentRef"] == REF
    assert conditions(status) == {
        "Accepted": ("True", "Accepted", 7, "T1"),
        "ResolvedRefs": ("True", "ResolvedRefs", 7, "T1"),
    }


def test_refused_and_unresolved() -> None:
    """A route that no listener takes, or with a broken reference, says why."""
    attached = Attachment(REF, (), "NoMatchingParent", "none")
    status = route_status(route(1), [attached], [Problem("BackendNotFound", "gone")], "T1")

    assert conditions(status) == {
        "Accepted": ("False", "NoMatchingParent", 1, "T1"),
        "ResolvedRefs": ("False", "BackendNotFound", 1, "T1"),
    }


def test_the_same_again_is_the_same_object() -> None:
    """Nothing changed, nothing to write: the status comes back as it is; a new generation keeps transition times."""
    attached = [Attachment(REF, ("http",))]
    first = route_status(route(1), attached, [], "T1")
    same = route(1, first["parents"])

    assert route_status(same, attached, [], "T2") is same["status"]
    later = route_status(route(2, first["parents"]), attached, [], "T2")
    assert conditions(later)["Accepted"] == ("True", "Accepted", 2, "T1")
    broken = route_status(route(2, first["parents"]), attached, [Problem("BackendNotFound", "gone")], "T2")
    assert conditions(broken)["ResolvedRefs"] == ("False", "BackendNotFound", 2, "T2")


def test_a_route_that_left_loses_our_entry() -> None:
    """Without a parentRef to us only other controllers' entries remain."""
    first = route_status(route(1, [FOREIGN]), [Attachment(REF, ("http",))], [], "T1")

    assert route_status(route(2, first["parents"]), [], [], "T2")["parents"] == [FOREIGN]
