"""The plugin as a process: how it starts, what it writes where, and when it ends.

Matrix: cookie, flags, handshake; socket folder, group, TCP; each way to end x with and without a running call.
"""

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from rollouts_gwapi_plugin.cli import main
from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.process import ChildPlugin
from rollouts_gwapi_plugin.serve import CLOSE_SECONDS
from rollouts_gwapi_plugin.transport import listener
from rollouts_gwapi_plugin.wire.goplugin import handshake

if TYPE_CHECKING:
    from tests.conftest import StartPlugin
    from tests.plugin_process import PluginProcess

Connect = Callable[["PluginProcess"], socket.socket]
# Decision D4 says two seconds. Busy cores get more here: without the rule it would be for ever.
GONE_SECONDS = 6.0
# Longer than the plugin lingers after its last session: who lives on then, lives on.
STAYS_SECONDS = 1.5


@pytest.fixture
def connect() -> Callable[[str], socket.socket]:
    """Give a function that connects to a unix socket."""

    def open_connection(path: str) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(path)
        return sock

    return open_connection


def test_the_cookie_is_the_same_in_both_places() -> None:
    """The command line must not import the handshake to know the cookie's name."""
    assert handshake.COOKIE_NAME == main.COOKIE_NAME


@pytest.mark.parametrize("cookie", [None, "", "other"])
def test_without_the_cookie_it_explains_itself(start_plugin: "StartPlugin", cookie: str | None) -> None:
    """A person who starts the plugin learns what it is and how it is used, and it ends with 1."""
    plugin = start_plugin("serve", environ={"ARGO_ROLLOUTS_RPC_PLUGIN": cookie})

    assert plugin.wait() == 1
    assert plugin.rest_of_stdout() == b""
    assert "name: argo-rollouts-config" in plugin.stderr
    assert "location: file://" in plugin.stderr
    assert "serve --help" in plugin.stderr


def test_help_names_every_flag(start_plugin: "StartPlugin") -> None:
    """`serve --help` goes to standard output, and needs no cookie."""
    plugin = start_plugin("serve", "--help", environ={"ARGO_ROLLOUTS_RPC_PLUGIN": None})

    text = plugin.rest_of_stdout().decode()
    assert plugin.wait() == 0
    for flag in ("-kubeClientQPS", "-kubeClientBurst", "-logformat", "--transport", "--allowed-namespaces"):
        assert flag in text


def test_a_wrong_flag_is_one_line_of_the_log(start_plugin: "StartPlugin") -> None:
    """A flag that does not exist ends the process with 2, as in Go, and a line at the level error says which."""
    plugin = start_plugin("-nonsense=1")

    assert plugin.wait() == 2
    assert plugin.stderr.startswith("[ERROR] wrong arguments: ")
    assert "-nonsense=1" in plugin.stderr
    assert plugin.stderr.count("\n") == 1
    assert plugin.rest_of_stdout() == b""


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PLUGIN_CLIENT_CERT", "no certificate", "PLUGIN_CLIENT_CERT"),
        ("PLUGIN_CLIENT_CERT", "é", "PLUGIN_CLIENT_CERT"),
        ("PLUGIN_UNIX_SOCKET_GROUP", "no-such-group", "no-such-group"),
    ],
)
def test_an_environment_that_cannot_be_used_is_told(
    start_plugin: "StartPlugin", name: str, value: str, told: str
) -> None:
    """What the host asks for and can't be had ends the process with 1 and a line that names the cause."""
    plugin = start_plugin(environ={name: value})

    assert plugin.wait() == 1
    assert plugin.stderr.startswith("[ERROR] the plugin can't start: ")
    assert told in plugin.stderr
    assert plugin.rest_of_stdout() == b""


@pytest.mark.parametrize("transport", ["netrpc", "grpc"])
def test_the_handshake_line(start_plugin: "StartPlugin", transport: str) -> None:
    """The line is what go-plugin's host reads: five parts and an empty certificate."""
    plugin = start_plugin(f"-transport={transport}")
    line = plugin.handshake()

    assert plugin.first_line == f"1|1|unix|{line.address}|{transport}|\n"
    assert Path(line.address).parent == plugin.folder
    assert stat.S_IMODE(Path(line.address).stat().st_mode) == 0o600


def test_other_protocol_versions_are_told(start_plugin: "StartPlugin") -> None:
    """Where no version fits the plugin names its own, on which the host refuses it; the log says why."""
    plugin = start_plugin(environ={"PLUGIN_PROTOCOL_VERSIONS": "2,3"})

    assert plugin.handshake().app_version == 1
    assert plugin.wait_log("other protocol versions")["@level"] == "error"


@pytest.mark.parametrize(("transport", "part"), [("netrpc", ""), ("grpc", "|false")])
def test_multiplexing_is_refused_as_the_host_understands_it(
    start_plugin: "StartPlugin", transport: str, part: str
) -> None:
    """Over gRPC the seventh part says that streams can't be shared; over net/rpc it means nothing and is not there."""
    plugin = start_plugin("--transport", transport, environ={"PLUGIN_MULTIPLEX_GRPC": "true"})
    line = plugin.handshake()

    assert plugin.first_line == f"1|1|unix|{line.address}|{transport}|{part}\n"
    if transport == "grpc":
        assert plugin.wait_log("multiplexing")["@level"] == "error"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-kubeClientQPS=40", "-kubeClientBurst=80", "-logformat=json"],
        ["--kubeClientQPS=40", "--kubeClientBurst=80", "--logformat=json"],
        ["-kubeClientQPS", "40", "-kubeClientBurst", "80", "-logformat", "json"],
        ["serve", "--kubeClientQPS", "40", "--kubeClientBurst", "80", "--logformat", "json"],
    ],
)
def test_flags_in_all_forms_of_go(start_plugin: "StartPlugin", arguments: list[str]) -> None:
    """One dash or two, `=` or a space: the service gets the same settings."""
    plugin = start_plugin(*arguments, "--plugin-name", "serve/serve")
    plugin.handshake()
    plugin.wait_calls("build", 1)

    settings = plugin.calls("build")[0]["settings"]
    assert "qps=40.0, burst=80, plugin_name='serve/serve'" in settings


def test_text_log(start_plugin: "StartPlugin") -> None:
    """With `-logformat text` a person can read the log, and the host still finds the level."""
    plugin = start_plugin("-logformat", "text")
    plugin.handshake()
    plugin.process.send_signal(signal.SIGTERM)

    assert plugin.wait() == 0
    assert plugin.stderr.startswith("[INFO] the plugin serves transport=netrpc")


def test_the_launcher_passes_its_path_on(start_plugin: "StartPlugin") -> None:
    """The path of the one-file executable names the plugin, not that of the interpreter in it."""
    path = "/plugin-bin/argoproj-labs/gatewayAPI"
    plugin = start_plugin(environ={"ROLLOUTS_GWAPI_PLUGIN_EXECUTABLE": path})
    plugin.handshake()
    plugin.wait_calls("build", 1)

    assert f"executable='{path}'" in plugin.calls("build")[0]["settings"]


def test_nothing_heavy_is_imported_before_the_handshake(start_plugin: "StartPlugin") -> None:
    """The host waits for the line, so the big packages come after it."""
    watch = (
        "import os, sys\n"
        "write = os.write\n"
        "def watched(descriptor, data):\n"
        "    heavy = {'pydantic', 'structlog', 'urllib3', 'grpc', 'cryptography', 'click', 'yaml', 'ssl', 'asyncio'}\n"
        "    sys.stderr.write(f'imported: {sorted(heavy & set(sys.modules))}\\n')\n"
        "    return write(descriptor, data)\n"
        "os.write = watched\n"
        "from rollouts_gwapi_plugin.__main__ import main\n"
        "sys.exit(main())\n"
    )
    plugin = start_plugin(command=[sys.executable, "-c", watch])
    plugin.handshake()

    assert plugin.stderr.startswith("imported: []\n")


def test_a_host_that_closed_standard_output_ends_it(tmp_path: Path, plugin_process: ModuleType) -> None:
    """If nobody reads the handshake line there is no host."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "rollouts_gwapi_plugin"]
    environment = plugin_process.plugin_environment(tmp_path, {})
    done = subprocess.run(
        command, env=environment, check=False, stdout=write, stderr=subprocess.PIPE, text=True, timeout=20
    )
    os.close(write)

    assert done.returncode == 1
    assert "does not read the handshake line" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_hosts_folder_is_used(start_plugin: "StartPlugin", tmp_path: Path) -> None:
    """With PLUGIN_UNIX_SOCKET_DIR the socket lies there, and is removed at the end."""
    folder = tmp_path / "sockets"
    folder.mkdir()
    plugin = start_plugin(environ={"PLUGIN_UNIX_SOCKET_DIR": str(folder)})
    path = Path(plugin.handshake().address)

    assert path.parent == folder
    assert path.is_socket()
    plugin.process.send_signal(signal.SIGTERM)
    assert plugin.wait() == 0
    assert list(folder.iterdir()) == []


def test_the_hosts_group_may_connect(start_plugin: "StartPlugin") -> None:
    """With PLUGIN_UNIX_SOCKET_GROUP the socket is that group's, with mode 0660."""
    group = os.getgid()
    plugin = start_plugin(environ={"PLUGIN_UNIX_SOCKET_GROUP": str(group)})
    status = Path(plugin.handshake().address).stat()

    assert stat.S_IMODE(status.st_mode) == 0o660
    assert status.st_gid == group


@pytest.mark.parametrize("transport", ["netrpc", "grpc"])
def test_tcp_where_a_unix_socket_fails(start_plugin: "StartPlugin", transport: str, tmp_path: Path) -> None:
    """Without a usable folder it listens on this machine, on a port of the host's range, and the log says why."""
    changes = {
        "PLUGIN_UNIX_SOCKET_DIR": str(tmp_path / "missing"),
        "PLUGIN_MIN_PORT": "21000",
        "PLUGIN_MAX_PORT": "21999",
    }
    plugin = start_plugin("--transport", transport, environ=changes)
    line = plugin.handshake()
    address, _, port = line.address.rpartition(":")

    assert (line.network, address) == ("tcp", "127.0.0.1")
    assert 21000 <= int(port) <= 21999
    assert "missing" in plugin.wait_log("listening on TCP")["cause"]
    socket.create_connection((address, int(port)), timeout=10).close()


@pytest.mark.parametrize("transport", ["netrpc", "grpc"])
def test_a_folder_with_a_long_path(transport: str, tmp_path: Path) -> None:
    """Where the temporary folder's path leaves no room for a socket, the plugin serves all the same."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    command = [sys.executable, "-m", "rollouts_gwapi_plugin", "--transport", transport]
    with ChildPlugin(command, {"TMPDIR": str(folder)}) as plugin:
        answer = plugin.call(Call("Type", {}))

    assert answer.text == "GatewayAPI"
    assert plugin.process.line.network == "tcp"
    assert list(folder.iterdir()) == []


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder whose path leaves room for a socket's name, wherever pytest keeps its own."""
    with tempfile.TemporaryDirectory(prefix="sockets-", dir=listener.SHORT_DIRECTORY) as path:
        yield Path(path)


def test_stale_sockets_are_swept(start_plugin: "StartPlugin", plugin_process: ModuleType, folder: Path) -> None:
    """What plugins left that were killed is removed; live sockets, young ones and others' files are not."""

    def bind(name: str, *, age: float = 3600.0) -> socket.socket:
        (folder / name).parent.mkdir(exist_ok=True)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(str(folder / name))
        os.utime(folder / name, (time.time() - age, time.time() - age))
        return sock

    bind("rollouts-gwapi-stale").close()
    bind("rollouts-gwapi-folder/grpc.sock").close()
    bind("rollouts-gwapi-young", age=0.0).close()
    bind("another-program.sock").close()
    (folder / "rollouts-gwapi-file").write_text("not a socket")
    with bind("rollouts-gwapi-live") as live:
        live.listen()
        plugin = start_plugin(environ={"PLUGIN_UNIX_SOCKET_DIR": str(folder)})
        own = Path(plugin.handshake().address).name
        stale = [folder / "rollouts-gwapi-stale", folder / "rollouts-gwapi-folder"]
        plugin_process.wait_until(lambda: not any(path.exists() for path in stale), "stale sockets are gone")

    left = {path.name for path in folder.iterdir()}
    kept = {"rollouts-gwapi-live", "rollouts-gwapi-young", "another-program.sock"}
    assert left == kept | {own, "rollouts-gwapi-file"}


def test_sigterm_ends_it(start_plugin: "StartPlugin") -> None:
    """Without running calls SIGTERM ends it at once, with 0 and without its socket."""
    plugin = start_plugin()
    path = Path(plugin.handshake().address)
    plugin.wait_log("the plugin serves")
    plugin.wait_calls("build", 1)
    plugin.process.send_signal(signal.SIGTERM)

    assert plugin.wait(GONE_SECONDS) == 0
    assert not path.exists()
    assert plugin.log("the plugin ends")[0]["reason"] == "SIGTERM"
    # Events that wait are made, in no more time than the host gets for its answers.
    assert [entry["seconds"] for entry in plugin.calls("close")] == [CLOSE_SECONDS]


def test_sigint_is_ignored(start_plugin: "StartPlugin") -> None:
    """Ctrl-C in a terminal reaches the whole group; the host decides when its plugins end."""
    plugin = start_plugin()
    plugin.handshake()
    plugin.process.send_signal(signal.SIGINT)

    with pytest.raises(subprocess.TimeoutExpired):
        plugin.wait(STAYS_SECONDS)


@pytest.mark.parametrize("transport", ["netrpc", "grpc"])
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x00\x01\x00"])
def test_a_connection_that_is_no_session_does_not_count(
    start_plugin: "StartPlugin", connect: Callable[[str], socket.socket], transport: str, sent: bytes
) -> None:
    """A probe that closes without a byte, and one that sends garbage, end nothing but themselves."""
    plugin = start_plugin("--transport", transport)
    address = plugin.handshake().address
    # The plugin may have closed already on garbage.
    with connect(address) as sock, contextlib.suppress(OSError):
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(10)
        while sock.recv(4096):
            pass

    with pytest.raises(subprocess.TimeoutExpired):
        plugin.wait(STAYS_SECONDS)


@pytest.mark.parametrize("transport", ["netrpc", "grpc"])
def test_it_dies_with_a_host_that_was_killed(transport: str, tmp_path: Path, plugin_process: ModuleType) -> None:
    """A host that gets SIGKILL, before it has even connected, takes its plugin with it within two seconds."""
    host_code = (
        "import subprocess, sys\n"
        "plugin = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)\n"
        "plugin.stdout.readline()\n"
        "print(plugin.pid, flush=True)\n"
        "plugin.wait()\n"
    )
    command = [sys.executable, "-c", host_code, sys.executable, str(plugin_process.STUB), f"-transport={transport}"]
    host = plugin_process.PluginProcess(tmp_path, [], {}, command)
    try:
        pid = int(host.process.stdout.readline())
        host.wait_log("the plugin serves")
        host.process.kill()
        host.wait()
        plugin_process.wait_until(lambda: not _runs(pid), "the plugin is gone", GONE_SECONDS)
        assert not list(tmp_path.glob("rollouts-gwapi-*"))
    finally:
        host.stop()


def _runs(pid: int) -> bool:
    """Whether a process that is not ours to wait for still runs; one that ended and waits to be reaped does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"
