"""Who answers which name. What the answers do on a connection is in `test_connection.py`."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.transport.calls import METHODS
from rollouts_gwapi_plugin.transport.netrpc import gotypes
from rollouts_gwapi_plugin.transport.netrpc.convert import Reply
from rollouts_gwapi_plugin.transport.netrpc.dispatch import PLUGIN_NAME, ControlStream, Later, Now, PluginStream
from rollouts_gwapi_plugin.wire.netrpc import CallReceived


@pytest.fixture
def quits() -> list[str]:
    """Collect what asked for the end."""
    return []


@pytest.fixture
def control(quits: list[str]) -> ControlStream:
    """Give a control stream that offers the number 3."""
    return ControlStream(offer=lambda: 3, quit=lambda: quits.append("quit"))


def _now(answer: Now | Later) -> Now:
    assert isinstance(answer, Now)
    return answer


def test_dispense_offers_a_number(control: ControlStream) -> None:
    """The known plugin gets the number of the stream to dial."""
    answer = _now(control.dispatch(CallReceived(0, "Dispenser.Dispense", PLUGIN_NAME)))

    assert answer == Now(Reply(gotypes.BROKER_ID, 3))


@pytest.mark.parametrize("name", ["", "other", None, 7])
def test_dispense_refuses_what_is_not_served(control: ControlStream, name: Any) -> None:
    """Any other name, or no name at all, is go-plugin's error."""
    answer = _now(control.dispatch(CallReceived(0, "Dispenser.Dispense", name)))

    assert answer.reply.error == f"unknown plugin type: {name}"


def test_only_quit_asks_for_the_end(control: ControlStream, quits: list[str]) -> None:
    """A ping is answered and that is all; Quit is followed by the end, not preceded."""
    ping = _now(control.dispatch(CallReceived(0, "Control.Ping", argument=True)))
    quit_answer = _now(control.dispatch(CallReceived(1, "Control.Quit", argument=True)))
    assert ping == Now(Reply(gotypes.NOTHING, {}))
    assert quit_answer.reply == ping.reply
    assert quits == []

    assert quit_answer.then is not None
    quit_answer.then()
    assert quits == ["quit"]


@pytest.mark.parametrize("name", METHODS)
def test_the_plugins_methods_go_to_the_pool(name: str) -> None:
    """All eight methods run later."""
    assert PluginStream().dispatch(CallReceived(0, f"Plugin.{name}", None)) == Later(METHODS[name])


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("Plugin.setWeight", "rpc: can't find method Plugin.setWeight"),
        ("Plugins.SetWeight", "rpc: can't find service Plugins.SetWeight"),
        ("a.Plugin.SetWeight", "rpc: can't find service a.Plugin.SetWeight"),
        ("PluginSetWeight", "rpc: service/method request ill-formed: PluginSetWeight"),
    ],
)
def test_unknown_names_get_gos_words(method: str, error: str) -> None:
    """The text is that of Go's net/rpc server."""
    assert _now(PluginStream().dispatch(CallReceived(0, method, None))).reply.error == error
