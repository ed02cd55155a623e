"""Route objects of the Gateway API: what we read and change is typed, everything else is kept as it came.

`parse` then `dump` is the identity, explicit nulls included. A model is never changed: `replace()` returns a copy with
fields set. Matches, filters, parentRefs and status stay plain JSON; of matches and filters the parts that reconcilers
look into are checked, so that an API server without schemas can't surprise them.
"""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from rollouts_gwapi_plugin.errors import RouteError, shown
from rollouts_gwapi_plugin.model.base import JsonObject

# The API's default of backendRef.weight.
DEFAULT_WEIGHT = 1


class Raw(BaseModel):
    """A part of an object of the API, with every field that we do not know."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, alias_generator=to_camel)

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


def _object(owner: JsonObject, field: str) -> JsonObject:
    """Return the object in a field, an empty one where the field is absent or null."""
    value = owner.get(field)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{field}: an object expected, found {shown(value)}")
    return value or {}


def _texts(owner: JsonObject, *fields: str) -> None:
    for field in fields:
        value = owner.get(field)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{field}: a string expected, found {shown(value)}")


def _check_match(match: JsonObject) -> JsonObject:
    _texts(_object(match, "path"), "type", "value")
    for field in ("headers", "queryParams"):
        entries = match.get(field) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError(f"{field}: a list of objects expected, found {shown(entries)}")
        for entry in entries:
            _texts(entry, "type", "name", "value")
    # A GRPCRoute's method is an object, an HTTPRoute's is a string.
    method = match.get("method")
    if isinstance(method, dict):
        _texts(method, "type", "service", "method")
    else:
        _texts(match, "method")
    return match


def _check_filter(item: JsonObject) -> JsonObject:
    for field in ("urlRewrite", "requestRedirect"):
        _texts(_object(_object(item, field), "path"), "type", "replacePrefixMatch", "replaceFullPath")
    target = _object(_object(item, "requestMirror"), "backendRef")
    _texts(target, "group", "kind", "namespace", "name")
    return item


Match = Annotated[JsonObject, AfterValidator(_check_match)]
Filter = Annotated[JsonObject, AfterValidator(_check_filter)]


class BackendRef(Raw):
    """One backend of a rule."""

    group: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str = ""
    port: int | None = None
    weight: int | None = None
    filters: list[Filter] | None = None

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
    matches: list[Match] | None = None
    filters: list[Filter] | None = None
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
        text = str(first["msg"]).removeprefix("Value error, ")
        found = "" if first["type"] == "value_error" else f", found {shown(first['input'])}"
        metadata = raw.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        what = f"{raw.get('kind', 'route')} {named.get('namespace', '')}/{named.get('name', '')}"
        raise RouteError(f"{what}: {path}: {text}{found}; correct the object") from error
