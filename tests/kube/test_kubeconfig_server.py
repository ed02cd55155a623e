"""The server of a kubeconfig: a user and a password in it are refused and not quoted (D26)."""

import json
from pathlib import Path

import pytest

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube.kubeconfig import load_kubeconfig


def write(path: Path, server: str) -> str:
    """Write a kubeconfig with this server and return its path."""
    content = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
    }
    path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.parametrize(
    "server",
    ["https://bot:s3cr3t@api:6443", "http://s3cr3t@api", "ftp://bot:s3cr3t@api", "bot:s3cr3t@api:6443"],
)
def test_a_password_in_the_address_is_refused_and_not_quoted(tmp_path: Path, server: str) -> None:
    """With each scheme and without one, the message says where the password belongs, and not what it is."""
    with pytest.raises(errors.ConfigError, match="holds a user or a password in its address") as caught:
        load_kubeconfig(write(tmp_path / "config", server), None)

    assert "s3cr3t" not in str(caught.value)


def test_an_at_sign_in_the_path_is_no_user(tmp_path: Path) -> None:
    """Behind the host it is a character as others."""
    server = "https://api:6443/clusters/a@b"

    assert load_kubeconfig(write(tmp_path / "config", server), None).server == server
