"""Steps that ask for exact values, and which requests they ask for: drawn, and judged without the plugin's own code."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from hypothesis import strategies as st

from rollouts_gwapi_plugin.embedded.dataplane.request import HttpRequest
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute

VALUES: Final = ("1", "2")


def sent_headers(names: Sequence[str]) -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    """Draw headers of a request or a match; their names differ also without case."""
    return st.lists(st.sampled_from(names), unique_by=str.lower, max_size=2).flatmap(
        lambda drawn: st.tuples(*[st.tuples(st.just(name), st.sampled_from(VALUES)) for name in drawn])
    )


@st.composite
def header_steps(draw: st.DrawFn, names: Sequence[str]) -> SetHeaderRoute:
    """Draw a header step; entries may share a name."""
    entries = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(VALUES)), min_size=1, max_size=3))
    match = [{"headerName": header, "headerValue": {"exact": value}} for header, value in entries]
    return SetHeaderRoute.model_validate({"name": "m-h", "match": match})


@st.composite
def mirror_steps(draw: st.DrawFn, names: Sequence[str], paths: Sequence[str]) -> SetMirrorRoute:
    """Draw a mirror step."""
    entries = []
    for _ in range(draw(st.integers(1, 2))):
        entry: dict[str, Any] = {"headers": {name: {"exact": value} for name, value in draw(sent_headers(names))}}
        if draw(st.booleans()):
            entry["method"] = {"exact": draw(st.sampled_from(["GET", "POST"]))}
        if draw(st.booleans()):
            entry["path"] = {draw(st.sampled_from(["prefix", "exact"])): draw(st.sampled_from(paths))}
        entries.append(entry)
    return SetMirrorRoute.model_validate({"name": "m-m", "match": entries, "percentage": 30})


def step_holds(step: SetHeaderRoute, request: HttpRequest, *, match_any: bool) -> bool:
    """Whether the request has what the step asks for: any entry, or one entry of each name (D13)."""
    sent = {name.lower(): value for name, value in request.headers}
    by_name: dict[str, list[bool]] = {}
    for entry in step.match:
        name = entry.header_name.lower()
        assert entry.header_value is not None
        by_name.setdefault(name, []).append(sent.get(name) == entry.header_value.exact)
    return (any if match_any else all)(any(held) for held in by_name.values())


def mirror_holds(step: SetMirrorRoute, request: HttpRequest, within: Callable[[str, str], bool]) -> bool:
    """Whether the request is what some entry of the step describes; `within` tells of a path and a prefix."""
    sent = {name.lower(): value for name, value in request.headers}
    for entry in step.match:
        method = entry.method is None or entry.method.exact == request.method
        path = entry.path is None or (
            request.path == entry.path.exact if entry.path.exact else within(request.path, entry.path.prefix)
        )
        if method and path and all(sent.get(name.lower()) == asked.exact for name, asked in entry.headers.items()):
            return True
    return False
