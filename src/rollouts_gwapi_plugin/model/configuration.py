"""Which model a plugin's key has: the Gateway API's configuration, or Gloo Platform's."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from rollouts_gwapi_plugin.model.config import PluginConfig, parse_config
from rollouts_gwapi_plugin.model.gloo_config import GlooConfig, parse_gloo_config

# Both answer the same questions; each also has its own.
Configuration = PluginConfig | GlooConfig

_BY_NAME: Final[Mapping[str, Callable[[Any, str], Configuration]]] = {
    "glooplatform": parse_gloo_config,
    "glooplatformapi": parse_gloo_config,
}


def parse_configuration(raw: Any, key: str) -> Configuration:
    """Read a configuration; of the key (`solo-io/glooplatform`) the last part says which plugin it is for.

    Raises:
        ConfigError: it can't be used; the text gives the path, the value and what was expected.

    """
    return _BY_NAME.get(key.rpartition("/")[2].lower(), parse_config)(raw, key)
