"""The plugin as a process of the host: start, refusals, pings while it works, and every way to end."""

import os
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

if TYPE_CHECKING:
    from tests.interop.conftest import Host, Mode

Rollout = dict[str, Any]


@pytest.fixture
def held(api: ApiServer) -> Iterator[threading.Event]:
    """Hold every read of the route `web` until the event is set."""
    event = threading.Event()
    api.faults.add(verb="get", plural="httproutes", until=event, times=None)
    yield event
    event.set()


def in_call(host: "Host", api: ApiServer, rollout: Rollout, *, count: int = 0) -> None:
    """Begin a call that waits for the API server, and wait until it does."""
    host.background("slow", "SetWeight", rollout=rollout, weight=20, count=count)
    api.requests.wait_for(lambda request: request.plural == "httproutes")


def test_ping_during_slow_calls(
    go_host: "Host", mode: "Mode", api: ApiServer, rollout: Rollout, held: threading.Event
) -> None:
    """A ping is answered while more calls than the plugin has threads wait for the API server."""
    go_host.started(mode)
    in_call(go_host, api, rollout, count=64)

    for _ in range(3):
        ping = go_host.do("ping")
        assert ping["error"] == ""
        # The calls are held until the ping was answered, so any time shows it; this is a crowded machine's.
        assert ping["seconds"] < 5
    held.set()
    answers = go_host.do("await", id="slow")["answers"]
    assert [answer["error"] for answer in answers] == [""] * 64


def test_quit(go_host: "Host", mode: "Mode", rollout: Rollout) -> None:
    """The plugin ends by itself, with 0, within the 2 s before go-plugin kills it, and removes its socket."""
    go_host.started(mode)
    go_host.call("SetWeight", rollout=rollout, weight=20)
    killed = go_host.do("kill")

    assert killed["exit_code"] == 0, killed
    assert killed["seconds"] < 2
    assert "plugin failed to exit gracefully" not in str(go_host.logs())
    assert not Path(go_host.address).exists()


def test_quit_during_a_call(
    go_host: "Host", mode: "Mode", api: ApiServer, rollout: Rollout, held: threading.Event
) -> None:
    """A call that hangs keeps the plugin from nothing: it still ends by itself in time."""
    go_host.started(mode)
    in_call(go_host, api, rollout)
    killed = go_host.do("kill")

    assert killed["exit_code"] == 0, killed
    assert killed["seconds"] < 2
    assert not held.is_set()


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in-a-call"])
def test_host_is_killed(
    go_host: "Host", mode: "Mode", api: ApiServer, rollout: Rollout, held: threading.Event, *, busy: bool
) -> None:
    """When the host dies of SIGKILL the plugin is gone within 2 s (checked by the fixture), and so is its socket."""
    go_host.started(mode)
    if busy:
        in_call(go_host, api, rollout)
    go_host.process.send_signal(signal.SIGKILL)
    go_host.process.wait()
    go_host.wait_for_end()

    assert not held.is_set()
    assert not Path(go_host.address).exists()


@pytest.mark.parametrize("protocol", ["netrpc", "grpc"])
def test_reattach(go_host: "Host", rollout: Rollout, protocol: str) -> None:
    """A second client that probes with an empty connection, connects, calls and closes leaves the first one working."""
    go_host.started(protocol=protocol, allow_grpc=True, args=["serve", "--transport", protocol])
    again = go_host.do("reattach", call={"method": "SetWeight", "rollout": rollout, "weight": 20})

    assert again["error"] == ""
    assert go_host.do("ping")["error"] == ""
    assert go_host.call("VerifyWeight", rollout=rollout, weight=20)["verified"] == 1


# -- refusals -----------------------------------------------------------------------------------------------------


def test_wrong_cookie(go_host: "Host") -> None:
    """Without the host's cookie the plugin explains itself on standard error and ends with 1."""
    answer = go_host.start(cookie_value="metrics")

    assert "Unrecognized remote plugin message" in answer["error"]
    stderr = "\n".join(go_host.plugin_stderr())
    assert "argo-rollouts-config" in stderr
    assert go_host.do("kill")["exit_code"] == 1


def test_wrong_protocol_version(go_host: "Host") -> None:
    """A host of another protocol version is told ours, so that it can say what does not fit."""
    answer = go_host.start(protocol_version=9)

    assert "Incompatible API version with plugin. Plugin version: 1, Client versions: [9]" in answer["error"]
    go_host.wait_for_end()


def test_stock_controller_refuses_grpc(go_host: "Host") -> None:
    """The stock controller, which allows only net/rpc, says so when the plugin was told to speak gRPC."""
    answer = go_host.start(args=["serve", "--transport", "grpc"])

    assert answer["error"] == 'Unsupported plugin protocol "grpc". Supported: [netrpc]'
    go_host.wait_for_end()


def test_stock_controller_needs_no_arguments(go_host: "Host") -> None:
    """Under the cookie the plugin serves without any argument, as the controller starts it by default."""
    assert go_host.start(args=[])["error"] == ""


def test_multiplexing_is_refused(go_host: "Host") -> None:
    """A host that wants gRPC multiplexing is refused in go-plugin's own words."""
    answer = go_host.start(protocol="grpc", allow_grpc=True, multiplex=True, args=["serve", "--transport", "grpc"])

    assert "multiplexing" in answer["error"].lower()
    go_host.wait_for_end()


@pytest.mark.parametrize("flag", ["-kubeClientQPS=many", "--no-such-flag", "--transport=http"])
def test_wrong_flags(go_host: "Host", flag: str) -> None:
    """A flag that can't be used ends the start, and standard error names it."""
    answer = go_host.start(args=["serve", flag])

    assert "Unrecognized remote plugin message" in answer["error"]
    assert flag.strip("-").partition("=")[0] in "\n".join(go_host.plugin_stderr())


@pytest.mark.parametrize("flags", [["-kubeClientQPS=40", "--kubeClientBurst", "80"], ["-logformat", "text"]])
def test_flags_of_the_go_plugin(go_host: "Host", flags: list[str], rollout: Rollout) -> None:
    """The Go plugin's flags are taken in all of Go's forms."""
    go_host.started(args=[*flags])

    assert go_host.call("SetWeight", rollout=rollout, weight=20)["error"] == ""


# -- what the host sees ---------------------------------------------------------------------------------------------


def test_logs_are_hclog(go_host: "Host", mode: "Mode", rollout: Rollout) -> None:
    """Each line of the plugin is understood by go-plugin: level, message and keys, none of it as raw text."""
    go_host.started(mode)
    go_host.call("SetWeight", rollout=rollout, weight=20)
    go_host.do("kill")
    lines = [line for line in go_host.plugin_stderr() if line]
    understood = [entry for entry in go_host.logs() if entry.get("@module") == "rollouts-gwapi-plugin"]

    assert lines
    assert len(lines) == len(understood)
    assert all(entry["@level"] in {"debug", "info", "warn"} for entry in understood), understood


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Make a folder whose name leaves room in the 107 bytes of a socket's path."""
    with tempfile.TemporaryDirectory(prefix="gw") as name:
        yield Path(name)


def test_socket_folder(go_host: "Host", mode: "Mode", short_folder: Path) -> None:
    """The socket lies where the host wants it, is of the group that it wants, and can be used by that group."""
    go_host.started(mode, environment=[f"PLUGIN_UNIX_SOCKET_DIR={short_folder}"], socket_group=str(os.getgid()))
    socket = Path(go_host.address)

    assert short_folder in socket.parents
    assert stat.S_IMODE(socket.stat().st_mode) == 0o660
    assert socket.stat().st_gid == os.getgid()


def test_tcp_where_unix_sockets_fail(go_host: "Host", mode: "Mode") -> None:
    """Where no unix socket can be made the plugin listens on TCP, on a port that the host allows, and says why."""
    answer = go_host.start(mode, environment=["PLUGIN_UNIX_SOCKET_DIR=/nonexistent"])
    host, _, port = answer["address"].rpartition(":")

    assert answer["error"] == ""
    assert (answer["network"], host) == ("tcp", "127.0.0.1")
    assert 10000 <= int(port) <= 25000
    assert "/nonexistent" in "".join(go_host.plugin_stderr())
