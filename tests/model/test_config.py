"""The plugin's configuration: keys and meaning of the Go plugin's, errors with path, value and what was expected.

| what | cases |
| --- | --- |
| accepted keys, unknown keys, no route | C103, C105, D24 |
| wrong types and values | C102, C111 |
| label keys and values | issue of all route kinds |
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import json_values

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.config import DEFAULT_CONFIG_MAP, LONGEST_SECONDS, PluginConfig, parse_config

KEY = "argoproj-labs/gatewayAPI"


def error_of(raw: Any) -> str:
    """Return the text with which a configuration is refused."""
    with pytest.raises(ConfigError) as raised:
        parse_config(raw, KEY)
    return str(raised.value)


@pytest.mark.parametrize("raw", [{"httpRoute": "web"}, '{"httpRoute": "web"}', b'{"httpRoute": "web"}'])
def test_text_bytes_and_value_are_the_same(raw: Any) -> None:
    """Over gob the value is JSON text, over gRPC a JSON value."""
    assert parse_config({"httpRoute": "web"}, KEY) == parse_config(raw, KEY)


def test_names_are_read_without_case_and_null_is_absent() -> None:
    """As Go reads them; the last of two spellings counts."""
    config = parse_config('{"HTTPROUTE": "old", "httproute": "web", "namespace": null, "SelfHeal": false}', KEY)

    assert ("web", "", False) == (config.http_route, config.namespace, config.self_heal)


def test_an_empty_config_map_name_is_the_default() -> None:
    """An empty string means the same as no key, as for every key of the Go plugin."""
    assert DEFAULT_CONFIG_MAP == parse_config({"httpRoute": "web", "configMap": ""}, KEY).config_map


def test_single_and_listed_routes_are_merged() -> None:
    """A route named twice is there once; header routes are on if any mention says so."""
    raw = {
        "httpRoute": "a",
        "httpRoutes": [{"name": "a"}, {"name": "b", "useHeaderRoutes": True}, {"name": "b"}, {"name": "c"}],
        "tcpRoute": "t",
    }
    config = parse_config(raw, KEY)

    assert [("a", True), ("b", True), ("c", False)] == [(e.name, e.use_header_routes) for e in config.entries("http")]
    assert ("http", "tcp") == config.families
    assert set(config.families) < set(config.known_families)
    assert "grpcRouteSelector" == config.selector_key("grpc")


def test_a_route_can_have_a_rule_name_of_its_own() -> None:
    """Beside the one route, and in a list; a route that is named twice has the one that any mention says (F06)."""
    raw = {
        "httpRoute": "a",
        "httpRouteRuleName": "x",
        "httpRoutes": [{"name": "a"}, {"name": "b"}, {"name": "b", "ruleName": "y"}],
        "grpcRoutes": [{"name": "g"}],
        "ruleName": "z",
    }
    config = parse_config(raw, KEY)

    assert [("a", "x"), ("b", "y")] == [(entry.name, entry.rule_name) for entry in config.entries("http")]
    assert ("",) == tuple(entry.rule_name for entry in config.entries("grpc"))
    assert () == config.unknown_keys


def test_two_rule_names_of_one_route_are_refused() -> None:
    """Only one rule of a route can be chosen; nobody has to guess which."""
    raw = {"httpRoute": "a", "httpRouteRuleName": "x", "httpRoutes": [{"name": "a", "ruleName": "y"}]}

    assert "httpRoutes[0]: ruleName 'y': route 'a' has ruleName 'x', too" in error_of(raw)


def test_unknown_keys_are_accepted_and_listed_by_path() -> None:
    """Keys of other versions, or mistyped ones, also below the top (C103)."""
    raw = {
        "httpRoutes": [{"name": "web", "useHeaderRoute": True}],
        "httpRouteSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "x": 1}], "y": 2},
        "useHeaderRoute": True,
    }
    expected = (
        "httpRouteSelector.matchExpressions[0].x",
        "httpRouteSelector.y",
        "httpRoutes[0].useHeaderRoute",
        "useHeaderRoute",
    )

    assert expected == parse_config(raw, KEY).unknown_keys


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({}, ""),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        ({"matchLabels": {"x.io/a": ""}}, "x.io/a="),
        (
            {
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["1", "2"]},
                    {"key": "b", "operator": "NotIn", "values": ["3"]},
                    {"key": "c", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"},
                ]
            },
            "a in (1,2),b notin (3),c,!d",
        ),
    ],
)
def test_a_selector_is_the_apis_text(selector: Any, text: str) -> None:
    """Labels and expressions become one labelSelector parameter."""
    config = parse_config({"httpRouteSelector": selector}, KEY)
    found = config.selector("http")

    assert found is not None
    assert text == found.text
    assert ("http",) == config.families


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(5, 5.0), (0.5, 0.5), ("1m30s", 90.0), ("500ms", 0.5), ("1h", 3600.0), ("1.5s", 1.5)],
)
def test_durations(value: Any, seconds: float) -> None:
    """A number of seconds, or Go's notation."""
    assert seconds == parse_config({"httpRoute": "web", "verifyTimeout": value}, KEY).verify_timeout


@pytest.mark.parametrize("value", [10**400, LONGEST_SECONDS + 0.5, 1e300, float("inf"), "8761h", f"{'9' * 400}ms"])
def test_no_duration_is_longer_than_a_year(value: Any) -> None:
    """However it is written, what comes out is a time that clocks know."""
    assert parse_config({"httpRoute": "web", "verifyTimeout": value}, KEY).verify_timeout == LONGEST_SECONDS


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("{", "the configuration is not JSON: "),
        ("[" * 100_000, "the configuration is not JSON: "),
        (b"\xff", "the configuration is not JSON: "),
        (None, "the configuration is null"),
        ("null", "the configuration is null"),
        ([], "an object expected, found []"),
        ({"httpRoute": 5}, "httpRoute: found 5, a string expected"),
        ({"httpRoute": "x", "selfHeal": "yes"}, 'selfHeal: found "yes", true or false expected'),
        ({"httpRoutes": {}}, "httpRoutes: found {}, a list expected"),
        ({"httpRoutes": ["a"]}, 'httpRoutes[0]: found "a", an object expected'),
        ({"httpRoutes": [{"name": "a"}, {}]}, "httpRoutes[1].name: the name of a route is required"),
        (
            {"grpcRoutes": [{"name": "x", "useHeaderRoutes": "false"}]},
            'grpcRoutes[0].useHeaderRoutes: found "false", true or false expected',
        ),
        ({"httpRouteSelector": "x"}, 'httpRouteSelector: found "x", an object expected'),
        ({"httpRouteSelector": {"matchLabels": []}}, "httpRouteSelector.matchLabels: found [], an object expected"),
        ({"httpRouteSelector": {"matchLabels": {"a b": "1"}}}, "httpRouteSelector.matchLabels: 'a b' is not a legal"),
        ({"httpRouteSelector": {"matchLabels": {"a": "1 2"}}}, "httpRouteSelector.matchLabels[a]: '1 2' is not"),
        (
            {"httpRouteSelector": {"matchExpressions": [{"key": "a", "operator": "Equals", "values": ["1"]}]}},
            "httpRouteSelector.matchExpressions[0].operator: 'Equals' is none of In, NotIn, Exists, DoesNotExist",
        ),
        (
            {"tlsRouteSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "tlsRouteSelector.matchExpressions[0].values: In needs at least one value",
        ),
        (
            {"tlsRouteSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}},
            "tlsRouteSelector.matchExpressions[0].values: Exists takes none",
        ),
        (
            {"tlsRouteSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "b c"]}]}},
            "tlsRouteSelector.matchExpressions[0].values[1]: 'b c' is not a legal label value",
        ),
        (
            {"tlsRouteSelector": {"matchExpressions": [{"key": "", "operator": "Exists"}]}},
            "tlsRouteSelector.matchExpressions[0].key: '' is not a legal label key",
        ),
        ({"httpRoute": "x", "headerMatch": "some"}, "headerMatch: \"some\" is not allowed, 'all' or 'any' expected"),
        ({"httpRoute": "x", "verifyWait": "-5s"}, 'verifyWait: found "-5s", a duration such as "30s"'),
        ({"httpRoute": "x", "verifyWait": -5}, "verifyWait: found -5, a number that is not negative expected"),
        ({"httpRoute": "x", "verifyWait": -(10**400)}, "0…, a number that is not negative expected"),
        (
            {"httpRoute": "x", "verifyWait": float("nan")},
            "verifyWait: found NaN, a number that is not negative expected",
        ),
        (
            {"httpRoute": "x", "verifyWait": True},
            'verifyWait: found true, a number of seconds or a duration such as "3',
        ),
        ({"httpRoute": "x", "inProgressLabelKey": "a\n"}, "inProgressLabelKey: 'a\\n' is not a legal label key"),
        ({"httpRoute": "x", "inProgressLabelKey": "Up/a"}, "inProgressLabelKey: 'Up/a' is not a legal label key"),
        ({"httpRoute": "x", "inProgressLabelValue": "a" * 64}, "is not a legal label value (at most 63 letters"),
        ({"httpRoute": "x", "inProgressLabelKey": ["x" * 200]}, "…, a string expected"),
    ],
)
def test_what_can_not_be_used_is_told(raw: Any, message: str) -> None:
    """Each error gives the plugin's key, the path, the value and what was expected (C102, C111)."""
    text = error_of(raw)

    assert message in text
    assert KEY in text


def test_several_faults_are_told_at_once() -> None:
    """Nobody has to correct one after the other."""
    text = error_of({"httpRoute": 5, "tcpRoute": 6})

    assert "httpRoute: found 5" in text
    assert "tcpRoute: found 6" in text


@pytest.mark.parametrize("raw", [{}, {"namespace": "x"}, {"httpRoutes": []}, {"httpRoute": ""}])
def test_without_any_route_all_keys_are_named(raw: Any) -> None:
    """The text opens as the Go plugin's does, which users search for (C105)."""
    text = error_of(raw)

    assert text.startswith("No routes configured. At least one of httpRoute, httpRoutes, httpRouteSelector, ")
    for family in ("http", "grpc", "tcp", "tls", "udp"):
        assert f"{family}RouteSelector" in text


@settings(max_examples=150)
@given(
    raw=st.dictionaries(
        st.sampled_from(
            [*PluginConfig.model_fields, "httpRoute", "httpRoutes", "HTTPROUTESELECTOR", "verifyWait", "x"]
        ),
        json_values,
        max_size=4,
    )
)
def test_any_json_is_a_configuration_or_a_config_error(raw: Any) -> None:
    """Nothing that a user can write ends in another exception, and text and value mean the same."""
    try:
        config = parse_config(raw, KEY)
    except ConfigError:
        config = None
    if config is None:
        with pytest.raises(ConfigError):
            parse_config(json.dumps(raw), KEY)
    else:
        assert config == parse_config(json.dumps(raw), KEY)


@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        ({"httpRout": "web"}, "; 'httpRout' is not known (is 'httpRoute' meant?)"),
        ({"HTTPROUT": "web", "zzz": 1}, "; 'HTTPROUT' is not known (is 'httpRoute' meant?), 'zzz' is not known"),
        ({}, f"plugins[{KEY!r}]"),
    ],
)
def test_without_any_route_the_mistyped_key_is_named(raw: Any, hint: str) -> None:
    """It may be why there is none; the key that is meant is named beside it."""
    assert error_of(raw).endswith(hint)
