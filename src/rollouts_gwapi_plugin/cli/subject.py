"""One Rollout as far as commands know it: what it wants of its routes, and where these and its record are.

A Rollout that does not exist any more is a subject, too: what it has left behind is found by its record, by the
annotation on routes, and by what the command line says.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.errors import ConfigError, NotFound, PluginError, shown
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.config import DEFAULT_LABEL_KEY, DEFAULT_LABEL_VALUE, PluginConfig
from rollouts_gwapi_plugin.model.configuration import Configuration, parse_configuration
from rollouts_gwapi_plugin.model.rollout import Rollout, parse_rollout
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.routes.desired import Desired, Label, base_desired
from rollouts_gwapi_plugin.service.ledger_session import LedgerSession
from rollouts_gwapi_plugin.service.plugin_key import KNOWN_KEYS, plugin_key
from rollouts_gwapi_plugin.service.targets import route_namespace


@dataclass(frozen=True)
class Subject:
    """A Rollout; `rollout` and `raw` are None where it does not exist any more."""

    desired: Desired
    config: Configuration
    namespace: str
    session: LedgerSession
    rollout: Rollout | None = None
    raw: JsonObject | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.desired.rollout

    def renew(self, connection: Connection) -> None:
        """Give the record the time for what comes next: a person, or other Rollouts, may have taken all of it."""
        self.session.deadline = connection.deadline()


@dataclass(frozen=True)
class Remains:
    """What the command line says of a Rollout that is gone; empty where it says nothing."""

    route_namespace: str = ""
    config_map: str = ""
    stable: str = ""
    canary: str = ""
    label: tuple[str, str] | None = None


def read_rollout(raw: JsonObject) -> Rollout:
    """Read a Rollout as it stands in the API or in a file.

    Raises:
        ConfigError: a field that we read has not the type that Argo Rollouts gives it.

    """
    try:
        return parse_rollout(raw)
    except ValidationError as error:
        raise unreadable(raw, error) from error


def unreadable(raw: JsonObject, error: ValidationError) -> ConfigError:
    """Return what is to be said of a Rollout whose fields have not the types that Argo Rollouts gives them."""
    metadata = raw.get("metadata") or {}
    wrong = "; ".join(
        f"{'.'.join(str(part) for part in item['loc'])}: found {shown(item['input'])}, {item['msg']}"
        for item in error.errors()
    )
    return ConfigError(f"Rollout {metadata.get('namespace', '')}/{metadata.get('name', '')}: {wrong}")


def has_plugin(raw: JsonObject, plugin_name: str | None) -> bool:
    """Whether the Rollout names this plugin."""
    plugins = read_rollout(raw).traffic_routing.plugins
    return any(key in plugins for key in ([plugin_name] if plugin_name else KNOWN_KEYS))


def configuration(rollout: Rollout, plugin_name: str | None) -> Configuration:
    """Return the plugin's configuration in the Rollout.

    Raises:
        ConfigError: there is none, or it can't be used.

    """
    plugins = rollout.traffic_routing.plugins
    key = plugin_key(plugins, ServiceSettings(plugin_name=plugin_name), rollout.key)
    return parse_configuration(plugins[key], key)


def subject_of(connection: Connection, raw: JsonObject, plugin_name: str | None) -> Subject:
    """Return what the Rollout says.

    Raises:
        ConfigError: the Rollout, or the plugin's configuration in it, can't be used.

    """
    rollout = read_rollout(raw)
    config = configuration(rollout, plugin_name)
    namespace = route_namespace(rollout, config, None)
    session = _session(connection, namespace, config.config_map, rollout.key, rollout.metadata.uid)
    return Subject(base_desired(rollout, config), config, namespace, session, rollout, raw)


def gone_subject(connection: Connection, namespace: str, name: str, remains: Remains) -> Subject:
    """Return a Rollout that does not exist any more, or does not name the plugin any more."""
    config = PluginConfig(config_map=remains.config_map) if remains.config_map else PluginConfig()
    key = f"{namespace}/{name}"
    desired = Desired(
        rollout=key,
        rollout_name=name,
        namespace=namespace,
        stable=remains.stable,
        canary=remains.canary,
        label=Label(*(remains.label or (DEFAULT_LABEL_KEY, DEFAULT_LABEL_VALUE))),
    )
    place = remains.route_namespace or namespace
    return Subject(desired, config, place, _session(connection, place, config.config_map, key, ""))


def _session(connection: Connection, namespace: str, name: str, rollout: str, uid: str) -> LedgerSession:
    return LedgerSession(
        client=connection.cluster.client,
        namespace=namespace,
        name=name,
        rollout=rollout,
        uid=uid,
        deadline=connection.deadline(),
    )


def chosen_rollouts(connection: Connection, names: Iterable[str], plugin_name: str | None) -> list[JsonObject]:
    """Return the named Rollouts, or without names all of the namespace that name this plugin.

    Raises:
        PluginError: one can't be read, or there is none.

    """
    wanted = list(names)
    if wanted:
        return [connection.rollout(name) for name in wanted]
    try:
        found = [raw for raw in connection.rollouts() if has_plugin(raw, plugin_name)]
    except PluginError as error:
        if isinstance(error, NotFound):
            raise NotFound(f"{error}; is Argo Rollouts installed in this cluster?") from error
        raise
    if not found:
        keys = plugin_name or ", ".join(KNOWN_KEYS)
        raise NotFound(f"no Rollout in namespace {connection.namespace} names this plugin ({keys}); name another by -n")
    return found
