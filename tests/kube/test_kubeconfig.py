"""Kubeconfigs through the official loader: who we are (where we go is `test_kubeconfig_network.py`).

Matrix: token, token file, basic, client certificate inline and as file, exec v1 (token, certificate, expiry, failure,
never ends), auth-provider; contexts; several files; broken files.
"""

import base64
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube import kubeconfig as module
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.kubeconfig import load_kubeconfig
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS

Connect = Callable[..., KubeClient]
EXEC_API = "client.authentication.k8s.io/v1"
NO_ADDRESS = """
current-context: a
contexts: [{name: a, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: x}}]
"""


def write(path: Path, user: dict[str, Any] | None, cluster: dict[str, Any], **extra: Any) -> str:
    """Write a kubeconfig of one context and return its path; JSON is YAML."""
    content: dict[str, Any] = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", **({} if user is None else {"user": "u"})}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [] if user is None else [{"name": "u", "user": user}],
        **extra,
    }
    path.write_text(json.dumps(content))
    return str(path)


def inline(path: Path) -> str:
    """Return a file's content as a kubeconfig has it inline."""
    return base64.b64encode(path.read_bytes()).decode()


def exec_user(folder: Path, program: str, **extra: Any) -> dict[str, Any]:
    """Return a user whose credential a Python program of these lines prints."""
    script = folder / "plugin.py"
    script.write_text(program)
    return {"exec": {"apiVersion": EXEC_API, "command": sys.executable, "args": [str(script)], **extra}}


def ask(client: KubeClient) -> dict[str, Any]:
    """Ask for one object."""
    return client.get(CONFIG_MAPS, "a", "b", deadline=Deadline.after(10))


@pytest.fixture
def tls_api(start_api: Any, authority: Any) -> Any:
    """Start an API server with TLS that asks for a client certificate."""
    server = start_api(authority.server_context("127.0.0.1", ask_client=True))
    server.add("/api/v1/namespaces/a/configmaps/b", {"metadata": {"name": "b"}})
    return server


@pytest.fixture
def some_api(api: Any) -> Any:
    """Start an API server without TLS that has one object."""
    api.add("/api/v1/namespaces/a/configmaps/b", {"metadata": {"name": "b"}})
    return api


def test_context_is_chosen(tmp_path: Path) -> None:
    """The named context wins over the current one, and brings its namespace."""
    extra = {
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "other", "context": {"cluster": "d", "user": "u", "namespace": "shop"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "http://one/"}},
            {"name": "d", "cluster": {"server": "http://two"}},
        ],
    }
    path = write(tmp_path / "config", {"token": "t"}, {}, **extra)
    found = [load_kubeconfig(path, None), load_kubeconfig(path, "other")]

    assert [(config.server, config.namespace) for config in found] == [
        ("http://one", "default"),
        ("http://two", "shop"),
    ]
    assert found[1].source == f"kubeconfig {path}, context other"


def test_several_files_are_merged(tmp_path: Path) -> None:
    """KUBECONFIG may name several files; missing ones are left out, as kubectl does."""
    first = tmp_path / "first"
    first.write_text(json.dumps({"current-context": "main", "contexts": [], "clusters": [], "users": []}))
    second = write(tmp_path / "second", {"token": "t"}, {"server": "http://two"})

    assert load_kubeconfig(f"{first}:{tmp_path}/missing:{second}", None).server == "http://two"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        ("", "empty"),
        ("- a", "it has not the shape of a kubeconfig"),
        ("a: [secret: x", "it is not YAML at line 1"),
        ("contexts: 5", "it has not the shape of a kubeconfig"),
        ("{}", "it has no current-context; name one of: none there"),
        ("current-context: x\ncontexts: [{name: a, context: {cluster: c}}]", "it has no context 'x', but: a"),
        ("current-context: a\ncontexts: [{name: a, context: {cluster: c}}]", "[Ee]xpected"),
        (
            "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]",
            "context 'a' names the user 'u', which it has not",
        ),
        (
            NO_ADDRESS,
            "the server 'x' of context 'a' is no http or https address",
        ),
    ],
)
def test_broken_file_is_a_clear_error(tmp_path: Path, content: str | None, message: str) -> None:
    """Whatever is wrong with a file, the error names the file and the fault, and shows no secret."""
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(errors.ConfigError, match=message) as caught:
        load_kubeconfig(str(path), None, named_by="KUBECONFIG")

    assert f"kubeconfig {path} (from KUBECONFIG)" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_token_that_no_header_can_carry_is_refused(tmp_path: Path) -> None:
    """A token with a line break is an error that does not show it."""
    path = write(tmp_path / "config", {"token": "secret\nX-Other: 1"}, {"server": "http://x"})
    with pytest.raises(errors.ConfigError, match="its token has characters that no HTTP header can carry") as caught:
        load_kubeconfig(path, None)

    assert "secret" not in str(caught.value)


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    """A folder in place of the file is an error of the file, not of us."""
    with pytest.raises(errors.ConfigError, match="Is a directory"):
        load_kubeconfig(str(tmp_path), None)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"tokenFile": "token"}, "Bearer from-file"),
        ({"username": "a", "password": "b"}, "Basic YTpi"),
        (None, None),
        ({}, None),
    ],
)
def test_user_becomes_a_header(
    tmp_path: Path, some_api: Any, connect: Connect, user: dict[str, Any] | None, expected: str | None
) -> None:
    """Each kind of user is sent as the header it means; a relative token file is beside the kubeconfig."""
    (tmp_path / "token").write_text("from-file")
    config = load_kubeconfig(write(tmp_path / "config", user, {"server": some_api.url}), None)
    ask(connect(config))

    assert some_api.requests[0].headers.get("authorization") == expected


@pytest.mark.parametrize("content", ["from-file\n", " from-file\r\n\n"])
def test_a_token_file_may_end_with_a_line_break(tmp_path: Path, some_api: Any, connect: Connect, content: str) -> None:
    """White space around the token of a file is no part of it, as in kubectl."""
    (tmp_path / "token").write_text(content)
    ask(connect(load_kubeconfig(write(tmp_path / "config", {"tokenFile": "token"}, {"server": some_api.url}), None)))

    assert some_api.requests[0].headers["authorization"] == "Bearer from-file"


@pytest.mark.parametrize("content", ["", "\n"])
def test_an_empty_token_file_is_told(tmp_path: Path, content: str) -> None:
    """A token file without a token is an error: we never go on without a credential."""
    (tmp_path / "token").write_text(content)
    with pytest.raises(errors.ConfigError, match="its token file is empty"):
        load_kubeconfig(write(tmp_path / "config", {"tokenFile": "token"}, {"server": "http://x"}), None)


def test_the_rights_of_another_user_are_asked_for(tmp_path: Path, some_api: Any, connect: Connect) -> None:
    """as, as-uid and as-groups are sent as kubectl sends them: a header each, in UTF-8, beside our own credential."""
    user = {"token": "t", "as": "böb", "as-uid": "7", "as-groups": ["dev", "ops"]}
    ask(connect(load_kubeconfig(write(tmp_path / "config", user, {"server": some_api.url}), None)))
    sent = [(name, value) for name, value in some_api.requests[0].header_lines if name.startswith("Impersonate-")]

    assert sent == [
        ("Impersonate-User", "böb".encode().decode("latin-1")),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
    ]
    assert some_api.requests[0].headers["authorization"] == "Bearer t"


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"as": "bob", "as-user-extra": {"scopes": ["a"]}}, "as-user-extra"),
        ({"as-groups": ["dev"]}, "but no as"),
        ({"as-uid": "7"}, "but no as"),
        ({"as": "bob\nX-Other: 1"}, "no text that an HTTP header can carry"),
        ({"as": 5}, "no text that an HTTP header can carry"),
        ({"as": "bob", "as-groups": 5}, "not the shape"),
    ],
)
def test_rights_that_can_not_be_asked_for_are_refused(tmp_path: Path, user: dict[str, Any], message: str) -> None:
    """What of another user's rights can't be sent is an error, since without it we would have larger ones."""
    with pytest.raises(errors.ConfigError, match=message):
        load_kubeconfig(write(tmp_path / "config", user, {"server": "http://x"}), None)


def test_refused_token_file_is_read_again(tmp_path: Path, some_api: Any, connect: Connect, reply: Any) -> None:
    """A token file that was rotated is read after a 401."""
    token = tmp_path / "token"
    token.write_text("old")
    config = load_kubeconfig(write(tmp_path / "config", {"tokenFile": str(token)}, {"server": some_api.url}), None)
    some_api.responder = lambda it: None if it.headers["authorization"] == "Bearer new" else reply(401)
    token.write_text("new")

    assert ask(connect(config))["metadata"]["name"] == "b"


@pytest.mark.parametrize("as_file", [True, False])
def test_client_certificate(tmp_path: Path, tls_api: Any, authority: Any, connect: Connect, *, as_file: bool) -> None:
    """A client certificate, inline or as a file, is presented; the CA beside it checks the server."""
    certificate, key = authority.issue("developer", [])
    suffix, value = ("", str) if as_file else ("-data", inline)
    user = {f"client-certificate{suffix}": value(certificate), f"client-key{suffix}": value(key)}
    cluster = {"server": tls_api.url, f"certificate-authority{suffix}": value(authority.ca_file)}
    ask(connect(load_kubeconfig(write(tmp_path / "config", user, cluster), None)))

    assert tls_api.requests[0].client_certificate == "developer"


def test_keys_do_not_stay_in_temporary_files(tmp_path: Path, authority: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the loader writes to files to load it, keys among it, is gone when it is loaded."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    certificate, key = authority.issue("developer", [])
    user = {"client-certificate-data": inline(certificate), "client-key-data": inline(key)}
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": inline(authority.ca_file)}
    for _ in range(2):
        load_kubeconfig(write(tmp_path / "config", user, cluster), None)

    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("field", ["certificate-authority", "client-certificate", "client-key"])
def test_missing_certificate_file_is_named(tmp_path: Path, authority: Any, field: str) -> None:
    """A file that the kubeconfig names and that is not there is an error with its path."""
    certificate, key = authority.issue("developer", [])
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    cluster = {"server": "https://x", "certificate-authority": str(authority.ca_file)}
    (cluster if field in cluster else user)[field] = "gone.pem"
    with pytest.raises(errors.ConfigError, match=r"gone\.pem"):
        load_kubeconfig(write(tmp_path / "config", user, cluster), None)


def test_key_of_another_certificate_is_told(tmp_path: Path, authority: Any) -> None:
    """A key that does not fit is an error of the kubeconfig."""
    certificate, _ = authority.issue("developer", [])
    _, key = authority.issue("other", [])
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    cluster = {"server": "https://x", "certificate-authority": str(authority.ca_file)}
    with pytest.raises(errors.ConfigError, match="its client certificate or key"):
        load_kubeconfig(write(tmp_path / "config", user, cluster), None)


def test_exec_plugin_gives_a_token(tmp_path: Path, some_api: Any, connect: Connect) -> None:
    """An exec plugin of v1 is run with its environment and the cluster's data, and its token is sent."""
    program = f"""
import json, os
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
token = os.environ["FLAVOUR"] + "-" + info["kind"] + "-" + info["spec"]["cluster"]["server"][:4]
print(json.dumps({{"apiVersion": "{EXEC_API}", "kind": "ExecCredential", "status": {{"token": token}}}}))
"""
    user = exec_user(tmp_path, program, env=[{"name": "FLAVOUR", "value": "sweet"}], provideClusterInfo=True)
    ask(connect(load_kubeconfig(write(tmp_path / "config", user, {"server": some_api.url}), None)))

    assert some_api.requests[0].headers["authorization"] == "Bearer sweet-ExecCredential-http"


def counting_program(folder: Path, status: str) -> str:
    """Return a plugin that counts its runs in a file; `runs` is the count in the status expression."""
    return f"""
import datetime, json, pathlib
path = pathlib.Path({str(folder / "runs")!r})
runs = int(path.read_text()) + 1 if path.exists() else 1
path.write_text(str(runs))
def at(seconds):
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
print(json.dumps({{"apiVersion": "{EXEC_API}", "kind": "ExecCredential", "status": {status}}}))
"""


def test_exec_token_is_kept_until_it_ends_or_is_refused(
    tmp_path: Path, some_api: Any, connect: Connect, reply: Any
) -> None:
    """The plugin is run once for many calls, and again after a 401."""
    program = counting_program(tmp_path, '{"token": f"t{runs}", "expirationTimestamp": at(3600)}')
    client = connect(
        load_kubeconfig(write(tmp_path / "c", exec_user(tmp_path, program), {"server": some_api.url}), None)
    )
    ask(client)
    ask(client)
    some_api.script.append(reply(401))
    ask(client)
    sent = [request.headers["authorization"] for request in some_api.requests]

    assert sent == ["Bearer t1", "Bearer t1", "Bearer t1", "Bearer t2"]


def test_exec_token_that_ends_is_asked_for_again(
    tmp_path: Path, some_api: Any, connect: Connect, fake_time: Any
) -> None:
    """A credential near its end is replaced before a request."""
    program = counting_program(tmp_path, '{"token": f"t{runs}", "expirationTimestamp": at(3600)}')
    path = write(tmp_path / "config", exec_user(tmp_path, program), {"server": some_api.url})
    client = connect(load_kubeconfig(path, None, timing=fake_time.timing))
    for seconds in (3500, 100):
        fake_time.sleep(seconds)
        ask(client)
    sent = [request.headers["authorization"] for request in some_api.requests]

    assert sent == ["Bearer t1", "Bearer t2"]


def test_exec_plugin_gives_a_certificate(
    tmp_path: Path, tls_api: Any, authority: Any, connect: Connect, reply: Any
) -> None:
    """An exec plugin may give a client certificate; after a 401 a new one is presented on a new connection."""
    for name in ("first", "second"):
        authority.issue(name, [])
    status = (
        '(lambda name: {"clientCertificateData": name.with_suffix(".crt").read_text(), '
        '"clientKeyData": name.with_suffix(".key").read_text()})'
        f"(pathlib.Path({str(tmp_path)!r}) / ['first', 'second'][min(runs, 2) - 1])"
    )
    user = exec_user(tmp_path, counting_program(tmp_path, status))
    cluster = {"server": tls_api.url, "certificate-authority": str(authority.ca_file)}
    client = connect(load_kubeconfig(write(tmp_path / "config", user, cluster), None))
    ask(client)
    tls_api.script.append(reply(401))
    ask(client)

    assert [request.client_certificate for request in tls_api.requests] == ["first", "first", "second"]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; sys.exit('no session: run login')", "no session: run login"),
        ("print('garbage')", "failed to decode process output"),
        ("print('{}')", "missing key"),
        (
            f'print(\'{{"apiVersion": "{EXEC_API}", "kind": "ExecCredential", "status": {{}}}}\')',
            "missing token or clientCertificateData",
        ),
    ],
)
def test_exec_plugin_that_fails_is_told(tmp_path: Path, program: str, message: str) -> None:
    """A plugin that fails is an error with its own words: we never go on without a credential."""
    path = write(tmp_path / "config", exec_user(tmp_path, program), {"server": "http://x"})
    with pytest.raises(errors.ConfigError, match=f"its exec plugin gave no credential: .*{message}"):
        load_kubeconfig(path, None)


def test_exec_plugin_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that hangs costs the named limit."""
    monkeypatch.setattr(module, "LOAD_TIMEOUT", 0.2)
    path = write(tmp_path / "config", exec_user(tmp_path, "import time; time.sleep(3)"), {"server": "http://x"})
    started = time.monotonic()
    with pytest.raises(errors.ConfigError, match=r"did not end in 0\.2 s"):
        load_kubeconfig(path, None)

    assert time.monotonic() - started < 2


def test_auth_provider_is_refused(tmp_path: Path) -> None:
    """An auth-provider is refused with the way out: the loader would ask an OIDC issuer unchecked (D26)."""
    path = write(tmp_path / "config", {"auth-provider": {"name": "oidc"}}, {"server": "http://x"})
    with pytest.raises(errors.ConfigError, match="use an exec plugin instead"):
        load_kubeconfig(path, None)
