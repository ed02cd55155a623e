"""Which destinations are the Rollout's stable and canary: one look-up for http, tcp and tls (decisions D9, D10).

Takes the selected routes and the configuration, returns one `GlooPair` for the whole RouteTable. A route is weighted if
it has the stable destination; the canary's is made from it where the user wrote none. A route with only the canary is
the user's own, except where two Services take turns: there it is the one that was stable before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.gloo_config import DestinationConfig, GlooConfig
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.gloo.destination import SERVICE, Place, Wanted, kind_of, name_of, place_of, port_of
from rollouts_gwapi_plugin.routes.gloo.table import TableRoute
from rollouts_gwapi_plugin.routes.notes import Note

# As many destinations of a route as an error lists.
MAX_LISTED: Final = 8


@dataclass(frozen=True)
class GlooPair:
    """Both destinations as this RouteTable refers to them."""

    stable: Wanted
    canary: Wanted
    config: GlooConfig
    table_namespace: str

    def is_stable(self, raw: JsonObject) -> bool:
        """Whether the destination is stable's; where both descriptions fit, the one that says more decides."""
        if not self.stable.matches(raw, self.table_namespace):
            return False
        return not self.canary.matches(raw, self.table_namespace) or self.stable.known > self.canary.known

    def is_canary(self, raw: JsonObject) -> bool:
        """Whether the destination is the canary's."""
        return self.canary.matches(raw, self.table_namespace) and not self.is_stable(raw)

    def derive_canary(self, stable: JsonObject) -> JsonObject:
        """Return the canary destination: what the configuration says of it, all else from stable's, no weight."""
        return _derived(stable, self.canary.name, self.config.canary_destination)

    def derive_stable(self, canary: JsonObject) -> JsonObject:
        """Return stable's destination, made likewise from the canary's."""
        return _derived(canary, self.stable.name, self.config.stable)


def _derived(other: JsonObject, name: str, config: DestinationConfig) -> JsonObject:
    given = {"namespace": config.ref.namespace, "cluster": config.ref.cluster}
    ref = {**(other.get("ref") or {}), "name": name}
    ref |= {field: value for field, value in given.items() if value}
    result = {**{field: value for field, value in other.items() if field != "weight"}, "ref": ref}
    if config.kind and config.kind != kind_of(other):
        result["kind"] = config.kind
    if config.port is not None:
        result["port"] = {"number": config.port.number} if config.port.number else {"name": config.port.name}
    if config.subset is not None:
        result.pop("subset", None)
        result |= {"subset": dict(config.subset)} if config.subset else {}
    return result


def names(desired: Desired, config: GlooConfig) -> tuple[str, str]:
    """Return the names of stable's and the canary's objects."""
    return config.stable.ref.name or desired.stable, config.canary_destination.ref.name or desired.canary


def find_pair(
    where: str, namespace: str, routes: Sequence[TableRoute], kept: Sequence[JsonObject], desired: Desired
) -> tuple[GlooPair, tuple[Note, ...]]:
    """Find the pair among the routes' destinations and those that are kept.

    The order: a Service in the Rollout's namespace on the RouteTable's cluster; on the one other cluster; of the one
    other namespace; the one other kind.

    Raises:
        RouteError: no route has the stable destination, or it is not clear which is meant.

    """
    config = desired.gloo or GlooConfig()
    stable_name, canary_name = names(desired, config)
    asked, asked_canary = _wanted(stable_name, config.stable), _wanted(canary_name, config.canary_destination)
    there = [*(raw for item in routes for raw in item.destinations), *kept]
    places = _places(asked, there, namespace)
    if not places and desired.ping_pong:
        places = _places(asked_canary, there, namespace)
    if not places:
        raise RouteError(_not_found(where, routes, asked, desired))
    place = _choose(places, desired.namespace)
    if place is None:
        listing = ", ".join(map(_text, places))
        raise RouteError(
            f"{where}: destination {stable_name} is there several times ({listing}); say which is meant by"
            " stableDestination (kind, ref.namespace, ref.cluster) in the plugin's configuration"
        )
    pair = GlooPair(_at(asked, place), _at(asked_canary, place), config, namespace)
    if pair.stable == pair.canary:
        raise RouteError(
            f"{where}: stable and canary destination are the same ({_text(place)} {stable_name}); tell them apart by"
            " stableDestination and canaryDestination (ref.name, port, subset) in the plugin's configuration"
        )
    return pair, _told(where, place, asked, desired)


def _wanted(name: str, config: DestinationConfig) -> Wanted:
    port = (config.port.name or config.port.number) if config.port else None
    subset = tuple(sorted(config.subset.items())) if config.subset is not None else None
    return Wanted(name, config.kind or None, config.ref.namespace or None, config.ref.cluster or None, port, subset)


def _places(asked: Wanted, there: Sequence[JsonObject], namespace: str) -> list[Place]:
    return list(dict.fromkeys(place_of(raw, namespace) for raw in there if asked.matches(raw, namespace)))


def _at(asked: Wanted, place: Place) -> Wanted:
    """Return the destination at the place, so far as the configuration does not say another."""
    kind, namespace, cluster = place
    return replace(
        asked,
        kind=asked.kind or kind,
        namespace=asked.namespace or namespace,
        cluster=asked.cluster or cluster,
    )


def _choose(places: Sequence[Place], namespace: str) -> Place | None:
    own = (SERVICE, namespace, "")
    if own in places:
        return own
    services = [place for place in places if place[0] == SERVICE] or list(places)
    near = [place for place in services if place[1] == namespace] or services
    return near[0] if len(near) == 1 else None


def _told(where: str, place: Place, asked: Wanted, desired: Desired) -> tuple[Note, ...]:
    """Tell what was taken by its name only, though neither kind nor namespace are what a Service's would be."""
    kind, namespace, _ = place
    if (asked.kind or SERVICE) == kind and (asked.namespace or desired.namespace) == namespace:
        return ()
    text = (
        f"{where}: destination {asked.name} is taken as {kind} in namespace {namespace}, since there is no"
        f" {asked.kind or SERVICE} of that name in {asked.namespace or desired.namespace}; stableDestination says so"
        " without this warning"
    )
    return (Note("PairByName", text),)


def _text(place: Place) -> str:
    kind, namespace, cluster = place
    return f"{kind} in namespace {namespace}" + (f", cluster {cluster}" if cluster else "")


def _not_found(where: str, routes: Sequence[TableRoute], asked: Wanted, desired: Desired) -> str:
    selector = desired.gloo.route_selector if desired.gloo else None
    chosen = f" (routeSelector: {selector})" if selector and str(selector) else ""
    if not routes and chosen:
        return f"{where}: no http route matches routeSelector ({selector}); correct the selector, or label a route so"
    listing = "; ".join(f"{item}: {_destinations(item)}" for item in routes)
    return (
        f"{where}: no route{chosen} has the stable destination {asked.name}; found {listing or 'no routes'}."
        " Add it as a destination of forwardTo of the route that the rollout shall split"
    )


def _destinations(item: TableRoute) -> str:
    shown = [_short(raw) for raw in item.destinations[:MAX_LISTED]]
    more = len(item.destinations) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "") or "no destinations"


def _short(raw: JsonObject) -> str:
    kind = kind_of(raw)
    namespace = (raw.get("ref") or {}).get("namespace")
    name = f"{namespace}/{name_of(raw)}" if namespace else name_of(raw) or "not an object"
    port = port_of(raw)
    prefix = "" if kind == SERVICE else f"{kind} "
    return f"{prefix}{name}" + (f":{port}" if port else "")
