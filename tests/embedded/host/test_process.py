"""A plugin is started, called and ended as the stock host does it, over both transports."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.netrpc import NetRpcClient
from rollouts_gwapi_plugin.embedded.host.process import ChildPlugin, PluginProcess
from rollouts_gwapi_plugin.errors import HandshakeError, RpcError
from rollouts_gwapi_plugin.wire.yamux import Session

PLUGIN = [sys.executable, "-m", "rollouts_gwapi_plugin"]
TRANSPORTS = pytest.mark.parametrize("transport", ["netrpc", "grpc"])
ROUTE = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"rules": [{"backendRefs": [{"name": "stable", "port": 80}, {"name": "canary", "port": 80}]}]},
}


@TRANSPORTS
def test_calls(tmp_path: Path, transport: str, rollout: Callable[..., Any]) -> None:
    """Type, a weight that reaches the API, its verification, and an error's text all come through."""
    with ApiServer() as api:
        api.create(ROUTE)
        kubeconfig = api.write_kubeconfig(tmp_path / "kubeconfig")
        with ChildPlugin([*PLUGIN, "--transport", transport], {"KUBECONFIG": str(kubeconfig)}) as plugin:
            weight = {"rollout": rollout({"setWeight": 20}), "desiredWeight": 20, "additionalDestinations": []}
            calls = [Call("Type", {}), Call("SetWeight", weight), Call("VerifyWeight", weight)]
            replies = [plugin.call(call) for call in calls]
            missing = rollout({"setWeight": 20}, canaryService="other")
            broken = plugin.call(Call("SetWeight", {**weight, "rollout": missing}))
            plugin.ping()
        refs = api.read("HTTPRoute", "shop", "web")["spec"]["rules"][0]["backendRefs"]

    assert (plugin.init_reply.error, replies[0].text) == ("", "GatewayAPI")
    assert [reply.error for reply in replies] == ["", "", ""]
    assert replies[2].verified is True
    assert [(ref["name"], ref["weight"]) for ref in refs] == [("stable", 80), ("canary", 20)]
    assert "other" in broken.error
    assert plugin.ended_by_itself is True
    assert plugin.process.exit_code == 0


@TRANSPORTS
def test_a_dead_plugin_is_an_error(tmp_path: Path, transport: str) -> None:
    """When the process is killed, a call fails and says that the connection is gone."""
    plugin = ChildPlugin([*PLUGIN, "--transport", transport], {"HOME": str(tmp_path)})
    os.kill(plugin.process.pid, signal.SIGKILL)
    plugin.process.end()

    with pytest.raises(RpcError, match=r"ended|UNAVAILABLE"):
        plugin.call(Call("Type", {}))
    with pytest.raises(RpcError):
        plugin.close()
    assert plugin.process.exit_code == -signal.SIGKILL


def test_the_answer_to_quit_may_be_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plugin that closes the connection in place of an answer to Quit has ended as asked (Go's do so at times)."""
    plugin = ChildPlugin(PLUGIN, {"HOME": str(tmp_path)})
    receive = Session.receive

    def lose(session: Session, data: bytes) -> list[Any]:
        receive(session, data)
        raise ConnectionResetError

    plugin.ping()
    monkeypatch.setattr(NetRpcClient, "ping", lambda _: monkeypatch.setattr(Session, "receive", lose))
    plugin.close()

    assert plugin.ended_by_itself is True


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "import sys; sys.stderr.write('no cookie'); sys.exit(1)",
            "ended without a handshake line; it said: no cookie",
        ),
        ("import time; time.sleep(60)", "no handshake line in 0.5 s"),
        ("print('hello')", "no go-plugin handshake"),
        ("print('1|1|unix|/nowhere|netrpc|', flush=True); input()", "listens on /nowhere"),
    ],
)
def test_a_start_that_fails(program: str, message: str) -> None:
    """A program that is no plugin is ended, and the error says what it did."""
    with pytest.raises(HandshakeError, match=message):
        ChildPlugin([sys.executable, "-c", program], seconds=0.5)


def test_a_program_that_is_not_there() -> None:
    """A missing program is an error that names it."""
    with pytest.raises(HandshakeError, match="/nowhere/plugin"):
        PluginProcess(["/nowhere/plugin"], {})


def test_log_lines_are_handed_on() -> None:
    """Each line of standard error reaches the callback and is kept."""
    lines: list[str] = []
    program = "import sys; print('1|1|tcp|127.0.0.1:1|netrpc|', flush=True); print('one\\ntwo', file=sys.stderr)"
    process = PluginProcess([sys.executable, "-c", program], {}, on_log=lines.append)
    process.end()

    assert lines == list(process.log) == ["one", "two"]
