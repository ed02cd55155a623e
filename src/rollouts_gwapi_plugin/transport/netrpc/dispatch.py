"""Who answers a net/rpc call: the control services here, the plugin's own methods in the pool.

Two kinds of stream carry net/rpc: the control stream with the services Control and Dispenser, and each dispensed plugin
with the service Plugin. Control's calls are answered at once by the receiving thread, so a ping is answered while calls
are slow. Names that nobody serves are answered with Go's own words, and the connection lives on.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rollouts_gwapi_plugin.transport.calls import METHODS, Method
from rollouts_gwapi_plugin.transport.netrpc import gotypes
from rollouts_gwapi_plugin.transport.netrpc.convert import SERVICE, Reply
from rollouts_gwapi_plugin.wire.netrpc import CallReceived

# The name under which the controller dispenses a traffic router.
PLUGIN_NAME = "RpcTrafficRouterPlugin"
# go-plugin's own services.
CONTROL_SERVICES = {"Control": ("Ping", "Quit"), "Dispenser": ("Dispense",)}
PLUGIN_SERVICES = {SERVICE: tuple(METHODS)}


@dataclass(frozen=True)
class Now:
    """Answer at once; `then` follows when the answer was sent."""

    reply: Reply
    then: Callable[[], None] | None = None


@dataclass(frozen=True)
class Later:
    """Run the method in the pool."""

    method: Method


@dataclass(frozen=True)
class ControlStream:
    """The first stream of a session: pings, the end, and the way to the plugin."""

    offer: Callable[[], int]
    quit: Callable[[], None]

    def dispatch(self, call: CallReceived) -> Now | Later:
        """Answer a call of the control services."""
        if error := _unknown(call.method, CONTROL_SERVICES):
            return _refused(error)
        if call.method == "Dispenser.Dispense":
            if call.argument != PLUGIN_NAME:
                return _refused(f"unknown plugin type: {call.argument}")
            return Now(Reply(gotypes.BROKER_ID, self.offer()))
        done = Reply(gotypes.NOTHING, {})
        return Now(done, self.quit) if call.method == "Control.Quit" else Now(done)


@dataclass(frozen=True)
class PluginStream:
    """A dispensed plugin."""

    def dispatch(self, call: CallReceived) -> Now | Later:
        """Send a call of the plugin's service to the pool."""
        if error := _unknown(call.method, PLUGIN_SERVICES):
            return _refused(error)
        return Later(METHODS[call.method.rpartition(".")[2]])


def _refused(error: str) -> Now:
    return Now(Reply(gotypes.NOTHING, {}, error))


def _unknown(name: str, services: dict[str, tuple[str, ...]]) -> str:
    """Return what Go's net/rpc server says of a name that is not served; empty where it is."""
    service, dot, method = name.rpartition(".")
    if not dot:
        return f"rpc: service/method request ill-formed: {name}"
    if service not in services:
        return f"rpc: can't find service {name}"
    return "" if method in services[service] else f"rpc: can't find method {name}"
