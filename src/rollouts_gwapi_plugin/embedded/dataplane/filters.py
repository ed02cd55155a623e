"""What the filters of a rule do to a request, to a response, or instead of a backend. Pure.

Takes filters as raw objects and a request; returns the changed request, the changed headers or a redirect. A filter
that is not known here is never skipped: `unsupported` names it, and the caller answers 500, as the Gateway API
demands.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

from rollouts_gwapi_plugin.embedded.dataplane.request import Connection, HttpRequest, Pairs, Request, hostname
from rollouts_gwapi_plugin.model.base import JsonObject

KNOWN = frozenset({"RequestHeaderModifier", "ResponseHeaderModifier", "RequestMirror", "RequestRedirect", "URLRewrite"})
_WELL_KNOWN_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Redirect:
    """A redirect that answers the request."""

    status: int
    location: str


def unsupported(filters: Iterable[JsonObject]) -> str:
    """Return the type of the first filter that is not known here, empty if all are."""
    return next((entry["type"] for entry in filters if entry["type"] not in KNOWN), "")


def of_type(filters: Iterable[JsonObject], kind: str, field: str) -> list[JsonObject]:
    """Return the bodies of the filters of one type."""
    return [entry.get(field) or {} for entry in filters if entry["type"] == kind]


def modify_headers(headers: Pairs, modifier: JsonObject) -> Pairs:
    """Apply `set`, `add`, then `remove` of a header modifier; names are compared without case."""
    for entry in modifier.get("set") or []:
        headers = (*_without(headers, {entry["name"].lower()}), (entry["name"], entry["value"]))
    added = tuple((entry["name"], entry["value"]) for entry in modifier.get("add") or [])
    return _without((*headers, *added), {name.lower() for name in modifier.get("remove") or []})


def modify_response(headers: Pairs, filters: Iterable[JsonObject]) -> Pairs:
    """Apply all response header modifiers."""
    for modifier in of_type(filters, "ResponseHeaderModifier", "responseHeaderModifier"):
        headers = modify_headers(headers, modifier)
    return headers


def modify_request(request: Request, filters: list[JsonObject], matched: JsonObject) -> Request:
    """Apply request header modifiers and rewrites; `matched` is the match that held."""
    if isinstance(request, Connection):
        return request
    for modifier in of_type(filters, "RequestHeaderModifier", "requestHeaderModifier"):
        request = request.with_headers(modify_headers(request.headers, modifier))
    for rewrite in of_type(filters, "URLRewrite", "urlRewrite"):
        if isinstance(request, HttpRequest):
            host = rewrite.get("hostname") or request.host
            request = request.redirected(host, _new_path(request.path, rewrite.get("path"), matched))
    return request


def redirect(request: HttpRequest, filters: list[JsonObject], matched: JsonObject, port: int) -> Redirect | None:
    """Return the redirect that the filters ask for; `port` is the listener's."""
    for wanted in of_type(filters, "RequestRedirect", "requestRedirect"):
        scheme = wanted.get("scheme") or "http"
        # Without a port: the scheme's own if the filter names a scheme, else the listener's.
        target = wanted.get("port") or (_WELL_KNOWN_PORTS.get(scheme, port) if wanted.get("scheme") else port)
        host = wanted.get("hostname") or hostname(request.host)
        authority = host if target == _WELL_KNOWN_PORTS.get(scheme) else f"{host}:{target}"
        path = _new_path(request.path, wanted.get("path"), matched)
        return Redirect(wanted.get("statusCode") or HTTPStatus.FOUND, f"{scheme}://{authority}{path}")
    return None


def _without(headers: Pairs, names: set[str]) -> Pairs:
    return tuple((name, value) for name, value in headers if name.lower() not in names)


def _new_path(path: str, change: JsonObject | None, matched: JsonObject) -> str:
    if not change:
        return path
    if change.get("type") == "ReplaceFullPath":
        return change.get("replaceFullPath") or "/"
    prefix = (matched.get("path") or {}).get("value", "/")
    rest = path[len(prefix.rstrip("/")) :]
    return ((change.get("replacePrefixMatch") or "").rstrip("/") + rest) or "/"
