"""The plugin's configuration in a Rollout: `spec.strategy.canary.trafficRouting.plugins[<key>]` (decision D24).

Takes the JSON text (over gob) or the JSON value (over gRPC), returns a frozen `PluginConfig`. Key names are read
without case, as Go does; null is absent; unknown keys are accepted and listed in `unknown_keys`, with their paths.
Whatever can't be used is a `ConfigError` with the path, the value and what was expected.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from rollouts_gwapi_plugin.errors import ConfigError, cut

DEFAULT_CONFIG_MAP = "argo-gatewayapi-configmap"
DEFAULT_LABEL_KEY = "rollouts.argoproj.io/gatewayapi-canary"
DEFAULT_LABEL_VALUE = "in-progress"
ROUTE_FAMILIES = ("http", "grpc", "tcp", "tls", "udp")

_NAME_PART = r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?"
_LABEL_NAME = re.compile(_NAME_PART)
_LABEL_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# Kubernetes' own limits of label keys and values.
MAX_LABEL_NAME = 63
MAX_LABEL_PREFIX = 253
# A year: no call and no rollout waits for so long. What is longer, or infinite, means this.
LONGEST_SECONDS = 31_536_000
# How alike a mistyped key is to the one that is meant.
CLOSE = 0.75


class Section(BaseModel):
    """A part of the configuration: strict types, keys without case, null absent."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, populate_by_name=True, alias_generator=to_camel)
    _by_lower_name: ClassVar[dict[str, str]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls._by_lower_name = {to_camel(name).lower(): to_camel(name) for name in cls.model_fields}

    @model_validator(mode="before")
    @classmethod
    def _read_keys_without_case(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        known = cls._by_lower_name
        return {known.get(str(key).lower(), str(key)): item for key, item in value.items() if item is not None}

    @property
    def unknown_keys(self) -> tuple[str, ...]:
        """Paths of the keys that we do not know, in the sections below, too; each is worth one warning."""
        found = list(self.model_extra or {})
        for name in type(self).model_fields:
            value, path = getattr(self, name), to_camel(name)
            if isinstance(value, Section):
                found += [f"{path}.{key}" for key in value.unknown_keys]
            elif isinstance(value, tuple):
                sections = ((index, item) for index, item in enumerate(value) if isinstance(item, Section))
                found += [f"{path}[{index}].{key}" for index, item in sections for key in item.unknown_keys]
        return tuple(sorted(found))


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class RouteEntry(Section):
    """One named route; header routes are set on it only if asked for, and one rule of it can be chosen."""

    name: str = ""
    use_header_routes: bool = False
    rule_name: str = ""

    @model_validator(mode="after")
    def _name_is_required(self) -> "RouteEntry":
        if not self.name:
            raise ValueError("name: the name of a route is required")
        return self


class Requirement(Section):
    """One of `matchExpressions`."""

    key: str = ""
    operator: str = ""
    values: Annotated[tuple[str, ...], BeforeValidator(_tuple)] = ()

    @model_validator(mode="after")
    def _is_complete(self) -> "Requirement":
        _named("key", check_label_key, self.key)
        if self.operator not in {"In", "NotIn", "Exists", "DoesNotExist"}:
            raise ValueError(f"operator: {self.operator!r} is none of In, NotIn, Exists, DoesNotExist")
        takes_values = self.operator in {"In", "NotIn"}
        if takes_values != bool(self.values):
            raise ValueError(f"values: {self.operator} {'needs at least one value' if takes_values else 'takes none'}")
        for index, value in enumerate(self.values):
            _named(f"values[{index}]", check_label_value, value)
        return self


class LabelSelector(Section):
    """A Kubernetes label selector."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: Annotated[tuple[Requirement, ...], BeforeValidator(_tuple)] = ()

    @model_validator(mode="after")
    def _is_legal(self) -> "LabelSelector":
        for key, value in self.match_labels.items():
            _named("matchLabels", check_label_key, key)
            _named(f"matchLabels[{key}]", check_label_value, value)
        return self

    @property
    def text(self) -> str:
        """The selector as the API's `labelSelector` parameter; empty selects everything."""
        parts = [f"{key}={value}" for key, value in sorted(self.match_labels.items())]
        for requirement in self.match_expressions:
            values = ",".join(requirement.values)
            parts.append(
                {
                    "In": f"{requirement.key} in ({values})",
                    "NotIn": f"{requirement.key} notin ({values})",
                    "Exists": requirement.key,
                    "DoesNotExist": f"!{requirement.key}",
                }[requirement.operator]
            )
        return ",".join(parts)


def _named(path: str, check: Callable[[str], None], value: str) -> None:
    """Check a value; an error opens with the path below the section."""
    try:
        check(value)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _duration(value: Any) -> Any:
    """Seconds, from a number or from Go's notation (`1m30s`, `500ms`); no number is too large."""
    seconds = _read_duration(value) if isinstance(value, str) else value
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        # Below 0 it is refused, but an integer of thousands of digits is no float at all.
        return float(max(-LONGEST_SECONDS, min(seconds, LONGEST_SECONDS)))
    return seconds


def _read_duration(text: str) -> float:
    parts = _DURATION_PART.findall(text)
    if not text or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f'found {_short(text)}, a duration such as "30s" or "500ms", or a number of seconds, expected')
    return sum(float(number) * _DURATION_UNITS[unit] for number, unit in parts)


def read_off(value: Any) -> Any:
    """YAML 1.1, which kubectl reads, takes an unquoted `off` for false."""
    return "off" if value is False else value


def _or_default(value: str) -> str:
    return value or DEFAULT_CONFIG_MAP


Config = TypeVar("Config", bound=Section)
Seconds = Annotated[float, BeforeValidator(_duration), Field(ge=0)]
Entries = Annotated[tuple[RouteEntry, ...], BeforeValidator(_tuple)]


class OwnOptions(Section):
    """Options of ours that every kind of route has."""

    config_map: Annotated[str, AfterValidator(_or_default)] = DEFAULT_CONFIG_MAP
    header_match: Literal["all", "any"] = "all"
    self_heal: bool = True
    verify: Annotated[Literal["status", "off"], BeforeValidator(read_off)] = "status"
    verify_timeout: Seconds = 30.0
    verify_wait: Seconds = 2.0
    in_progress_label_key: str = ""
    in_progress_label_value: str = ""

    @model_validator(mode="after")
    def _label_is_legal(self) -> Self:
        for path, check, value in (
            ("inProgressLabelKey", check_label_key, self.label_key),
            ("inProgressLabelValue", check_label_value, self.label_value),
        ):
            _named(path, check, value)
        return self

    @property
    def label_key(self) -> str:
        """The in-progress label's key."""
        return self.in_progress_label_key or DEFAULT_LABEL_KEY

    @property
    def label_value(self) -> str:
        """The in-progress label's value."""
        return self.in_progress_label_value or DEFAULT_LABEL_VALUE


class PluginConfig(OwnOptions):
    """The whole configuration; names and meaning as in the Go plugin."""

    http_route: str = ""
    grpc_route: str = ""
    tcp_route: str = ""
    tls_route: str = ""
    udp_route: str = ""
    http_routes: Entries = ()
    grpc_routes: Entries = ()
    tcp_routes: Entries = ()
    tls_routes: Entries = ()
    udp_routes: Entries = ()
    http_route_selector: LabelSelector | None = None
    grpc_route_selector: LabelSelector | None = None
    tcp_route_selector: LabelSelector | None = None
    tls_route_selector: LabelSelector | None = None
    udp_route_selector: LabelSelector | None = None
    http_route_rule_name: str = ""
    grpc_route_rule_name: str = ""
    tcp_route_rule_name: str = ""
    tls_route_rule_name: str = ""
    udp_route_rule_name: str = ""
    namespace: str = ""
    disable_in_progress_label: bool = False

    managed_route_position: Literal["last", "first"] = "last"
    rule_name: str = ""
    use_header_routes: bool = False

    def entries(self, family: str) -> tuple[RouteEntry, ...]:
        """Return the named routes of a family (`http`, …), each once; header routes are on if any mention says so."""
        single: str = getattr(self, f"{family}_route")
        listed: tuple[RouteEntry, ...] = getattr(self, f"{family}_routes")
        of_single: str = getattr(self, f"{family}_route_rule_name")
        mentions = [RouteEntry(name=single, use_header_routes=True, rule_name=of_single)] if single else []
        merged: dict[str, RouteEntry] = {}
        for mention in (*mentions, *listed):
            known = merged.get(mention.name, mention)
            merged[mention.name] = RouteEntry(
                name=mention.name,
                use_header_routes=known.use_header_routes or mention.use_header_routes,
                rule_name=known.rule_name or mention.rule_name,
            )
        return tuple(merged.values())

    @model_validator(mode="after")
    def _one_rule_a_route(self) -> Self:
        for family in ROUTE_FAMILIES:
            chosen = {entry.name: entry.rule_name for entry in self.entries(family)}
            listed: tuple[RouteEntry, ...] = getattr(self, f"{family}_routes")
            for index, entry in enumerate(listed):
                other = chosen[entry.name]
                if entry.rule_name not in {"", other}:
                    text = f"route {entry.name!r} has ruleName {other!r}, too; only one of its rules can be managed"
                    raise ValueError(f"{family}Routes[{index}]: ruleName {entry.rule_name!r}: {text}")
        return self

    def selector(self, family: str) -> LabelSelector | None:
        """Return the selector of a family, if there is one."""
        selector: LabelSelector | None = getattr(self, f"{family}_route_selector")
        return selector

    def selector_key(self, family: str) -> str:
        """Return the key of a family's selector, for errors."""
        return f"{family}RouteSelector"

    @property
    def known_families(self) -> tuple[str, ...]:
        """The families that this configuration can have."""
        return ROUTE_FAMILIES

    @property
    def families(self) -> tuple[str, ...]:
        """The families with a named route or a selector."""
        return tuple(family for family in ROUTE_FAMILIES if self.entries(family) or self.selector(family) is not None)


def check_label_key(key: str) -> None:
    """Raise ValueError unless the key is a legal label key."""
    prefix, slash, name = key.rpartition("/")
    bad_prefix = bool(slash) and (len(prefix) > MAX_LABEL_PREFIX or not _LABEL_PREFIX.fullmatch(prefix))
    if bad_prefix or len(name) > MAX_LABEL_NAME or not _LABEL_NAME.fullmatch(name):
        raise ValueError(
            f"{key!r} is not a legal label key ([prefix/]name, the name at most {MAX_LABEL_NAME} characters)"
        )


def check_label_value(value: str) -> None:
    """Raise ValueError unless the value is a legal label value."""
    if value and (len(value) > MAX_LABEL_NAME or not _LABEL_NAME.fullmatch(value)):
        raise ValueError(
            f"{value!r} is not a legal label value (at most {MAX_LABEL_NAME} letters, digits, '-', '_', '.')"
        )


_EXPECTED = {
    "bool_type": "true or false expected",
    "string_type": "a string expected",
    "tuple_type": "a list expected",
    "dict_type": "an object expected",
    "model_type": "an object expected",
    "model_attributes_type": "an object expected",
    "float_type": 'a number of seconds or a duration such as "30s" expected',
    "greater_than_equal": "a number that is not negative expected",
}


def parse_config(raw: Any, key: str) -> PluginConfig:
    """Read the configuration found under the plugin's key.

    Raises:
        ConfigError: it is no JSON, or a value has the wrong type; the text gives the path and the value.

    """
    config = read_config(PluginConfig, raw, key, "give it at least one route (httpRoute: <name>)")
    if not config.families:
        accepted = ", ".join(f"{f}Route, {f}Routes, {f}RouteSelector" for f in ROUTE_FAMILIES)
        raise ConfigError(
            f"No routes configured. At least one of {accepted} must be set in plugins[{key!r}]{unknown_hint(config)}"
        )
    return config


def unknown_hint(config: Section) -> str:
    """Return, for an error, the unknown keys at the top, each with the one that may be meant; empty without any."""
    known = {name.lower(): name for name in map(to_camel, type(config).model_fields)}
    hints = []
    for key in sorted(config.model_extra or {}):
        close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=CLOSE)
        hints.append(f"{cut(key)!r} is not known" + (f" (is {known[close[0]]!r} meant?)" if close else ""))
    return f"; {', '.join(hints)}" if hints else ""


def read_config(model: type[Config], raw: Any, key: str, way_out: str) -> Config:
    """Read a configuration of a model; `way_out` says what to do about a null.

    Raises:
        ConfigError: it is no JSON, or a value has the wrong type; the text gives the path and the value.

    """
    where = f"plugins[{key!r}]"
    if isinstance(raw, bytes | str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{where}: the configuration is not JSON: {error}") from error
    if raw is None:
        raise ConfigError(f"{where}: the configuration is null; {way_out}")
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where}: an object expected, found {_short(raw)}")
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(where, item) for item in error.errors())) from error


def _explain(where: str, item: Mapping[str, Any]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"]).lstrip(".")
    kind = str(item["type"])
    if kind == "value_error":
        # Text of our own checks: it opens with a field below the path, or speaks of the value at the path.
        text = str(item["msg"]).removeprefix("Value error, ")
        names_field = re.match(r"[a-z][A-Za-z]*(\[[^\]]*\])?: ", text) is not None
        joint = "" if not path else "." if names_field else ": "
        return f"{where}: {path}{joint}{text}"
    if kind == "literal_error":
        return f"{where}: {path}: {_short(item['input'])} is not allowed, {item['ctx']['expected']} expected"
    expected = _EXPECTED.get(kind, str(item["msg"]))
    return f"{where}: {path}: found {_short(item['input'])}, {expected}"


def _short(value: Any) -> str:
    return cut(json.dumps(value, default=str))
