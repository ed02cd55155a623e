"""The configuration for RouteTables: both forms, keys without case, errors with path and value (C102 to C111)."""

import json
from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.config import PluginConfig
from rollouts_gwapi_plugin.model.configuration import parse_configuration
from rollouts_gwapi_plugin.model.gloo_config import GlooConfig, parse_gloo_config

KEY = "solo-io/glooplatform"


def parse(**keys: Any) -> GlooConfig:
    """Read a configuration given as keywords."""
    return parse_gloo_config(keys, KEY)


@pytest.mark.parametrize("key", ["solo-io/glooplatform", "solo-io/glooplatformAPI", "acme/GlooPlatform"])
def test_the_key_chooses_the_model(key: str) -> None:
    """Under a key of Gloo Platform's stands its own configuration, under any other the Gateway API's."""
    assert isinstance(parse_configuration({"routeTableName": "t"}, key), GlooConfig)
    assert isinstance(parse_configuration({"httpRoute": "web"}, "argoproj-labs/gatewayAPI"), PluginConfig)
    assert isinstance(parse_configuration({"httpRoute": "web"}, "acme/router"), PluginConfig)


def test_the_form_with_selectors() -> None:
    """A RouteTable by labels in another namespace, and routes by name and labels."""
    config = parse(
        routeTableSelector={"labels": {"app": "demo"}, "namespace": "gloo-mesh"},
        routeSelector={"name": "r", "labels": {"route": "demo-preview"}},
    )
    selector = config.selector("routeTable")

    assert config.namespace == "gloo-mesh"
    assert config.entries("routeTable") == ()
    assert selector is not None
    assert selector.text == "app=demo"
    assert config.route_selector is not None
    assert str(config.route_selector) == "name r, label route=demo-preview"


def test_labels_matchlabels_and_expressions_add_up() -> None:
    """`labels` and `matchLabels` are one list, and expressions narrow it."""
    expressions = [{"key": "tier", "operator": "In", "values": ["a", "b"]}]
    config = parse(
        routeTableSelector={"labels": {"x": "1"}, "matchLabels": {"y": "2"}, "matchExpressions": expressions}
    )
    selector = config.selector("routeTable")

    assert selector is not None
    assert selector.text == "x=1,y=2,tier in (a,b)"


def test_a_name_wins_over_labels() -> None:
    """Where both are given the RouteTable is the named one, as in the proof of concept."""
    config = parse(routeTableSelector={"name": "t", "labels": {"app": "demo"}})

    assert [entry.name for entry in config.entries("routeTable")] == ["t"]
    assert config.selector("routeTable") is None


def test_the_flat_form() -> None:
    """The older keys name a RouteTable, and say of which kind and where the destinations are."""
    config = parse(
        routeTableName="t", routeTableNamespace="gw", destinationKind="VirtualDestination", destinationNamespace="shop"
    )

    assert [entry.name for entry in config.entries("routeTable")] == ["t"]
    assert (config.namespace, config.stable.kind, config.stable.ref.namespace) == ("gw", "VIRTUAL_DESTINATION", "shop")


def test_the_selector_wins_over_the_flat_form() -> None:
    """Where both forms say something of the same, the newer one is meant."""
    config = parse(
        routeTableSelector={"name": "new", "namespace": "a"}, routeTableName="old", routeTableNamespace="b",
        stableDestination={"kind": "SERVICE"}, destinationKind="EXTERNAL_SERVICE",
    )  # fmt: skip

    assert [entry.name for entry in config.entries("routeTable")] == ["new"]
    assert (config.namespace, config.stable.kind) == ("a", "SERVICE")


def test_keys_are_read_without_case_and_unknown_ones_are_listed() -> None:
    """As in the Gateway API's configuration, in every section."""
    config = parse(ROUTETABLESELECTOR={"Name": "t", "colour": 1}, canarydestination={"REF": {"cluster": "c1"}}, shape=2)

    assert [entry.name for entry in config.entries("routeTable")] == ["t"]
    assert config.canary_destination.ref.cluster == "c1"
    assert config.unknown_keys == ("routeTableSelector.colour", "shape")


def test_no_label_without_its_key() -> None:
    """The in-progress label is opt-in here."""
    assert parse(routeTableName="t").disable_in_progress_label
    assert not parse(routeTableName="t", inProgressLabelKey="team/busy").disable_in_progress_label


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({}, "No RouteTable configured. At least one of routeTableSelector.name"),
        ({"routeTableSelector": {"namespace": "gw"}}, "No RouteTable configured"),
        ({"routeTableNam": "t"}, "'routeTableNam' is not known (is 'routeTableName' meant?)"),
        ({"routeTableName": 3}, "routeTableName: found 3, a string expected"),
        ({"routeTableName": "t", "zeroWeight": "drop"}, "zeroWeight: \"drop\" is not allowed, 'remove' or 'keep'"),
        ({"routeTableName": "t", "destinationKind": "Pod"}, 'destinationKind: "Pod" is not allowed'),
        (
            {"routeTableName": "t", "canaryDestination": {"port": {"number": 80, "name": "http"}}},
            "canaryDestination.port: one of number, name expected",
        ),
        (
            {"routeTableName": "t", "canaryDestination": {"port": {"number": 70000}}},
            "canaryDestination.port.number: 70000 is not a port",
        ),
        ({"routeTableName": "t", "canaryDestination": {"port": {}}}, "canaryDestination.port: one of number, name"),
        (
            {"routeTableSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            "routeTableSelector.matchExpressions[0].operator: 'Like' is none of In, NotIn",
        ),
        ({"routeTableSelector": {"labels": {"a b": "c"}}}, "routeTableSelector.matchLabels: 'a b' is not a legal"),
        ({"routeTableSelector": ["t"]}, 'routeTableSelector: found ["t"], an object expected'),
        ({"routeTableName": "t", "verifyTimeout": "soon"}, 'verifyTimeout: found "soon", a duration'),
    ],
)
def test_what_can_t_be_used_is_named(keys: dict[str, Any], text: str) -> None:
    """An error gives the key of the plugin, the path, the value and what was expected (C102, C105, C111)."""
    with pytest.raises(ConfigError) as raised:
        parse(**keys)

    assert text in str(raised.value)
    assert KEY in str(raised.value)


def test_text_and_value_read_alike() -> None:
    """Over gob the configuration is JSON text, over gRPC a value."""
    keys = {"routeTableSelector": {"name": "t"}, "zeroWeight": "keep"}

    assert parse_gloo_config(json.dumps(keys), KEY) == parse_gloo_config(keys, KEY)
    with pytest.raises(ConfigError, match="is not JSON"):
        parse_gloo_config("{", KEY)
    with pytest.raises(ConfigError, match="is null; give it a RouteTable"):
        parse_gloo_config(None, KEY)
