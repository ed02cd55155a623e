"""Which key of a Rollout's `trafficRouting.plugins` is ours (decision D25)."""

from collections.abc import Mapping
from typing import Any, Final

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.settings import ServiceSettings

KNOWN_KEYS: Final = ("argoproj-labs/gatewayAPI", "solo-io/glooplatform", "solo-io/glooplatformAPI")


def plugin_key(plugins: Mapping[str, Any], settings: ServiceSettings, rollout: str) -> str:
    """Return the key: the given name, else what the executable's path says, else the only known one.

    Raises:
        ConfigError: the Rollout has no such key, or several that could be meant.

    """
    present = ", ".join(sorted(plugins)) or "none"
    where = f"Rollout {rollout}: spec.strategy.canary.trafficRouting.plugins"
    if settings.plugin_name:
        if settings.plugin_name in plugins:
            return settings.plugin_name
        raise ConfigError(f"{where} has no key {settings.plugin_name!r} (from --plugin-name); its keys: {present}")
    if settings.executable_key in plugins and settings.executable_key is not None:
        return settings.executable_key
    known = [key for key in KNOWN_KEYS if key in plugins]
    if len(known) == 1:
        return known[0]
    looked_for = ", ".join(KNOWN_KEYS)
    if known:
        raise ConfigError(
            f"{where} has several keys that could be meant ({', '.join(known)}); say which by --plugin-name"
        )
    raise ConfigError(
        f"{where} has none of the keys {looked_for}; its keys: {present}. If one of them is this plugin's, set"
        " --plugin-name to it in the plugin's args"
    )
