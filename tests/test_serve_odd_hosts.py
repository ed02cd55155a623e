"""The plugin under a host that leaves out what a host has: open descriptors, names in UTF-8, ports.

Matrix: standard output or standard error closed, both; names that are no UTF-8, per transport; ports with and without
a unix socket.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from rollouts_gwapi_plugin.transport.listener import SHORT_DIRECTORY

if TYPE_CHECKING:
    from tests.conftest import StartPlugin

PLUGIN = [sys.executable, "-m", "rollouts_gwapi_plugin"]


def closing(redirections: str, *command: str) -> list[str]:
    """Return a command that runs another one with descriptors closed by the shell."""
    return ["/bin/sh", "-c", f'exec "$@" {redirections}', "sh", *command]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder whose path leaves room for a socket's name, wherever pytest keeps its own."""
    with tempfile.TemporaryDirectory(prefix="p-", dir=SHORT_DIRECTORY) as path:
        yield Path(path)


@pytest.fixture
def odd_folder() -> Iterator[Path]:
    """Make a folder with a short path whose name is no UTF-8."""
    with tempfile.TemporaryDirectory(prefix="p-", suffix=os.fsdecode(b"-\xff"), dir=SHORT_DIRECTORY) as path:
        yield Path(path)


@pytest.mark.parametrize("redirections", [">&-", ">&- 2>&-", "<&- >&-"])
def test_without_standard_output_there_is_no_host(
    tmp_path: Path, plugin_process: ModuleType, redirections: str
) -> None:
    """It ends with 1 and a line of the log, and leaves no socket."""
    environment = plugin_process.plugin_environment(tmp_path, {})
    done = subprocess.run(
        closing(redirections, *PLUGIN), env=environment, check=False, capture_output=True, text=True, timeout=20
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert ("standard output is closed" in done.stderr) is ("2>" not in redirections)
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_standard_error_it_serves_and_is_silent(
    start_plugin: "StartPlugin", plugin_process: ModuleType, folder: Path
) -> None:
    """Nobody hears the log; in particular not the host, behind the handshake line."""
    command = closing("2>&-", sys.executable, str(plugin_process.STUB))
    plugin = start_plugin(command=command, environ={"PLUGIN_UNIX_SOCKET_DIR": str(folder)})
    address = plugin.handshake().address
    plugin.wait_calls("build", 1)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(address)
    plugin.process.send_signal(signal.SIGTERM)

    assert plugin.wait() == 0
    assert plugin.rest_of_stdout() == b""
    assert plugin.stderr == ""


@pytest.mark.parametrize("name", ["TMPDIR", "PLUGIN_UNIX_SOCKET_DIR"])
@pytest.mark.parametrize("transport", ["netrpc", "grpc"])
def test_a_folder_whose_name_is_no_utf8(
    plugin_process: ModuleType, tmp_path: Path, odd_folder: Path, transport: str, name: str
) -> None:
    """The handshake line names the socket as the file system does, and somebody answers there."""
    environment = plugin_process.plugin_environment(tmp_path, {name: str(odd_folder)})
    command = [*PLUGIN, "--transport", transport]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        network, address = process.stdout.readline().split(b"|")[2:4]
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(20)
            sock.connect(address)
            # No session: it is closed, by a server that is there.
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while sock.recv(4096):
                pass
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=20)

    assert (network, Path(os.fsdecode(address)).parent) == (b"unix", odd_folder)
    assert (process.returncode, b"Traceback" in log) == (0, False)
    assert list(odd_folder.iterdir()) == []


@pytest.mark.parametrize(
    "ports",
    [
        {"PLUGIN_MIN_PORT": "ten"},
        {"PLUGIN_MAX_PORT": "70000"},
        {"PLUGIN_MIN_PORT": "10000", "PLUGIN_MAX_PORT": None},
        {"PLUGIN_MIN_PORT": "2", "PLUGIN_MAX_PORT": "1"},
    ],
)
def test_ports_do_not_matter_to_a_unix_socket(
    start_plugin: "StartPlugin", folder: Path, ports: dict[str, str | None]
) -> None:
    """As Go's plugins on Linux: ports that are none stop it where it would listen on one, and nowhere else."""
    plugin = start_plugin(environ={**ports, "PLUGIN_UNIX_SOCKET_DIR": str(folder)})
    tcp = start_plugin(environ={**ports, "PLUGIN_UNIX_SOCKET_DIR": "/nonexistent"})

    assert plugin.handshake().network == "unix"
    assert tcp.wait() == 1
    assert tcp.stderr.startswith("[ERROR] the plugin can't start: PLUGIN_M")
