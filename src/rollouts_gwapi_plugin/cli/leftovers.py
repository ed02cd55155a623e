"""Rollouts that are gone and of which something is left: a record, or the annotation on a route.

Gone is a Rollout that does not exist, or that does not name this plugin any more. Where that is not certain (it names
a plugin that may be this one under another name, or can't be read) it is taken to be there: what a living Rollout needs
is never called left over.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from rollouts_gwapi_plugin.cli.connection import ROLLOUTS, Connection, split_name
from rollouts_gwapi_plugin.cli.standing import Known, RouteFound
from rollouts_gwapi_plugin.cli.subject import Remains, Subject, gone_subject, read_rollout
from rollouts_gwapi_plugin.cli.survey import annotated, listed_routes, survey
from rollouts_gwapi_plugin.cli.table_survey import kept_for
from rollouts_gwapi_plugin.errors import ConfigError, Forbidden, LedgerError, NotFound, PluginError, Unavailable
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.config import DEFAULT_CONFIG_MAP, DEFAULT_LABEL_KEY
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS
from rollouts_gwapi_plugin.routes.desired import managed_names, managed_steps, services
from rollouts_gwapi_plugin.routes.kinds import KINDS
from rollouts_gwapi_plugin.routes.ledger import parse_ledger
from rollouts_gwapi_plugin.routes.managed import Purpose

# The label of every ConfigMap that this plugin has made.
OUR_LABEL = "app.kubernetes.io/managed-by=rollouts-gwapi-plugin"

# How a Rollout is gone.
Absence = Literal["gone", "does not name the plugin any more"]
GONE: Final = "gone"
WITHOUT_PLUGIN: Final = "does not name the plugin any more"


@dataclass(frozen=True)
class Leftover:
    """A Rollout that is gone; `config_map` is empty where only the annotation tells of it.

    `route_namespace` is where its routes, and its record, were found.
    """

    namespace: str
    name: str
    route_namespace: str
    config_map: str
    where: str
    absence: Absence

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def cleanup(self) -> str:
        """The command that gives back what is left."""
        words = ["cleanup", "-n", self.namespace, self.name]
        if self.route_namespace != self.namespace:
            words += ["--route-namespace", self.route_namespace]
        if self.config_map not in {"", DEFAULT_CONFIG_MAP}:
            words += ["--config-map", self.config_map]
        return " ".join(words)


def ledger_maps(connection: Connection, namespace: str, names: Iterable[str] = ()) -> dict[str, JsonObject]:
    """Return the ConfigMaps of a namespace that can hold records: the named, the usual one, those that we made.

    Raises:
        KubeError: a named one can't be read, or the API server gives no answer.

    """
    client, deadline = connection.cluster.client, connection.deadline()
    found: dict[str, JsonObject] = {}
    for name in dict.fromkeys([*names, DEFAULT_CONFIG_MAP]):
        try:
            found[name] = client.get(CONFIG_MAPS, namespace, name, deadline=deadline)
        except NotFound:
            continue
    try:
        made = client.list(CONFIG_MAPS, namespace, label_selector=OUR_LABEL, deadline=deadline)
    except Forbidden:
        # Without the right to list, the named ones must do.
        made = []
    return found | {str(value["metadata"]["name"]): value for value in made}


def recorded_rollouts(config_map: JsonObject) -> set[str]:
    """Return the Rollouts that a ConfigMap has records of; keys that can't be read are passed over."""
    metadata, keys = config_map["metadata"], set()
    for family in KINDS:
        try:
            ledger = parse_ledger(config_map.get("data") or {}, family, f"ConfigMap {metadata.get('name')}")
        except LedgerError:
            continue
        keys |= set(ledger.rollouts)
    return keys


def leftovers(
    connection: Connection, namespace: str, plugin_name: str | None, names: Iterable[str] = ()
) -> list[Leftover]:
    """Return the Rollouts that are gone and of which the namespace's ConfigMaps or routes tell."""
    seen: dict[tuple[str, str], str] = {}
    for name, value in ledger_maps(connection, namespace, names).items():
        for key in sorted(recorded_rollouts(value)):
            seen[key, name] = f"on record in ConfigMap {namespace}/{name}"
    recorded = {key for key, _ in seen}
    for kind in KINDS.values():
        for name, raw in listed_routes(connection, namespace, kind).items():
            for key in dict.fromkeys([*annotated(raw), *kept_for(raw)]):
                if key not in recorded:
                    seen.setdefault((key, ""), f"in the annotation of {kind.kind} {namespace}/{name}")
    absences = {key: absence(connection, key, plugin_name) for key in {key for key, _ in seen}}
    return [
        Leftover(*split_name(key, namespace), namespace, config_map=name, where=where, absence=how)
        for (key, name), where in seen.items()
        if (how := absences[key]) is not None
    ]


def traces(connection: Connection, namespace: str) -> list[str]:
    """Return everything in a namespace that may be the plugin's, whosever it is: ConfigMaps, labels.

    Raises:
        PluginError: something can't be listed, so that nothing can be said of it.

    """
    client, deadline = connection.cluster.client, connection.deadline()
    made = client.list(CONFIG_MAPS, namespace, label_selector=OUR_LABEL, deadline=deadline)
    found = [f"ConfigMap {namespace}/{value['metadata']['name']}" for value in made]
    for kind in KINDS.values():
        try:
            resource = connection.cluster.resource(kind, deadline)
            routes = client.list(resource, namespace, deadline=deadline)
        except NotFound:
            continue
        found += [
            f"the label {DEFAULT_LABEL_KEY} of {kind.kind} {namespace}/{raw['metadata']['name']}"
            for raw in routes
            if DEFAULT_LABEL_KEY in (raw["metadata"].get("labels") or {})
        ]
    return found


def absence(connection: Connection, key: str, plugin_name: str | None) -> Absence | None:
    """Return how a Rollout is gone; None where one may be there that names this plugin.

    Raises:
        Unavailable: the API server gives no answer, which says nothing of the Rollout.

    """
    try:
        namespace, name = split_name(key, "")
        raw = connection.cluster.client.get(ROLLOUTS, namespace, name, deadline=connection.deadline())
        plugins = read_rollout(raw).traffic_routing.plugins
    except NotFound:
        return GONE
    except Unavailable:
        raise
    except PluginError:
        return None
    return WITHOUT_PLUGIN if (plugin_name not in plugins if plugin_name else not plugins) else None


def without_plugin(connection: Connection, raw: JsonObject, remains: Remains) -> Subject:
    """Return a Rollout that is there and does not name the plugin any more: its Services and steps still tell much."""
    rollout = read_rollout(raw)
    try:
        stable, canary = services(rollout)
    except ConfigError:
        stable = canary = ""
    remains = replace(remains, stable=remains.stable or stable, canary=remains.canary or canary)
    subject = remaining(connection, rollout.metadata.namespace, rollout.metadata.name, remains)
    names, steps = managed_names(rollout), managed_steps(rollout)
    return replace(subject, desired=replace(subject.desired, managed_names=names, all_steps=steps))


def remaining_of(connection: Connection, left: Leftover, remains: Remains) -> Subject:
    """Return a Rollout of which something was found, whether it is there without the plugin or not at all."""
    remains = replace(remains, route_namespace=left.route_namespace, config_map=left.config_map or remains.config_map)
    there = replace(connection, namespace=left.namespace)
    try:
        raw = there.rollout(left.name)
    except NotFound:
        return remaining(there, left.namespace, left.name, remains)
    return without_plugin(there, raw, remains)


def remaining(connection: Connection, namespace: str, name: str, remains: Remains) -> Subject:
    """Return a Rollout that is gone, with its Services' names from its managed rules where nobody says them.

    The canary's is what stands behind recorded header rules: by it a managed rule that somebody edited is told from a
    user's rule that bears its name. Stable's is the only other backend beside that canary.
    """
    subject = gone_subject(connection, namespace, name, remains)
    if remains.canary and remains.stable:
        return subject
    routes = survey(connection, subject)
    canaries = {remains.canary} if remains.canary else set(_behind_recorded_rules(routes))
    if len(canaries) != 1:
        return subject
    canary = canaries.pop()
    stables = {remains.stable} if remains.stable else set(_beside(routes, canary))
    stable = stables.pop() if len(stables) == 1 else ""
    return replace(subject, desired=replace(subject.desired, canary=canary, stable=stable))


def _behind_recorded_rules(routes: Iterable[RouteFound]) -> Iterator[str]:
    for route in routes:
        for rule in route.rules:
            if (
                rule.owner is not None
                and rule.owner.purpose is Purpose.HEADER
                and rule.known in {Known.RECORD, Known.LABEL}
            ):
                yield from (backend.name for backend in rule.backends)


def _beside(routes: Iterable[RouteFound], canary: str) -> Iterator[str]:
    for route in routes:
        experiments = {name for _, _, _, name in route.view.record.experiments}
        for rule in route.rules:
            names = {backend.name for backend in rule.backends} - experiments
            if rule.owner is None and canary in names:
                yield from names - {canary}
