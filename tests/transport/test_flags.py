"""Flags: Go's forms, defaults, and what is refused. What a process does with them is in `test_serve.py`."""

import pytest

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.transport.flags import explanation, parse

PATH = {"ROLLOUTS_GWAPI_PLUGIN_EXECUTABLE": "/plugin-bin/argoproj-labs/gatewayAPI"}


def test_defaults() -> None:
    """Without flags: net/rpc, JSON, 50/100, every namespace (decision D20)."""
    flags = parse([], PATH)

    assert (flags.transport, flags.log_format, flags.log_level) == ("netrpc", "json", "info")
    assert flags.service == ServiceSettings(qps=50.0, burst=100, executable=PATH["ROLLOUTS_GWAPI_PLUGIN_EXECUTABLE"])
    assert flags.service.executable_key == "argoproj-labs/gatewayAPI"


@pytest.mark.parametrize("dashes", ["-", "--"])
@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize(
    ("name", "value", "attribute", "wanted"),
    [
        ("kubeClientQPS", "7.5", "qps", 7.5),
        ("kubeClientBurst", "-1", "burst", -1),
        ("kubeconfig", "/a=b", "kubeconfig", "/a=b"),
        ("plugin-name", "org/name", "plugin_name", "org/name"),
        ("metrics-port", "9090", "metrics_port", 9090),
        ("allowed-namespaces", "a, b,", "allowed_namespaces", frozenset({"a", "b"})),
    ],
)
def test_all_forms(*, dashes: str, separate: bool, name: str, value: str, attribute: str, wanted: object) -> None:
    """One dash or two, `=` or a space: all mean the same."""
    arguments = [f"{dashes}{name}", value] if separate else [f"{dashes}{name}={value}"]

    assert getattr(parse(arguments, PATH).service, attribute) == wanted


def test_no_other_namespace() -> None:
    """An empty list allows no other namespace, which is not the same as no list."""
    assert parse(["--allowed-namespaces="], PATH).service.allowed_namespaces == frozenset()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-kubeClient=5"], "-kubeClient=5"),
        (["-kubeClientQPS=many"], "many"),
        (["-logformat=xml"], "xml"),
        (["--transport", "http"], "http"),
        (["--metrics-port=0"], "0 is no port"),
        (["--metrics-port=65536"], "65536 is no port"),
        (["--plugin-name"], "expected one argument"),
        (["stray"], "stray"),
    ],
)
def test_what_is_wrong_is_named(arguments: list[str], told: str) -> None:
    """A flag that can't be read is named, together with the way to the right ones."""
    with pytest.raises(ConfigError, match="serve --help") as raised:
        parse(arguments, PATH)

    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("executable", "key"),
    [
        ("/plugin-bin/argoproj-labs/gatewayAPI", "argoproj-labs/gatewayAPI"),
        ("/gatewayAPI", None),
        ("relative/gatewayAPI", "relative/gatewayAPI"),
        ("", None),
    ],
)
def test_the_executable_names_the_plugin(executable: str, key: str | None) -> None:
    """The last two elements of its path are the plugin's key (decision D25)."""
    assert ServiceSettings(executable=executable).executable_key == key


def test_without_a_launcher_it_is_the_program_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's own path, made absolute, but with its links kept."""
    monkeypatch.setattr("sys.argv", ["/plugin-bin/org/name"])

    assert parse([], {}).service.executable_key == "org/name"
    assert "location: file:///plugin-bin/org/name" in explanation({})
