"""`doctor` on `trafficRouterPlugins`: what the controller or the plugin would refuse is an error; C131, C132."""

from typing import Any

import pytest
from tests.cli.town import Town, controller_config
from tests.service.world import PLUGIN_KEY

ENTRY = {"name": PLUGIN_KEY, "location": "file:///plugins/plugin"}


def of_installation(town: Town, plugins: Any) -> list[str]:
    """Return what is found of a configuration, without the name of the check."""
    town.api.update(controller_config(plugins))
    found = [one for one in town.found() if " installation: " in one]
    return [one.replace(" installation:", "").replace(f" trafficRouterPlugins: {PLUGIN_KEY}:", "") for one in found]


EXPECTED = "file:///PATH, https://… or http://… is expected"


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (None, f"it has no location; {EXPECTED}"),
        (5, f"location 5 is no text; {EXPECTED}"),
        ("ftp://x/y", f"location 'ftp://x/y': {EXPECTED}"),
        ("oci://", f"location 'oci://': {EXPECTED}"),
        ("https:///plugin", f"location 'https:///plugin': {EXPECTED}"),
        ("http://[x", "location 'http://[x' is no address: Invalid IPv6 URL"),
        ("/plugins/x", f"location '/plugins/x': {EXPECTED}; is file:///plugins/x meant?"),
        ("file://plugins/x", "location 'file://plugins/x' has no absolute path; is file:///plugins/x meant?"),
        ("file://", "location 'file://' has no absolute path"),
    ],
)
def test_locations_that_the_controller_refuses(sound: Town, location: Any, text: str) -> None:
    """A location that is no file with an absolute path and no web address is an error, and nothing is ok."""
    assert of_installation(sound, [{"name": PLUGIN_KEY, "location": location}]) == [f"error {text}"]


@pytest.mark.parametrize("location", ["file:///p/x", "https://example.com/x", "http://example.com/x", "file://./x"])
def test_locations_that_the_controller_takes(sound: Town, location: str) -> None:
    """Files and web addresses are in order; Go reads keys without case."""
    assert of_installation(sound, [{"Name": PLUGIN_KEY, "Location": location}]) == [f"ok {PLUGIN_KEY} is at {location}"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (5, "args 5 is no list of texts"),
        ([5], "args [5] is no list of texts"),
        (["--transport", "grpc"], "args: the transport is grpc; the stock controller speaks netrpc"),
        (["--help"], "args ask for help; the plugin prints it and ends"),
        (["--plugin-name=foo/bar"], "args: --plugin-name foo/bar is not the entry's name, under which Rollouts"),
        (["--nonsense"], "args: wrong arguments: unrecognized arguments: --nonsense; `serve --help` lists the right"),
    ],
)
def test_arguments_that_the_plugin_refuses(sound: Town, arguments: Any, text: str) -> None:
    """Arguments with which the plugin ends, or speaks otherwise than the controller, are an error."""
    (found,) = of_installation(sound, [{**ENTRY, "args": arguments}])

    assert found.startswith(f"error {text}")


def test_arguments_that_the_plugin_takes(sound: Town) -> None:
    """The plugin's own flags are in order; those of other plugins are not this one's to read."""
    other = {"name": "acme/router", "location": "https://example.com/x", "args": ["--nonsense"]}

    assert of_installation(sound, [other, {**ENTRY, "args": ["-kubeClientQPS=5", "--plugin-name", PLUGIN_KEY]}]) == [
        f"ok {PLUGIN_KEY} is at file:///plugins/plugin"
    ]


def test_the_same_name_twice(sound: Town) -> None:
    """A second entry of a name is an error."""
    found = of_installation(sound, [ENTRY, {**ENTRY, "location": "file:///other"}])

    assert found[1:] == ["error it is there more than once; which one is started is not certain"]


@pytest.mark.parametrize("sum_", ["zz", 5])
def test_a_wrong_sum_is_not_in_order(sound: Town, sum_: Any) -> None:
    """An entry with an error is not called ok as well."""
    assert of_installation(sound, [{**ENTRY, "sha256": sum_}]) == [
        f"error sha256 {sum_!r} is no SHA-256 of 64 hexadecimal digits"
    ]


@pytest.mark.parametrize("name", [None, 5, ["x"], "gatewayAPI"])
def test_names_that_are_none(sound: Town, name: Any) -> None:
    """A name that is no ORG/NAME is an error, whatever stands there."""
    found = of_installation(sound, [{**ENTRY, "name": name}, ENTRY])

    assert "is not ORG/NAME: the controller refuses to start" in found[0]
    assert found[1:] == [f"ok {PLUGIN_KEY} is at file:///plugins/plugin"]


@pytest.mark.parametrize(("text", "problem"), [("[" * 3000, "nested too deeply"), ("- 2020-99-99", "month must be")])
def test_texts_that_the_parser_gives_up(sound: Town, text: str, problem: str) -> None:
    """What can't be read is one error."""
    (found,) = of_installation(sound, text)

    assert found.startswith(f"error trafficRouterPlugins is not YAML: {problem}")


def test_no_configuration_in_ones_own_namespace(sound: Town) -> None:
    """Whose own rights are asked for need not be in the controller's namespace, so that is a warning."""
    found = [one for one in sound.found("--service-account", "self") if " installation: " in one]

    assert [one.partition(" ")[0] for one in found] == ["warning"]


def test_an_entry_under_another_known_name(sound: Town) -> None:
    """The controller looks for the name that a Rollout has; an entry under another of the plugin's names is no use."""
    found = of_installation(sound, [{**ENTRY, "name": "solo-io/glooplatform"}])

    missing = f"error trafficRouterPlugins has no entry {PLUGIN_KEY}, which a Rollout names; its entries: "
    assert found == [
        "ok solo-io/glooplatform is at file:///plugins/plugin",
        f"{missing}solo-io/glooplatform",
    ]


def test_any_known_name_where_no_rollout_names_one(sound: Town) -> None:
    """Before there is a Rollout, an entry under one of the plugin's names is enough."""
    sound.api.delete("Rollout", "shop", "web")

    assert [one.partition(" ")[0] for one in of_installation(sound, [ENTRY])] == ["ok"]
    (found,) = of_installation(sound, [{**ENTRY, "name": "a/b"}])
    assert found.startswith(f"error trafficRouterPlugins has no entry {PLUGIN_KEY} or ")


@pytest.mark.parametrize(("allowed", "told"), [("", "it allows: none"), ("ops", "it allows: ops"), ("ops,gw", "")])
def test_namespaces_that_the_plugin_may_not_write_in(sound: Town, allowed: str, told: str) -> None:
    """A Rollout whose routes are elsewhere is refused by each call, unless --allowed-namespaces lets it."""
    sound.api.update(controller_config([{**ENTRY, "args": [f"--allowed-namespaces={allowed}"]}]))
    own = [line for line in sound.found() if "--allowed-namespaces" in line]
    sound.configure(config={"httpRoute": "web", "namespace": "gw"})
    found = [line for line in sound.found() if "--allowed-namespaces" in line]

    assert own == []
    assert len(found) == bool(told)
    assert all(line.startswith("error configuration: Rollout shop/web: namespace 'gw'") for line in found)
    assert all(told in line for line in found)
