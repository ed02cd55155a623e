"""A RouteTable as lists of routes, and back.

Takes a `Route` as read from the API, gives `TableRoute` values of the sections http, tcp and tls alike, and puts
changed lists back: the very same object where nothing changed. Raw JSON is never changed in place.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.route_tables import SECTIONS, sections_of
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.canonical import FINGERPRINT_LENGTH


@dataclass(frozen=True)
class TableRoute:
    """One route of a section."""

    section: str
    raw: JsonObject
    # The place in its section, as read.
    index: int = field(default=-1, compare=False)

    @property
    def name(self) -> str:
        """The name; routes of tcp and tls have none."""
        return self.raw.get("name") or ""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels; routes of tcp and tls have none."""
        return self.raw.get("labels") or {}

    @property
    def forward_to(self) -> JsonObject:
        """The action, empty for a route that does not forward."""
        return self.raw.get("forwardTo") or {}

    @property
    def destinations(self) -> list[JsonObject]:
        """The destinations; none for a route that does not forward."""
        return self.forward_to.get("destinations") or []

    def with_destinations(self, destinations: Sequence[JsonObject]) -> "TableRoute":
        """Return the route with these destinations; itself where it has them."""
        if list(destinations) == self.destinations:
            return self
        action = {**self.forward_to, "destinations": list(destinations)}
        return replace(self, raw={**self.raw, "forwardTo": action})

    @property
    def print(self) -> str:
        """Tell the route by what it matches and does, whatever its name, labels and destinations are."""
        action = {field: value for field, value in self.forward_to.items() if field != "destinations"}
        rest = {field: value for field, value in self.raw.items() if field not in {"name", "labels", "forwardTo"}}
        return digest({"section": self.section, "route": rest, "action": action})

    def __str__(self) -> str:
        return f"{self.section}[{self.index}]" + (f" ({self.name})" if self.name else "")


def digest(value: object) -> str:
    """Return a short hash of a JSON value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_LENGTH]


Table = dict[str, list[TableRoute]]


def read_table(route: Route) -> Table:
    """Return all routes by section.

    Raises:
        RouteError: the object has not the API's shape.

    """
    found = sections_of(route)
    return {
        section: [TableRoute(section, raw, index) for index, raw in enumerate(found.get(section, ()))]
        for section in SECTIONS
    }


def write_table(route: Route, table: Table, annotations: Mapping[str, str]) -> Route:
    """Return the route with these lists and annotations; the same object where all is as it was."""
    old = sections_of(route)
    new = {section: [item.raw for item in items] for section, items in table.items()}
    changed = {section: items for section, items in new.items() if items != old.get(section, [])}
    result = route.replace(spec=route.spec.replace(**changed)) if changed else route
    if dict(annotations) == (route.metadata.annotations or {}):
        return result
    metadata = result.metadata.replace(annotations=dict(annotations))
    return result.replace(metadata=metadata if annotations else metadata.without("annotations"))
