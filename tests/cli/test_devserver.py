"""`devserver` as a process: what it prints, serves, writes and says when it can't start."""

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

_ROUTE = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec: {rules: [{backendRefs: [{name: a, port: 80}]}]}
"""
_COMMAND = [sys.executable, "-m", "rollouts_gwapi_plugin", "devserver"]


@contextmanager
def _running(*arguments: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    with subprocess.Popen(
        [*_COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_the_files_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    """It prints its URL, serves the objects of its files, and ends with 0 on either signal."""
    file = tmp_path / "objects.yaml"
    file.write_text(_ROUTE, encoding="utf-8")
    with _running(str(tmp_path)) as (url, process):
        path = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/web"
        with urllib.request.urlopen(url + path, timeout=10) as answer:  # noqa: S310 - the URL is the server's
            route = json.load(answer)
        process.send_signal(number)

        assert process.wait(10) == 0
    assert route["spec"]["rules"][0]["backendRefs"][0]["weight"] == 1


def test_kubeconfig_is_for_the_owner_only(tmp_path: Path) -> None:
    """The kubeconfig has server, certificate and a token, and nobody else can read it."""
    target = tmp_path / "kubeconfig"
    with _running("--tls", "--kubeconfig-out", str(target)) as (url, _):
        config = yaml.safe_load(target.read_text(encoding="utf-8"))

    cluster = config["clusters"][0]["cluster"]
    assert (cluster["server"], url[:8]) == (url, "https://")
    assert cluster["certificate-authority-data"]
    assert config["users"][0]["user"]["token"]
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "is not YAML"),
        ("just: text", "it has no kind"),
        ("{apiVersion: v1, kind: Nothing, metadata: {name: a}}", "no kind 'Nothing' is served at 'v1'"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: A}}", 'ConfigMap "A" is invalid'),
    ],
)
def test_bad_files_are_told(tmp_path: Path, text: str, expected: str) -> None:
    """A file that can't be served ends the command with one line that says why."""
    file = tmp_path / "objects.yaml"
    file.write_text(text, encoding="utf-8")

    done = subprocess.run([*_COMMAND, str(file)], check=False, capture_output=True, text=True, timeout=30)

    assert done.returncode == 1
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_files_are_read_as_by_the_other_commands(tmp_path: Path) -> None:
    """In a folder JSON is read, too, and what is no object is passed over; a date is a text, as for the API."""
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "json"}}
    (tmp_path / "a.json").write_text(json.dumps(value), encoding="utf-8")
    (tmp_path / "values.yaml").write_text("replicas: 3", encoding="utf-8")
    date = "{apiVersion: v1, kind: ConfigMap, metadata: {name: dated}, data: {since: 2026-01-02}}"
    (tmp_path / "dated.yaml").write_text(date, encoding="utf-8")

    path = "/api/v1/namespaces/default/configmaps"
    with (
        _running(str(tmp_path)) as (url, process),
        urllib.request.urlopen(url + path, timeout=10) as answer,  # noqa: S310 - the URL is the server's
    ):
        found = json.load(answer)["items"]
        assert process.stderr is not None
        assert process.stderr.readline() == f"{tmp_path / 'values.yaml'}: passed over, no object\n"

    assert {one["metadata"]["name"]: one.get("data") for one in found} == {
        "dated": {"since": "2026-01-02"},
        "json": None,
    }


@pytest.mark.parametrize(
    ("option", "value", "code", "expected"),
    [
        ("--port", "99999", 2, "99999 is not in the range 0<=x<=65535"),
        ("--port", "-1", 2, "-1 is not in the range 0<=x<=65535"),
        ("--kubeconfig-out", "/nowhere/kubeconfig", 1, "can't write /nowhere/kubeconfig: No such file or directory"),
    ],
)
def test_bad_options_are_told(option: str, value: str, code: int, expected: str) -> None:
    """What can't be listened on, or written to, is one line."""
    done = subprocess.run([*_COMMAND, option, value], check=False, capture_output=True, text=True, timeout=30)

    assert done.returncode == code
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
