"""The configuration for Gloo Platform's RouteTables, under `solo-io/glooplatform` or `solo-io/glooplatformAPI`.

Takes the same texts and values as `config`, in the same way, and returns a frozen `GlooConfig`: the proof-of-concept
plugin's keys (selectors and destinations, and its older flat ones), ours behind them. Of what both forms say the newer
one's word counts, and a flat key fills in what the newer form leaves open; labels leave no name open, so that
`routeTableName` beside them says nothing.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.config import (
    LabelSelector,
    OwnOptions,
    RouteEntry,
    Section,
    read_config,
    read_off,
    unknown_hint,
)

FAMILY: Final = "routeTable"
MAX_PORT: Final = 65535
_KINDS: Final = {
    "service": "SERVICE",
    "virtual_destination": "VIRTUAL_DESTINATION",
    "virtualdestination": "VIRTUAL_DESTINATION",
    "external_service": "EXTERNAL_SERVICE",
    "externalservice": "EXTERNAL_SERVICE",
}


def _kind(value: Any) -> Any:
    """Return the API's word for a kind; the names of the objects (`VirtualDestination`) are taken, too."""
    return _KINDS.get(value.lower(), value) if isinstance(value, str) else value


DestinationKind = Annotated[
    Literal["", "SERVICE", "VIRTUAL_DESTINATION", "EXTERNAL_SERVICE"],
    BeforeValidator(_kind),
]


class ObjectName(Section):
    """Where a destination's object is; what is absent is not asked for."""

    name: str = ""
    namespace: str = ""
    cluster: str = ""


class Port(Section):
    """A port by number or by name."""

    number: int = 0
    name: str = ""

    @model_validator(mode="after")
    def _is_one(self) -> "Port":
        if bool(self.number) == bool(self.name):
            raise ValueError("one of number, name expected")
        if not 0 <= self.number <= MAX_PORT:
            raise ValueError(f"number: {self.number} is not a port (1 to {MAX_PORT})")
        return self


class DestinationConfig(Section):
    """What is known of the stable or the canary destination; a canary has the rest from stable."""

    kind: DestinationKind = ""
    ref: ObjectName = Field(default_factory=ObjectName)
    port: Port | None = None
    subset: dict[str, str] | None = None


class RouteTableSelector(LabelSelector):
    """Which RouteTables: one by name, or all with the labels."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _labels_are_match_labels(cls, value: Any) -> Any:
        """Have the proof-of-concept's `labels` checked and used as `matchLabels`."""
        if not isinstance(value, dict):
            return value
        keys = {str(key).lower(): key for key in value}
        labels = value.get(keys.get("labels", ""))
        matched = value.get(keys.get("matchlabels", "")) or {}
        if not isinstance(labels, dict) or not isinstance(matched, dict):
            return value
        rest = {key: item for key, item in value.items() if key != keys.get("matchlabels")}
        return {**rest, "matchLabels": {**labels, **matched}}

    @property
    def selects_by_label(self) -> bool:
        """Whether labels are asked for."""
        return bool(self.match_labels or self.match_expressions)


class RouteSelector(Section):
    """Which HTTP routes of a RouteTable: by name, by labels (all of them), or by both."""

    name: str = ""
    labels: dict[str, str] = Field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"name {self.name}"] if self.name else []
        parts += [f"label {key}={value}" for key, value in sorted(self.labels.items())]
        return ", ".join(parts)


class GlooConfig(OwnOptions):
    """The whole configuration; names and meaning as in the proof-of-concept plugin, ours behind them."""

    route_table_selector: RouteTableSelector | None = None
    route_selector: RouteSelector | None = None

    route_table_name: str = ""
    route_table_namespace: str = ""
    destination_kind: DestinationKind = ""
    destination_namespace: str = ""

    canary_destination: DestinationConfig = Field(default_factory=DestinationConfig)
    stable_destination: DestinationConfig = Field(default_factory=DestinationConfig)
    zero_weight: Literal["remove", "keep"] = "remove"
    mirror: Annotated[Literal["policy", "off"], BeforeValidator(read_off)] = "policy"

    @property
    def namespace(self) -> str:
        """The RouteTables' namespace; empty means the Rollout's."""
        selector = self.route_table_selector
        return (selector.namespace if selector else "") or self.route_table_namespace

    @property
    def table_name(self) -> str:
        """The one RouteTable, empty where labels select; a name wins over labels."""
        selector = self.route_table_selector
        if selector is None:
            return self.route_table_name
        return selector.name or ("" if selector.selects_by_label else self.route_table_name)

    @property
    def stable(self) -> DestinationConfig:
        """What is known of the stable destination, the flat keys included; the canary has the rest from it."""
        given = self.stable_destination
        ref = given.ref.model_copy(update={"namespace": given.ref.namespace or self.destination_namespace})
        return given.model_copy(update={"kind": given.kind or self.destination_kind, "ref": ref})

    # What the service asks of every configuration.

    @property
    def known_families(self) -> tuple[str, ...]:
        """The families that this configuration can have."""
        return (FAMILY,)

    @property
    def families(self) -> tuple[str, ...]:
        """The families with a named route or a selector."""
        return (FAMILY,)

    def entries(self, _family: str) -> tuple[RouteEntry, ...]:
        """Return the RouteTable that is named, if one is."""
        return (RouteEntry(name=self.table_name, use_header_routes=True),) if self.table_name else ()

    def selector(self, _family: str) -> LabelSelector | None:
        """Return the label selector, where no name is given."""
        return None if self.table_name else self.route_table_selector

    def selector_key(self, _family: str) -> str:
        """Return the selector's key, for errors."""
        return "routeTableSelector"

    @property
    def use_header_routes(self) -> bool:
        """Every RouteTable takes header routes."""
        return True

    @property
    def disable_in_progress_label(self) -> bool:
        """The label is put on only where its key is configured: the proof-of-concept plugin has none."""
        return not self.in_progress_label_key

    @property
    def managed_route_position(self) -> Literal["last", "first"]:
        """Not asked: the first route wins in a RouteTable, so a managed route has just one place."""
        return "last"

    @property
    def rule_name(self) -> str:
        """Not asked: `routeSelector` chooses routes."""
        return ""


def parse_gloo_config(raw: Any, key: str) -> GlooConfig:
    """Read the configuration found under the plugin's key.

    Raises:
        ConfigError: it is no JSON, a value has the wrong type, or no RouteTable is selected.

    """
    config = read_config(GlooConfig, raw, key, "give it a RouteTable (routeTableSelector: {name: <name>})")
    selector = config.route_table_selector
    if not config.table_name and not (selector and selector.selects_by_label):
        raise ConfigError(
            "No RouteTable configured. At least one of routeTableSelector.name, routeTableSelector.labels,"
            f" routeTableSelector.matchLabels, routeTableSelector.matchExpressions, routeTableName must be set in"
            f" plugins[{key!r}]{unknown_hint(config)}"
        )
    return config
