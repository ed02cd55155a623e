"""What a RouteTable's status says (decision D19): accepted or not, and of which generation.

`status.common.State` has an approval and the observed generation. Without it nothing is known, and the RouteTable
counts as usable; an approval of an older generation says nothing yet.
"""

import re
from typing import Any, Final

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.status import Standing, Verdict

REFUSALS: Final = frozenset({"INVALID", "FAILED", "UNLICENSED"})
# The API's numbers of the approvals; JSON has the names, or the numbers.
APPROVALS: Final = ("PENDING", "ACCEPTED", "INVALID", "WARNING", "FAILED", "UNLICENSED")
MAX_MESSAGE: Final = 256


def table_verdict(route: Route, names: frozenset[str]) -> Verdict:
    """Return how far Gloo is with the RouteTable; `names` are the destinations that are ours."""
    state = _state(route)
    if not state:
        return Verdict(Standing.USABLE, reported=False)
    observed, generation = _number(state.get("observedGeneration")), route.metadata.generation
    approval = _approval(state.get("approval"))
    if observed < generation:
        text = f"{route}: its status is of generation {observed}, the RouteTable is at {generation}"
        return Verdict(Standing.BEHIND, text)
    message = str(state.get("message") or "")
    text = f"{route}: {approval}: {message[:MAX_MESSAGE] or 'no message'}"
    if approval == "PENDING":
        return Verdict(Standing.BEHIND, text)
    # A warning is of something that is in effect all the same, ours or the user's.
    concerns_us = approval == "WARNING" and bool(_words(message) & names)
    return Verdict(Standing.REFUSED, text) if approval in REFUSALS or concerns_us else Verdict(Standing.USABLE)


def _words(message: str) -> set[str]:
    words = re.split(r"[^A-Za-z0-9.-]+", message)
    return {part for word in words for part in (word, word.strip("."), word.partition(".")[0])}


def _state(route: Route) -> JsonObject:
    common = (route.status or {}).get("common")
    found = (common.get("State") or common.get("state")) if isinstance(common, dict) else None
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> int:
    """Return a number that protobuf's JSON may have written as a text; 0 where it is absent, as there."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) <= len(str(2**63)) else 0


def _approval(value: Any) -> str:
    if isinstance(value, int) and 0 <= value < len(APPROVALS):
        return APPROVALS[value]
    return str(value or APPROVALS[0])
