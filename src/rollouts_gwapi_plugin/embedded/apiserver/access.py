"""Who asks, and whether they may: bearer tokens, denials for tests, and RBAC by the objects of the API.

A request without a token is the default user's, unless tokens are required. Without `rbac` everything that is not
denied is allowed; with it, the Roles and bindings in the store decide.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rollouts_gwapi_plugin.embedded.apiserver.rbac import Rbac
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.embedded.apiserver.status import forbidden, unauthorized

DEFAULT_USER = "system:serviceaccount:argo-rollouts:argo-rollouts"
ADMIN = "admin"
ADMIN_GROUP = "system:masters"
ANY = "*"


@dataclass(frozen=True)
class User:
    """A name and the groups it is in."""

    name: str
    groups: tuple[str, ...] = ()


@dataclass(eq=False)
class Denial:
    """One denial; a context manager that ends it."""

    verb: str
    resource: str
    namespace: str
    name: str
    access: "Access" = field(repr=False)

    def matches(self, request: Request) -> bool:
        """Whether it holds for the request; `*` stands for any."""
        resource = f"{request.plural}/{request.subresource}" if request.subresource else request.plural
        pairs = (
            (self.verb, request.verb),
            (self.resource, resource),
            (self.namespace, request.namespace),
            (self.name, request.name),
        )
        return all(wanted in {ANY, actual} for wanted, actual in pairs)

    def lift(self) -> None:
        """End the denial."""
        if self in self.access.denials:
            self.access.denials.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.lift()


def _groups_of(user: str) -> tuple[str, ...]:
    """Give the groups that a user is in by its name."""
    match user.split(":"):
        case ["system", "serviceaccount", namespace, _]:
            return "system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"
    return ("system:authenticated",)


class Access:
    """See the module's text."""

    def __init__(self, rbac: Rbac | None = None, *, require_token: bool = False) -> None:
        self.rbac = rbac
        self.require_token = require_token
        self.denials: list[Denial] = []
        self._tokens: dict[str, User] = {}
        self.default_token = self.add_token(DEFAULT_USER)
        self.admin_token = self.add_token(ADMIN, groups=(ADMIN_GROUP,))

    def add_token(self, user: str, *, groups: tuple[str, ...] = (), token: str = "") -> str:
        """Make a token for a user; a service account's groups come by themselves."""
        token = token or secrets.token_urlsafe(24)
        self._tokens[token] = User(user, (*groups, *_groups_of(user)))
        return token

    def revoke(self, token: str) -> None:
        """Stop knowing a token."""
        self._tokens.pop(token, None)

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """Find the user of a request, or raise 401; an administrator may act as another."""
        user = self._known(headers.get("authorization", ""))
        other = headers.get("impersonate-user", "")
        if other and ADMIN_GROUP in user.groups:
            return User(other, _groups_of(other))
        return user

    def _known(self, authorization: str) -> User:
        scheme, _, token = authorization.partition(" ")
        if not authorization:
            if self.require_token:
                raise unauthorized()
            return self._tokens.get(self.default_token) or User(DEFAULT_USER)
        user = self._tokens.get(token.strip())
        if scheme.lower() != "bearer" or user is None:
            raise unauthorized()
        return user

    def deny(self, verb: str, resource: str, namespace: str = ANY, name: str = ANY) -> Denial:
        """Answer 403 to these requests over HTTP until lifted; `*` stands for any."""
        denial = Denial(verb, resource, namespace, name, self)
        self.denials.append(denial)
        return denial

    def authorize(self, user: User, request: Request) -> None:
        """Raise 403 where the user may not; a path that is no resource's is anybody's."""
        if not request.plural:
            return
        denied = any(denial.matches(request) for denial in self.denials)
        if not denied and (self.rbac is None or ADMIN_GROUP in user.groups or self.rbac.allows(user, request)):
            return
        resource = f"{request.plural}/{request.subresource}" if request.subresource else request.plural
        where = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
        why = f'User "{user.name}" cannot {request.verb} resource "{resource}" in API group "{request.group}" {where}'
        full = f"{request.plural}.{request.group}" if request.group else request.plural
        raise forbidden(full, request.name, request.group, why)
