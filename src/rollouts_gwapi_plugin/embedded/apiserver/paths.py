"""From a request's path and method to what it is about: group, version, namespace, plural, name, subresource, verb."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
# Below a namespace's own path these are parts of it; any other word is a plural of things in it.
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@dataclass(frozen=True)
class ResourcePath:
    """A path below `/api/v1` or `/apis/<group>/<version>`."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> ResourcePath | None:
    """Read a path; None where it is not a resource's."""
    match [unquote(part) for part in path.strip("/").split("/")]:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return None
    match rest:
        case ["namespaces", namespace, plural, *tail] if group or plural not in _NAMESPACE_SUBRESOURCES:
            return _below(ResourcePath(group, version, plural, namespace), tail)
        case [plural, *tail]:
            return _below(ResourcePath(group, version, plural), tail)
    return None


def _below(path: ResourcePath, tail: list[str]) -> ResourcePath:
    name, *rest = tail or [""]
    return replace(path, name=name, subresource="/".join(rest))


def verb_of(method: str, path: ResourcePath, query: Mapping[str, str]) -> str:
    """Find the API's word for what is asked, as RBAC knows it; empty where there is none."""
    if method in {"GET", "HEAD"}:
        if query.get("watch") in {"1", "true"}:
            return "watch"
        return "get" if path.name else "list"
    if method == "DELETE":
        return "delete" if path.name else "deletecollection"
    return _VERBS.get(method, "")
