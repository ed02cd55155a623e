"""Route objects of the Gateway API: what we read and change is typed, everything else is kept as it came.

`parse` then `dump` is the identity, explicit nulls included. A model is never changed: `replace()` returns a copy with
fields set. Matches, filters, parentRefs and status stay plain JSON.
"""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject

# The API's default of backendRef.weight.
DEFAULT_WEIGHT = 1


class Raw(BaseModel):
    """A part of an object of the API, with every field that we do not know."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, populate_by_name=True, alias_generator=to_camel)

    def dump(self) -> JsonObject:
        """Return the JSON that this was read from, with what was replaced since."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    def replace(self, **fields: Any) -> Self:
        """Return a copy with the fields set."""
        return self.model_copy(update=fields)

    def without(self, *fields: str) -> Self:
        """Return a copy in which the fields are not set at all."""
        copy = self.model_copy(update={field: type(self).model_fields[field].default for field in fields})
        copy.model_fields_set.difference_update(fields)
        return copy


class BackendRef(Raw):
    """One backend of a rule."""

    group: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str = ""
    port: int | None = None
    weight: int | None = None

    @property
    def effective_weight(self) -> int:
        """The weight with the API's default."""
        return DEFAULT_WEIGHT if self.weight is None else self.weight

    @property
    def group_kind(self) -> tuple[str, str]:
        """Group and kind with the API's defaults: the core group and Service."""
        return self.group or "", self.kind or "Service"

    def with_weight(self, weight: int) -> "BackendRef":
        """Return this reference if it has the weight already, modulo the default; else a copy that has it."""
        return self if self.effective_weight == weight else self.replace(weight=weight)


class Rule(Raw):
    """One rule of a route."""

    name: str | None = None
    matches: list[JsonObject] | None = None
    filters: list[JsonObject] | None = None
    backend_refs: list[BackendRef] | None = None

    @property
    def backends(self) -> list[BackendRef]:
        """The backends; none where the field is absent or null."""
        return self.backend_refs or []

    def with_backends(self, backends: list[BackendRef]) -> "Rule":
        """Return this rule if the backends are the very same objects in the same order; else a copy that has them."""
        old = self.backends
        same = len(old) == len(backends) and all(a is b for a, b in zip(old, backends, strict=True))
        return self if same else self.replace(backend_refs=backends)


class Metadata(Raw):
    """`metadata`."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class RouteSpec(Raw):
    """`spec`."""

    parent_refs: list[JsonObject] | None = None
    rules: list[Rule] | None = None


class Route(Raw):
    """An HTTPRoute, GRPCRoute, TCPRoute, TLSRoute or UDPRoute."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata = Metadata()
    spec: RouteSpec = RouteSpec()
    status: JsonObject | None = None

    @property
    def rules(self) -> list[Rule]:
        """The rules; none where the field is absent or null."""
        return self.spec.rules or []

    def with_rules(self, rules: list[Rule]) -> "Route":
        """Return this route if the rules are the very same objects in the same order; else a copy that has them."""
        old = self.rules
        if len(old) == len(rules) and all(a is b for a, b in zip(old, rules, strict=True)):
            return self
        return self.replace(spec=self.spec.replace(rules=rules))

    def __str__(self) -> str:
        return f"{self.kind} {self.metadata.namespace}/{self.metadata.name}"


def parse_route(raw: JsonObject) -> Route:
    """Read a route as the API server sent it.

    Raises:
        RouteError: a field that we read has not the type that the API gives it.

    """
    try:
        return Route.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        metadata = raw.get("metadata") or {}
        what = f"{raw.get('kind', 'route')} {metadata.get('namespace', '')}/{metadata.get('name', '')}"
        raise RouteError(f"{what}: {path}: {first['msg']}, found {str(first['input'])[:80]!r}") from error
