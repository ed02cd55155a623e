"""Which routes a Rollout's configuration means, each read once (decisions D21, D24).

Returns a `Target` a route, with the object as read or the error that reading met; a route that is named twice is there
once. Nothing is written before all are read.
"""

from dataclasses import dataclass, replace

from rollouts_gwapi_plugin.errors import ConfigError, KindNotFound, NotFound, PluginError
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.configuration import Configuration
from rollouts_gwapi_plugin.model.kube import ObjectRef, ResourceType
from rollouts_gwapi_plugin.model.rollout import Rollout
from rollouts_gwapi_plugin.routes.kinds import KINDS, RouteKind
from rollouts_gwapi_plugin.service.cluster import Cluster


@dataclass(frozen=True)
class Target:
    """One route: how it takes part, and what reading it gave."""

    kind: RouteKind
    namespace: str
    name: str
    takes_headers: bool
    resource: ResourceType | None = None
    raw: JsonObject | None = None
    error: PluginError | None = None
    # No route, but a selector that could not be asked, or that matches no route at all: its error says which.
    is_selector: bool = False
    selects_nothing: bool = False

    @property
    def ref(self) -> ObjectRef:
        """The route's name for people."""
        return ObjectRef(self.kind.kind, self.namespace, self.name)

    @property
    def missing(self) -> bool:
        """Whether there is no such route, or no such kind."""
        return isinstance(self.error, NotFound) or self.selects_nothing

    @property
    def is_deleted(self) -> bool:
        """Whether the route is gone; where its kind is not served, for a moment perhaps, that is not known."""
        return isinstance(self.error, NotFound) and not isinstance(self.error, KindNotFound)


def route_namespace(rollout: Rollout, config: Configuration, allowed: frozenset[str] | None) -> str:
    """Return the routes' namespace.

    Raises:
        ConfigError: it is not the Rollout's own, and the installation forbids it.

    """
    own = rollout.metadata.namespace
    namespace = config.namespace or own
    if allowed is not None and namespace != own and namespace not in allowed:
        others = ", ".join(sorted(allowed)) or "none"
        raise ConfigError(
            f"Rollout {rollout.key}: namespace {namespace!r} in the plugin's configuration is not allowed by this"
            f" installation; besides the Rollout's own ({own}) it allows: {others} (--allowed-namespaces)"
        )
    return namespace


def find_targets(cluster: Cluster, config: Configuration, namespace: str, deadline: Deadline) -> list[Target]:
    """Read every route of the configuration; what is wrong with one is in its target."""
    targets: list[Target] = []
    for family in config.families:
        kind = KINDS[family]
        try:
            resource = cluster.resource(kind, deadline)
        except PluginError as error:
            unread = Target(kind, namespace, "(by selector)", takes_headers=config.use_header_routes, error=error)
            targets += [
                replace(unread, name=entry.name, takes_headers=entry.use_header_routes)
                for entry in config.entries(family)
            ]
            if config.selector(family) is not None:
                targets.append(replace(unread, is_selector=True))
            continue
        targets += _of_family(cluster, config, kind, resource, namespace, deadline)
    return targets


def _of_family(
    cluster: Cluster,
    config: Configuration,
    kind: RouteKind,
    resource: ResourceType,
    namespace: str,
    deadline: Deadline,
) -> list[Target]:
    listed = _selected(cluster, config, kind, namespace, deadline)
    found = {target.name: target for target in listed}
    for entry in config.entries(kind.family):
        known = found.get(entry.name)
        if known is not None:
            found[entry.name] = replace(known, takes_headers=known.takes_headers or entry.use_header_routes)
        else:
            target = Target(kind, namespace, entry.name, takes_headers=entry.use_header_routes, resource=resource)
            found[entry.name] = _with_way_out(read_target(cluster, target, deadline))
    return list(found.values())


def _with_way_out(target: Target) -> Target:
    """Return a configured target; of one that is missing the error says what to do."""
    if not target.is_deleted:
        return target
    text = f"{target.error}; create it, or correct its name or the namespace in the plugin's configuration"
    return replace(target, error=NotFound(text, status=404))


def _selected(
    cluster: Cluster, config: Configuration, kind: RouteKind, namespace: str, deadline: Deadline
) -> list[Target]:
    """Return what the selector takes; a list that fails, or is empty and all there is, is a target with that error."""
    selector = config.selector(kind.family)
    if selector is None:
        return []
    text = selector.text or "everything"
    takes = config.use_header_routes
    broken = Target(kind, namespace, f"(selector {text})", takes_headers=takes, is_selector=True)

    def list_at(resource: ResourceType) -> list[Target]:
        listed = cluster.client.list(resource, namespace, label_selector=selector.text, deadline=deadline)
        return [
            Target(kind, namespace, raw["metadata"]["name"], takes_headers=takes, resource=resource, raw=raw)
            for raw in listed
        ]

    try:
        targets = cluster.discovery.on_served(
            kind.group, kind.plural, kind.kind, kind.versions, list_at, deadline=deadline
        )
    except PluginError as error:
        return [replace(broken, error=error)]
    if targets or config.entries(kind.family):
        return targets
    nothing = ConfigError(
        f"{config.selector_key(kind.family)} ({text}) matches no {kind.kind} in namespace {namespace};"
        " label a route so, or correct the selector"
    )
    return [replace(broken, error=nothing, selects_nothing=True)]


def read_target(cluster: Cluster, target: Target, deadline: Deadline) -> Target:
    """Return the target as it is now."""
    kind = target.kind
    versions = kind.versions
    try:
        raw = cluster.discovery.on_served(
            kind.group,
            kind.plural,
            kind.kind,
            versions,
            lambda resource: cluster.client.get(resource, target.namespace, target.name, deadline=deadline),
            deadline=deadline,
        )
    except PluginError as error:
        return replace(target, raw=None, error=error)
    return replace(target, raw=raw, error=None, resource=cluster.resource(kind, deadline))
