"""Gloo Platform's RouteTable (`networking.gloo.solo.io/v2`) as far as we look into it: its shape, checked, not changed.

Takes a route as read and returns the lists of its sections as plain JSON. Only what is read is checked, so that an API
server without schemas can't surprise the reconcilers; every unknown field passes.
"""

from typing import Final

from pydantic import ValidationError

from rollouts_gwapi_plugin.errors import RouteError, shown
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Raw, Route

SECTIONS: Final = ("http", "tcp", "tls")
Sections = dict[str, list[JsonObject]]


class _Ref(Raw):
    name: str | None = None
    namespace: str | None = None
    cluster: str | None = None


class _Port(Raw):
    number: int | None = None
    name: str | None = None


class _Destination(Raw):
    ref: _Ref | None = None
    kind: str | None = None
    port: _Port | None = None
    subset: dict[str, str] | None = None
    weight: int | None = None


class _ForwardTo(Raw):
    destinations: list[_Destination] | None = None
    path_rewrite: str | None = None


class _Text(Raw):
    exact: str | None = None
    prefix: str | None = None
    regex: str | None = None
    ignore_case: bool | None = None


class _Header(Raw):
    name: str | None = None
    value: str | None = None
    regex: bool | None = None
    invert_match: bool | None = None


class _Matcher(Raw):
    uri: _Text | None = None
    headers: list[_Header] | None = None
    method: str | None = None


class _ConnectionRoute(Raw):
    matchers: list[JsonObject] | None = None
    forward_to: _ForwardTo | None = None


class _HttpRoute(Raw):
    name: str | None = None
    labels: dict[str, str] | None = None
    matchers: list[_Matcher] | None = None
    forward_to: _ForwardTo | None = None


class _Spec(Raw):
    http: list[_HttpRoute] | None = None
    tcp: list[_ConnectionRoute] | None = None
    tls: list[_ConnectionRoute] | None = None


def sections_of(route: Route) -> Sections:
    """Return the lists of the sections that the RouteTable has; they must not be changed.

    Raises:
        RouteError: a field that we read has not the type that the API gives it.

    """
    extra = route.spec.model_extra or {}
    found = {section: extra[section] for section in SECTIONS if extra.get(section) is not None}
    try:
        _Spec.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in ("spec", *first["loc"]))
        value = shown(first["input"])
        raise RouteError(f"{route}: {path}: {first['msg']}, found {value}; correct the object") from error
    return found
