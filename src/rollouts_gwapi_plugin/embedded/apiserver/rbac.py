"""RBAC: whether the Roles and bindings in the store allow a request. The published manifests can be tried on it."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.embedded.apiserver.store import Store
from rollouts_gwapi_plugin.model.base import JsonObject

GROUP = "rbac.authorization.k8s.io"
ANY = "*"


class Subject(Protocol):
    """A user with groups."""

    @property
    def name(self) -> str:
        """The user's full name."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the user is in."""


class Rbac:
    """Evaluates ClusterRoleBindings, and the RoleBindings of the request's namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, user: Subject, request: Request) -> bool:
        """Tell whether any rule bound to the user covers the request."""
        return any(_covers(rule, request) for rule in self._rules(user, request.namespace))

    def _rules(self, user: Subject, namespace: str) -> Iterator[JsonObject]:
        for binding in self._values("clusterrolebindings", ""):
            if _binds(binding, user, ""):
                yield from self._role_rules(binding["roleRef"], "")
        for binding in self._values("rolebindings", namespace) if namespace else ():
            if _binds(binding, user, namespace):
                yield from self._role_rules(binding["roleRef"], namespace)

    def _role_rules(self, reference: JsonObject, namespace: str) -> Iterable[JsonObject]:
        plural, place = "clusterroles", ("", reference["name"])
        if reference.get("kind") == "Role":
            plural, place = "roles", (namespace, reference["name"])
        stored = self._store.get((GROUP, plural), place)
        if stored is None:
            return ()
        selectors = (stored.value.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if not selectors:
            return stored.value.get("rules") or ()
        return [
            rule
            for role in self._values("clusterroles", "")
            if any(_selected(role, selector) for selector in selectors)
            for rule in role.get("rules") or ()
        ]

    def _values(self, plural: str, namespace: str) -> list[JsonObject]:
        return [stored.value for stored in self._store.all((GROUP, plural), namespace)]


def _binds(binding: JsonObject, user: Subject, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name")
        if kind == "User" and name == user.name:
            return True
        if kind == "Group" and name in user.groups:
            return True
        if kind == "ServiceAccount":
            place = subject.get("namespace") or namespace
            if user.name == f"system:serviceaccount:{place}:{name}":
                return True
    return False


def _covers(rule: JsonObject, request: Request) -> bool:
    resource = f"{request.plural}/{request.subresource}" if request.subresource else request.plural
    resources = set(rule.get("resources") or ())
    named = (
        resource in resources
        or ANY in resources
        or (bool(request.subresource) and f"{ANY}/{request.subresource}" in resources)
    )
    names = rule.get("resourceNames") or ()
    return (
        named
        and bool({request.verb, ANY} & set(rule.get("verbs") or ()))
        and bool({request.group, ANY} & set(rule.get("apiGroups") or ()))
        and (not names or (bool(request.name) and request.name in names))
    )


def _selected(role: JsonObject, selector: JsonObject) -> bool:
    labels = role["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
