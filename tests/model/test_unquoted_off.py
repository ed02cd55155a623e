"""`verify: off` and `mirror: off` without quotes, which kubectl makes false of, as it reads YAML 1.1."""

import json
from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.config import parse_config
from rollouts_gwapi_plugin.model.gloo_config import parse_gloo_config

KEY = "argoproj-labs/gatewayAPI"
GLOO = "solo-io/glooplatform"


def test_false_is_off() -> None:
    """Both keys take false for off, in a value and in JSON text."""
    table = {"routeTableName": "t", "verify": False, "mirror": False}

    assert parse_config({"httpRoute": "web", "verify": False}, KEY).verify == "off"
    for raw in (table, json.dumps(table)):
        config = parse_gloo_config(raw, GLOO)
        assert (config.verify, config.mirror) == ("off", "off")


@pytest.mark.parametrize("value", [True, 0, "no"])
def test_only_false_is(value: Any) -> None:
    """Anything else is refused as before."""
    with pytest.raises(ConfigError, match="verify"):
        parse_config({"httpRoute": "web", "verify": value}, KEY)
    with pytest.raises(ConfigError, match="mirror"):
        parse_gloo_config({"routeTableName": "t", "mirror": value}, GLOO)
