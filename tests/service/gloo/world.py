"""A namespace `shop` with RouteTables on an embedded API server, and the service that works on them."""

import json
from pathlib import Path
from typing import Any

import yaml
from tests.service.world import LEDGER, Shop

from rollouts_gwapi_plugin.model.calls import HeaderRouteCall

KEY = "solo-io/glooplatform"
KEPT = "rollouts.argoproj.io/glooplatform-destinations"
HEADER_LABEL = "rollouts.argoproj.io/header-route"
MIRROR_LABEL = "rollouts.argoproj.io/mirror-route"
Json = dict[str, Any]


def crds() -> list[Json]:
    """Load the definitions of RouteTable and MirrorPolicy."""
    return list(yaml.safe_load_all(Path(__file__).with_name("crds.yaml").read_text()))


def destination(name: str, weight: int | None = None, **fields: Any) -> Json:
    """Make a destination, port 80."""
    raw: Json = {"ref": {"name": name}, "port": {"number": 80}, **fields}
    return raw if weight is None else {**raw, "weight": weight}


def http(refs: str, name: str = "", **fields: Any) -> Json:
    """Make a route from a text such as `s100 c0 x`: names with weights."""
    found = []
    for text in refs.split():
        stem = text.rstrip("0123456789")
        found.append(destination(stem, int(text[len(stem) :]) if text != stem else None))
    named = {"name": name} if name else {}
    return {**named, **fields, "forwardTo": {**fields.get("forwardTo", {}), "destinations": found}}


def table(*routes: Json, name: str = "web", tcp: tuple[Json, ...] = (), tls: tuple[Json, ...] = ()) -> Json:
    """Make a RouteTable in `shop`."""
    sections = {section: list(listed) for section, listed in (("http", routes), ("tcp", tcp), ("tls", tls)) if listed}
    return {
        "apiVersion": "networking.gloo.solo.io/v2",
        "kind": "RouteTable",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"hosts": ["www.example.com"], **sections},
    }


class GlooShop(Shop):
    """A Rollout `shop/web` whose routes are RouteTables."""

    def configure(self, **config: Any) -> None:
        """Give the Rollout another configuration."""
        self.plugins = {KEY: config}

    def header_step(self, step: Json) -> None:
        """SetHeaderRoute with a whole step."""
        self.router.set_header_route(
            HeaderRouteCall.model_validate({"rollout": self.rollout(), "setHeaderRoute": step})
        )

    def live(self, name: str = "web") -> Json:
        """Return a RouteTable."""
        found: Json = self.api.read("RouteTable", "shop", name)
        return found

    def lines(self, name: str = "web", section: str = "http") -> list[str]:
        """Return the routes of a section, each as `name: destination=weight …`."""
        return [line(item) for item in self.live(name)["spec"].get(section, [])]

    def kept(self, name: str = "web") -> Json:
        """Return what the annotation keeps; empty without it."""
        text = (self.live(name)["metadata"].get("annotations") or {}).get(KEPT)
        found: Json = json.loads(text)["rollouts"] if text else {}
        return found

    def policies(self) -> dict[str, Json]:
        """Return the specs of the MirrorPolicies, by name."""
        return {found["metadata"]["name"]: found["spec"] for found in self.api.list("MirrorPolicy", "shop")}

    def recorded(self) -> Json:
        """Return the ledger's data of RouteTables."""
        found = self.api.find("ConfigMap", "shop", LEDGER) or {}
        return {key: json.loads(text)["rollouts"] for key, text in (found.get("data") or {}).items()}


def line(item: Json) -> str:
    """Return a route as one line."""
    found = (item.get("forwardTo") or {}).get("destinations", [])
    weights = " ".join(f"{(raw.get('ref') or {}).get('name')}={raw.get('weight', '-')}" for raw in found)
    return f"{item['name']}: {weights}" if item.get("name") else weights


def put(shop: GlooShop, *routes: Json, **sections: Any) -> None:
    """Put a RouteTable in the place of `web`."""
    shop.api.delete("RouteTable", "shop", "web")
    shop.api.create(table(*routes, **sections))
