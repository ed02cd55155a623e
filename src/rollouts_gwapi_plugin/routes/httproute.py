"""HTTPRoute's way to narrow a match: by method and path."""

from typing import Final

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import RouteMatch, StringMatch
from rollouts_gwapi_plugin.routes.l7 import string_test
from rollouts_gwapi_plugin.routes.methods import exact_method

DEFAULT_PATH: Final = {"type": "PathPrefix", "value": "/"}
# The Gateway API's limit of a path's length, and what it forbids in one.
MAX_PATH: Final = 1024
_FORBIDDEN_IN_PATH: Final = ("//", "/./", "/../", "%2f", "%2F", "#")


class HttpMatch:
    """Narrow an HTTPRoute's match."""

    def intersect(self, match: JsonObject, asked: RouteMatch, where: str) -> JsonObject | None:
        """Return the match narrowed to the asked method and path, or None where no request can have both."""
        result = dict(match)
        if asked.method is not None:
            method = exact_method(asked.method, f"{where}.method", "the Gateway API")
            if match.get("method") not in (None, method):
                return None
            result["method"] = method
        if asked.path is not None:
            path = _narrower_path(path_of(match), _path(asked.path, f"{where}.path"))
            if path is None:
                return None
            result["path"] = path
        return result


def _path(asked: StringMatch, where: str) -> JsonObject:
    test = string_test(asked, where)
    if test.type == "RegularExpression":
        return {"type": test.type, "value": test.value}
    bad = [part for part in _FORBIDDEN_IN_PATH if part in test.value]
    if not test.value.startswith("/") or bad or len(test.value) > MAX_PATH:
        raise RouteError(
            f"{where}: {test.value!r} is not a path that the Gateway API takes: it must start with '/', have at most"
            f" {MAX_PATH} characters and none of {', '.join(_FORBIDDEN_IN_PATH)}"
        )
    return {"type": "Exact" if test.type == "Exact" else "PathPrefix", "value": test.value}


def path_of(match: JsonObject) -> JsonObject:
    """Return the match's path with the API's defaults."""
    given = {field: value for field, value in (match.get("path") or {}).items() if value is not None}
    return {**DEFAULT_PATH, **given}


def _narrower_path(own: JsonObject, asked: JsonObject) -> JsonObject | None:
    """Return the narrower of two paths where one lies in the other; expressions are compared by their text only."""
    for outer, inner in ((own, asked), (asked, own)):
        if path_contains(outer, inner):
            return inner
    return None


def path_contains(outer: JsonObject, inner: JsonObject) -> bool:
    """Whether every path of the inner is surely one of the outer; of expressions only the text is known."""
    if outer == inner:
        return True
    if outer["type"] != "PathPrefix":
        return False
    prefix = str(outer["value"]).rstrip("/")
    if inner["type"] == "RegularExpression":
        return not prefix
    # By path element: /api contains /api and /api/x, not /apix.
    return f"{str(inner['value']).rstrip('/')}/".startswith(f"{prefix}/")
