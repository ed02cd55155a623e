"""The launcher as a program: what it unpacks, what it becomes, and what it says where it can't.

The tree in these launchers holds a probe in the loader's place, which tells how it was executed.

| place                        | expected                                           |
| ---------------------------- | -------------------------------------------------- |
| writable, executable         | unpacked beside the file, once                     |
| noexec, full, read-only      | next candidate; all of them: exit 73, each named   |
| no /proc                     | found by the path that it was called by            |
| killed while unpacking       | swept; the next starts, also many at once, succeed |
| older tree, unused / in use  | removed / kept                                     |
| tree that lost something     | unpacked anew                                      |
"""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.packaging.rooms import DEADLINE, TMP, USER, Launchers, Space, cache_of, install, needs_go, trees, wait_until

from builder.executable import LAUNCHER

EXIT_NO_DIRECTORY = 73
EXIT_NOT_RUNNABLE = 126
Running = list["subprocess.Popen[str]"]


def tell(program: Path, *arguments: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run the launcher to the end and give what its probe told."""
    done = subprocess.run(
        [program, "tell", *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=environment,
    )
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def begin(running: Running, program: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start the launcher without waiting; what it inherits ignores no signal, whoever started the tests."""
    process = subprocess.Popen(
        ["env", "--default-signal=HUP,INT", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    running.append(process)
    return process


def test_unpacks_once(launchers: Launchers, plugin_bin: Path) -> None:
    """The first start unpacks beside the executable, a second one uses the same files."""
    program = install(launchers.first, plugin_bin)

    tell(program)
    [name] = trees(cache_of(plugin_bin))
    before = (cache_of(plugin_bin) / name / "version").stat()
    tell(program)

    assert [name] == trees(cache_of(plugin_bin))
    after = (cache_of(plugin_bin) / name / "version").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_becomes_the_program(launchers: Launchers, plugin_bin: Path, running: Running) -> None:
    """The launcher's process is the program's process, under the plugin's name, cold and warm."""
    program = install(launchers.first, plugin_bin)
    for _ in ("cold", "warm"):
        process = begin(running, program, "tell")
        told = json.loads(process.communicate(timeout=DEADLINE)[0])

        assert (process.pid, "rollouts-gwapi") == (told["pid"], told["name"])


def test_arguments(launchers: Launchers, plugin_bin: Path) -> None:
    """The program gets the launcher's arguments, behind those that make the bundled loader run the bundled Python."""
    program = install(launchers.first, plugin_bin)

    told = tell(program, "--flag", "with space", "")

    root = cache_of(plugin_bin) / trees(cache_of(plugin_bin))[0]
    assert [
        "rollouts-gwapi-plugin",
        "--inhibit-cache",
        "--library-path",
        f"{root}/lib",
        "--argv0",
        f"{root}/bin/python3.11",
        f"{root}/bin/python3.11",
        "-I",
        "-S",
        "-B",
        f"{root}/main.pyc",
        "tell",
        "--flag",
        "with space",
        "",
    ] == told["arguments"]


def test_environment(launchers: Launchers, plugin_bin: Path) -> None:
    """The environment stays as it was, but for our own path, the CA file, and what was meant for another loader."""
    program = install(launchers.first, plugin_bin)
    given = {
        "HOME": "/",
        "PLUGIN_CLIENT_CERT": "a\nb",
        "LD_LIBRARY_PATH": "/x",
        "LD_PRELOAD": "/y",
        "SSL_CERT_DIR": "/z",
    }

    told = tell(program, environment=given)

    kept = {"HOME": "/", "PLUGIN_CLIENT_CERT": "a\nb", "SSL_CERT_DIR": "/z"}
    assert {**kept, "ROLLOUTS_GWAPI_PLUGIN_EXECUTABLE": str(program)} == dict(
        entry.split("=", 1) for entry in told["environment"]
    )


def test_certificate_authorities(launchers: Launchers, plugin_bin: Path, space: Space, tmp_path: Path) -> None:
    """SSL_CERT_FILE names the container's authorities if the user named none and there are any."""
    install(launchers.first, plugin_bin)
    assert "SSL_CERT_FILE" not in space.run("/plugin-bin/plugin", "tell").stdout
    authorities = tmp_path / "ca.crt"
    authorities.write_text("")
    space.description["files"] = {"/etc/ssl/certs/ca-certificates.crt": str(authorities)}

    told = json.loads(space.run("/plugin-bin/plugin", "tell").stdout)
    named = json.loads(space.run("/plugin-bin/plugin", "tell", environment={"SSL_CERT_FILE": "/mine"}).stdout)

    assert "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt" in told["environment"]
    assert "SSL_CERT_FILE=/mine" in named["environment"]


def test_open_files(launchers: Launchers, plugin_bin: Path) -> None:
    """Nothing is left open but the mark that keeps the tree from being swept."""
    program = install(launchers.first, plugin_bin)

    told = tell(program)

    [name] = trees(cache_of(plugin_bin))
    assert [f"{cache_of(plugin_bin)}/{name}.use"] == list(told["descriptors"].values())


@pytest.mark.parametrize("code", [0, 1, 42])
def test_exit_codes(launchers: Launchers, plugin_bin: Path, code: int) -> None:
    """The program's exit code is the launcher's."""
    program = install(launchers.first, plugin_bin)

    assert code == subprocess.run([program, "exit", str(code)], check=False, timeout=DEADLINE).returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGINT])
def test_signals(launchers: Launchers, plugin_bin: Path, running: Running, number: signal.Signals) -> None:
    """A signal to the launcher's process reaches the program with its default action."""
    process = begin(running, install(launchers.first, plugin_bin), "wait")
    assert process.stdout is not None
    process.stdout.readline()

    process.send_signal(number)

    assert -number == process.wait(DEADLINE)


def test_many_at_once_after_a_kill(launchers: Launchers, plugin_bin: Path, running: Running) -> None:
    """After a SIGKILL amid unpacking, six starts at once all succeed on one tree, and the leftovers are gone."""
    program = install(launchers.first, plugin_bin)
    cache = cache_of(plugin_bin)
    killed = begin(running, program, "tell")
    wait_until(lambda: any(len(list(path.rglob("ballast-*"))) > 4 for path in cache.glob("*.part")), "half a tree")
    killed.kill()
    killed.wait(DEADLINE)
    assert [f"{trees(cache)[0].removesuffix('.part')}.part"] == trees(cache)

    processes = [begin(running, program, "tell") for _ in range(6)]
    told = [json.loads(process.communicate(timeout=DEADLINE)[0]) for process in processes]

    assert [process.pid for process in processes] == [entry["pid"] for entry in told]
    [name] = trees(cache)
    assert (cache / name / "version").read_text() == "first"


def test_sweeps_an_unused_older_tree(launchers: Launchers, plugin_bin: Path) -> None:
    """Another version's tree goes at the next start, if no process runs from it."""
    program = install(launchers.first, plugin_bin)
    tell(program)
    [old] = trees(cache_of(plugin_bin))

    tell(install(launchers.second, plugin_bin))

    [new] = trees(cache_of(plugin_bin))
    assert old != new
    assert [f"{new}.use", "lock"] == sorted(path.name for path in cache_of(plugin_bin).iterdir() if path.is_file())


def test_keeps_an_older_tree_in_use(launchers: Launchers, plugin_bin: Path, running: Running) -> None:
    """A tree that a process runs from stays, and goes when the process is gone."""
    old = begin(running, install(launchers.first, plugin_bin, "old"), "wait")
    assert old.stdout is not None
    old.stdout.readline()
    program = install(launchers.second, plugin_bin, "new")

    tell(program)
    assert len(trees(cache_of(plugin_bin))) == 2
    old.kill()
    old.wait(DEADLINE)
    tell(program)

    [name] = trees(cache_of(plugin_bin))
    assert (cache_of(plugin_bin) / name / "version").read_text() == "second"


def test_another_boot(launchers: Launchers, plugin_bin: Path) -> None:
    """After a reboot a tree that lost content is unpacked anew; a whole one is kept."""
    program = install(launchers.first, plugin_bin)
    tell(program)
    root = cache_of(plugin_bin) / trees(cache_of(plugin_bin))[0]

    (root / "boot").write_text("another")
    inode = (root / "version").stat().st_ino
    tell(program)
    assert inode == (root / "version").stat().st_ino

    (root / "boot").write_text("another")
    (root / "lib" / "ballast-3").write_bytes(b"")
    tell(program)
    assert (root / "lib" / "ballast-3").stat().st_size > 0


def lose(path: Path) -> None:
    """Remove a file, as a cleaner of temporary directories does."""
    path.unlink()


def empty(path: Path) -> None:
    """Take a file's content."""
    os.truncate(path, 0)


def replace(path: Path) -> None:
    """Put a link to an equal file in a file's place."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("damage", [lose, empty, replace])
@pytest.mark.parametrize("name", ["bin/rollouts-gwapi", "lib/ballast-3", "version"])
def test_a_damaged_tree(launchers: Launchers, plugin_bin: Path, name: str, damage: Callable[[Path], None]) -> None:
    """A tree that a file is missing from, or is shorter in, is unpacked anew by the next start, in the same boot."""
    program = install(launchers.first, plugin_bin)
    tell(program)
    [root] = cache_of(plugin_bin).glob("*/")
    before = (root / name).read_bytes()
    damage(root / name)

    told = tell(program)

    assert str(root / "main.pyc") in told["arguments"]
    assert before == (root / name).read_bytes()
    assert not (root / name).is_symlink()
    assert [root.name] == trees(cache_of(plugin_bin))


def test_a_loader_that_cannot_be_executed(launchers: Launchers, plugin_bin: Path, space: Space) -> None:
    """Damage that no size shows is found by the start after the one that fails."""
    install(launchers.first, plugin_bin)
    space.run("/plugin-bin/plugin", "tell")
    [root] = cache_of(plugin_bin, USER).glob("*/")
    loader = root / "bin" / "rollouts-gwapi"
    loader.write_bytes(bytes(loader.stat().st_size))

    failed = space.run("/plugin-bin/plugin", "tell")
    mended = space.run("/plugin-bin/plugin", "tell")

    assert (EXIT_NOT_RUNNABLE, "") == (failed.returncode, failed.stdout)
    assert "exec format error" in failed.stderr
    assert 0 == mended.returncode, mended.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [("noexec", "mounted noexec"), ("size=4m", "4 MiB free, 34 MiB needed"), ("ro", "read-only file system")],
)
def test_nowhere_to_unpack(launchers: Launchers, space: Space, options: str, reason: str) -> None:
    """Where no directory will do, the text names each with its reason and says what to mount; the exit code is 73."""
    space.description["files"] = {"/plugin": str(launchers.first)}
    space.description["binds"] = {}
    space.description["tmpfs"] = {TMP: f"mode=1777,{options}"}

    done = space.run("/plugin", "tell")

    assert done.returncode == EXIT_NO_DIRECTORY
    assert done.stdout == ""
    assert "/: " in done.stderr
    assert re.search(rf"{TMP}: [^;]*{reason}", done.stderr)
    assert "Mount an emptyDir" in done.stderr


def test_takes_the_next_directory(launchers: Launchers, space: Space, plugin_bin: Path) -> None:
    """A full plugin-bin is not the end: the tree goes to /tmp."""
    space.description["files"] = {"/bin/plugin": str(launchers.first)}
    space.description["tmpfs"] = {TMP: "mode=1777"}

    told = json.loads(space.run("/bin/plugin", "tell").stdout)

    assert any(f"{TMP}/.rollouts-gwapi-plugin-999/" in word for word in told["arguments"])
    assert trees(cache_of(plugin_bin, USER)) == []


def test_without_proc(launchers: Launchers, space: Space, plugin_bin: Path) -> None:
    """Without /proc the tree lies beside the executable all the same."""
    install(launchers.first, plugin_bin)
    space.description["proc"] = False

    done = space.run("/plugin-bin/plugin", "tell")

    assert "ROLLOUTS_GWAPI_PLUGIN_EXECUTABLE=/plugin-bin/plugin" in json.loads(done.stdout)["environment"], done.stderr
    assert len(trees(cache_of(plugin_bin, USER))) == 1


def test_foreign_directory(launchers: Launchers, space: Space, plugin_bin: Path) -> None:
    """A directory of our name that somebody else made is never executed from."""
    install(launchers.first, plugin_bin)
    cache = cache_of(plugin_bin, USER)
    cache.mkdir()
    os.chown(cache, 1000, 1000)

    done = space.run("/plugin-bin/plugin", "tell")

    assert done.returncode == EXIT_NO_DIRECTORY
    assert f"/plugin-bin/{cache.name} is not a directory of user {USER}" in done.stderr


def test_named_directory(launchers: Launchers, plugin_bin: Path, tmp_path: Path) -> None:
    """ROLLOUTS_GWAPI_PLUGIN_CACHE comes before all other places."""
    program = install(launchers.first, plugin_bin)
    (tmp_path / "named").mkdir()

    tell(program, environment={"ROLLOUTS_GWAPI_PLUGIN_CACHE": str(tmp_path / "named")})

    assert len(trees(cache_of(tmp_path / "named"))) == 1
    assert trees(cache_of(plugin_bin)) == []


def test_go_tests() -> None:
    """The launcher's own tests pass, and `go vet` and `gofmt` find nothing."""
    needs_go()
    for command in (["go", "vet", "./..."], ["go", "test", "./..."], ["gofmt", "-l", "."]):
        done = subprocess.run(command, cwd=LAUNCHER, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stdout if command[0] == "gofmt" else "") == (0, ""), done.stdout + done.stderr
