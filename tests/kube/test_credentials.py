"""The Authorization header follows its source."""

import threading
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.kube.credentials import Loaded, NoCredentials, ReloadedCredentials, TokenFile


def test_token_is_read_again_after_a_minute(tmp_path: Path, fake_time: Any) -> None:
    """A rotated token is used a minute after the last read at the latest, and not read more often."""
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = TokenFile(path, timing=fake_time.timing)
    path.write_text("two\n")
    fake_time.sleep(59)
    early = credentials.authorization()
    fake_time.sleep(1)

    assert (early, credentials.authorization()) == ("Bearer one", "Bearer two")


def test_refused_token_is_read_again_at_once(tmp_path: Path, fake_time: Any) -> None:
    """After a 401 the file is read without waiting for the minute."""
    path = tmp_path / "token"
    path.write_text("one")
    credentials = TokenFile(path, timing=fake_time.timing)
    path.write_text("two")
    credentials.refused("Bearer one")

    assert credentials.authorization() == "Bearer two"


def test_unreadable_token_keeps_the_old_one(tmp_path: Path, fake_time: Any) -> None:
    """While the kubelet swaps the file, the token read before is used."""
    path = tmp_path / "token"
    path.write_text("one")
    credentials = TokenFile(path, timing=fake_time.timing)
    path.unlink()
    fake_time.sleep(61)

    assert credentials.authorization() == "Bearer one"


@pytest.mark.parametrize("content", [b"", b"   \n", b"two\nlines", b"\xff\xfe", b"x" * 70_000])
def test_what_is_no_token_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file that holds no token is a ConfigError that names the file and not its content."""
    path = tmp_path / "token"
    path.write_bytes(content)

    with pytest.raises(ConfigError, match=rf"{path} holds \d+ bytes that are not a token"):
        TokenFile(path)


def test_missing_token_file_is_named(tmp_path: Path) -> None:
    """A missing file is a ConfigError that names it."""
    with pytest.raises(ConfigError, match=r"none can't be read: No such file"):
        TokenFile(tmp_path / "none")


def test_loaded_credential_is_loaded_again_when_it_ends(fake_time: Any) -> None:
    """A credential with an end is asked for again then, and not before."""
    loads = iter([Loaded("Bearer b", fake_time.now + 200), Loaded("Bearer c", None)])
    credentials = ReloadedCredentials(
        Loaded("Bearer a", fake_time.now + 100), lambda: next(loads), timing=fake_time.timing
    )
    seen = []
    for _ in range(4):
        seen.append(credentials.authorization())
        fake_time.sleep(75)

    assert seen == ["Bearer a", "Bearer a", "Bearer b", "Bearer c"]


def test_threads_that_were_refused_together_load_once() -> None:
    """Many 401s to one header cause one new load."""
    loads: list[int] = []

    def load() -> Loaded:
        loads.append(1)
        return Loaded(f"Bearer {len(loads)}")

    credentials = ReloadedCredentials(Loaded("Bearer 0"), load)
    threads = [threading.Thread(target=credentials.refused, args=("Bearer 0",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert (loads, credentials.authorization()) == ([1], "Bearer 1")


def test_no_credentials_send_no_header() -> None:
    """Without credentials there is no header, also after a refusal."""
    credentials = NoCredentials()
    credentials.refused("")

    assert credentials.authorization() == ""


def test_secrets_are_not_in_a_repr(tmp_path: Path) -> None:
    """What a log or a traceback may show of credentials holds no token."""
    path = tmp_path / "token"
    path.write_text("secret-token")
    shown = repr([TokenFile(path), Loaded("Bearer secret-token"), ReloadedCredentials(Loaded("secret-token"), list)])  # type: ignore[arg-type]  # never loaded

    assert "secret-token" not in shown
