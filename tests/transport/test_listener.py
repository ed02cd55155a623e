"""Where the plugin listens. The process's view (folder, group, TCP, sweeping) is in `test_serve.py`."""

import os
import socket
import stat
from pathlib import Path

import pytest

from rollouts_gwapi_plugin.errors import HandshakeError
from rollouts_gwapi_plugin.transport.listener import MAX_PATH, listen, sweep, temporary_directory


def no_ports() -> range:
    """Name no port."""
    return range(1, 1)


def test_a_unix_socket_is_ours_alone(tmp_path: Path) -> None:
    """Without a group only our own user may connect, and closing removes the file."""
    umask = os.umask(0)
    os.umask(umask)
    listener = listen(str(tmp_path), "", no_ports)
    path = Path(listener.address)

    assert (listener.network, path.parent) == ("unix", tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.umask(umask) == umask
    listener.close()
    assert not path.exists()
    listener.close()


def test_without_a_folder_it_is_the_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR, as in Go, else /tmp."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    listener = listen("", "", no_ports)
    assert Path(listener.address).parent == tmp_path
    listener.close()

    monkeypatch.delenv("TMPDIR")
    assert Path(temporary_directory()) == Path("/", "tmp")


def test_a_group_by_name(tmp_path: Path) -> None:
    """A group may be named, too."""
    import grp

    name = grp.getgrgid(os.getgid()).gr_name
    listener = listen(str(tmp_path), name, no_ports)
    status = Path(listener.address).stat()
    listener.close()

    assert (status.st_gid, stat.S_IMODE(status.st_mode)) == (os.getgid(), 0o660)


@pytest.mark.parametrize("group", ["no-such-group", "99999999999", "9" * 5000, "\N{ARABIC-INDIC DIGIT ZERO}"])
def test_a_group_that_cannot_be_had_leaves_nothing(tmp_path: Path, group: str) -> None:
    """The error names the variable, and the socket is removed."""
    with pytest.raises(HandshakeError, match="PLUGIN_UNIX_SOCKET_GROUP") as caught:
        listen(str(tmp_path), group, no_ports)

    assert len(str(caught.value)) < 500
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_too_long_falls_back(tmp_path: Path) -> None:
    """Where the path of a unix socket is too long it is TCP, with the reason."""
    folder = tmp_path / ("d" * MAX_PATH)
    folder.mkdir()
    listener = listen(str(folder), "", lambda: range(22000, 22999))
    address, _, port = listener.address.rpartition(":")
    listener.close()

    assert (listener.network, address) == ("tcp", "127.0.0.1")
    assert 22000 <= int(port) <= 22999
    assert "too long" in listener.why_not_unix


def test_ports_that_are_none_matter_to_tcp_alone(tmp_path: Path) -> None:
    """As in Go, the ports of the environment are looked at where a TCP listener is made, and nowhere else."""

    def broken() -> range:
        raise HandshakeError("PLUGIN_MIN_PORT is 'ten'")

    listen(str(tmp_path), "", broken).close()
    with pytest.raises(HandshakeError, match="PLUGIN_MIN_PORT is 'ten'"):
        listen("/nonexistent", "", broken)


def test_ports_that_are_taken_are_passed_over() -> None:
    """The first free port of the range is taken; where there is none the error says so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(HandshakeError, match=f"no port from {port} to {port} of 127.0.0.1 is free"):
            listen("/nonexistent", "", lambda: range(port, port + 1))
    with pytest.raises(HandshakeError, match="the range is empty"):
        listen("/nonexistent", "", no_ports)


def test_sweeping_a_folder_that_is_not_there_finds_nothing() -> None:
    """A folder that can't be read is no reason to fail."""
    assert sweep("/nonexistent") == 0
