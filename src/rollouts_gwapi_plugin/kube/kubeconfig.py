"""A kubeconfig, read by the official package's loader: contexts, tokens, exec plugins, certificates, proxy (D27).

Takes the paths (several, as KUBECONFIG allows) and a context; returns a `ClusterConfig`. What the loader leaves to us:
its errors become ConfigErrors; an exec plugin's failure, which it only logs, becomes one, too; certificates and keys
that it writes to files are loaded and the files removed at once; a credential that ends is loaded anew. An
`auth-provider` user is refused: kubectl dropped most of them, and the loader asks an OIDC issuer without checking its
certificate, which D26 forbids.
"""

import logging
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import ENV_KUBECONFIG_PATH_SEPARATOR, KubeConfigLoader, KubeConfigMerger

from rollouts_gwapi_plugin.errors import ConfigError, cut
from rollouts_gwapi_plugin.kube.answers import one_line
from rollouts_gwapi_plugin.kube.auth import ClusterConfig, trusting
from rollouts_gwapi_plugin.kube.credentials import (
    TOKEN_READ_INTERVAL,
    Credentials,
    Loaded,
    NoCredentials,
    ReloadedCredentials,
)
from rollouts_gwapi_plugin.kube.deadline import REAL_TIME, Timing

# An exec plugin may open a browser for a person to log in; a call that waits for one is lost anyway.
LOAD_TIMEOUT = 120.0
# Ask again this long before a credential ends: a request under way and a clock that differs need some of it.
EXPIRY_MARGIN = 30.0
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True)
class _Source:
    """A kubeconfig and the context asked for, with the text that names it in messages."""

    paths: str
    context: str | None
    title: str
    timing: Timing = REAL_TIME

    def wrong(self, problem: object) -> ConfigError:
        return ConfigError(f"{self.title} can't be used: {one_line(str(problem))}")


@dataclass(frozen=True)
class _Selected:
    """The parts of a kubeconfig that the context selects."""

    merged: Any
    context: str
    namespace: str
    user: dict[str, Any]
    impersonate: tuple[tuple[str, str], ...] = ()


def load_kubeconfig(
    paths: str, context: str | None, *, named_by: str = "", timing: Timing = REAL_TIME
) -> ClusterConfig:
    """Return the way to the API server that a kubeconfig describes.

    Args:
        paths: One file, or several as in KUBECONFIG.
        context: A context, or None for the current one.
        named_by: Where the paths come from, for messages.
        timing: The clock by which credentials end.

    Raises:
        ConfigError: A file is missing, unreadable or no kubeconfig; an unknown context; a missing certificate; an exec
            plugin that fails.
    """
    by = f" (from {named_by})" if named_by else ""
    source = _Source(paths, context, f"kubeconfig {paths}{by}", timing)
    selected = _select(source)
    loaded, configuration, context_tls = _load(source, selected)
    server = str(configuration.host or "")
    address = urlsplit(server)
    is_web = address.scheme in {"http", "https"}
    # A user and password would not be sent, and the address stands in messages. Without a scheme it has no netloc.
    if "@" in (address.netloc if is_web else server):
        raise source.wrong(
            f"the server of context {selected.context!r} holds a user or a password in its address; give them as "
            "username and password of the user"
        )
    if not is_web:
        raise source.wrong(f"the server {server!r} of context {selected.context!r} is no http or https address")
    return ClusterConfig(
        server=server,
        credentials=_credentials(source, selected, loaded, context_tls),
        ssl_context=context_tls,
        tls_server_name=configuration.tls_server_name or "",
        proxy_url=_proxy(configuration, selected),
        namespace=selected.namespace,
        impersonate=selected.impersonate,
        source=f"{source.title}, context {selected.context}",
    )


def _select(source: _Source) -> _Selected:
    """Read the files and pick the context."""
    merged = _merge(source)
    with _loader_errors(source):
        names = [entry["name"] for entry in merged.value.get("contexts") or []]
        context = source.context or merged.value.get("current-context") or ""
        if not context:
            raise source.wrong(f"it has no current-context; name one of: {', '.join(names) or 'none there'}")
        if context not in names:
            raise source.wrong(f"it has no context {context!r}, but: {', '.join(names) or 'none'}")
        chosen = merged["contexts"].get_with_name(context).value["context"]
        users = merged["users"] if merged.value.get("users") else None
        user = users.get_with_name(chosen.get("user"), safe=True) if users and chosen.get("user") else None
        if chosen.get("user") and user is None:
            raise source.wrong(f"context {context!r} names the user {chosen['user']!r}, which it has not")
        entry = (user.value.get("user") if user else None) or {}
    if "auth-provider" in entry:
        raise source.wrong(
            f"user {chosen['user']!r} has an auth-provider; use an exec plugin instead (for OIDC: kubelogin)"
        )
    with _loader_errors(source):
        cluster = merged["clusters"].get_with_name(chosen["cluster"]).value["cluster"]
        _check_insecure(source, cluster.get("insecure-skip-tls-verify", False))
        impersonate = _impersonation(source, entry)
        for name in ("username", "password"):
            if isinstance(entry.get(name), str):
                # The loader sends Latin-1, kubectl UTF-8.
                entry[name] = entry[name].encode().decode("latin-1")
    return _Selected(merged, context, chosen.get("namespace") or "default", entry, impersonate)


def _impersonation(source: _Source, user: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the headers of another user's rights, which the loader passes over: we would act with larger ones."""
    if user.get("as-user-extra"):
        raise source.wrong("its user has as-user-extra, which can't be sent; leave it out")
    names = [("Impersonate-User", user.get("as")), ("Impersonate-Uid", user.get("as-uid"))]
    names += [("Impersonate-Group", group) for group in user.get("as-groups") or []]
    headers = tuple((header, value) for header, value in names if value)
    if not all(isinstance(value, str) and value.isprintable() for _, value in headers):
        raise source.wrong("as, as-uid or as-groups of its user is no text that an HTTP header can carry")
    if headers and not user.get("as"):
        raise source.wrong("its user has as-uid or as-groups, but no as, without which they mean nothing")
    return headers


def _check_insecure(source: _Source, value: object) -> None:
    # The loader asks whether the value is empty, and `"false"`, in quotes, is not: the check would be off (D26).
    if not isinstance(value, bool):
        raise source.wrong(f"insecure-skip-tls-verify is {cut(repr(value))}, which is no true or false")


def _merge(source: _Source) -> Any:
    with _loader_errors(source):
        paths = [Path(path).expanduser() for path in source.paths.split(ENV_KUBECONFIG_PATH_SEPARATOR) if path]
        if not any(path.exists() for path in paths):
            raise source.wrong("there is no such file")
        merged = KubeConfigMerger(source.paths).config  # type: ignore[no-untyped-call]  # ships no types
        if merged is None or not isinstance(merged.value, dict):
            raise source.wrong("it is empty")
        return merged


@contextmanager
def _loader_errors(source: _Source) -> Iterator[None]:
    """Turn what the loader raises for files that are not as it expects into a ConfigError."""
    try:
        yield
    except ConfigException as error:
        raise source.wrong(error) from error
    # A RuntimeError: `~` where there is no home.
    except (OSError, RuntimeError) as error:
        raise source.wrong(error) from error
    except yaml.YAMLError as error:
        # The text of a YAML error quotes the file, which may hold a token: only the place is told.
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark else ""
        raise source.wrong(f"it is not YAML{place}") from error
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise source.wrong(f"it has not the shape of a kubeconfig ({type(error).__name__})") from error


def _load(
    source: _Source, selected: _Selected, into: ssl.SSLContext | None = None
) -> tuple[Loaded, Any, ssl.SSLContext | None]:
    """Run the loader; return the credential, the loader's settings, and the TLS context with what it says."""
    with _loader_errors(source), tempfile.TemporaryDirectory(prefix="kubeconfig-") as folder:
        loader = KubeConfigLoader(  # type: ignore[no-untyped-call]  # ships no types
            config_dict=selected.merged, active_context=selected.context, config_base_path=None, temp_file_path=folder
        )
        configuration = Configuration()
        problems = _bounded(source, partial(loader.load_and_set, configuration))
        authorization = str(configuration.api_key.get("BearerToken", ""))
        if "tokenFile" in selected.user:
            # Most ways to write a file end it with a line break.
            scheme, _, value = authorization.partition(" ")
            authorization = f"{scheme} {value.strip()}".strip()
            if authorization in {"", "Bearer"}:
                raise source.wrong("its token file is empty")
        if "exec" in selected.user and not authorization and not configuration.cert_file:
            raise source.wrong(f"its exec plugin gave no credential: {problems or 'nothing was said'}")
        if not authorization.isprintable():
            raise source.wrong("its token has characters that no HTTP header can carry")
        context = into
        if str(configuration.host).startswith("https:"):
            context = _tls(source, configuration, into)
        return Loaded(authorization, _good_until(source, selected, loader)), configuration, context


def _bounded(source: _Source, load: Callable[[], object]) -> str:
    """Run the loader in a thread, since an exec plugin may never end; return what it logged as errors."""
    outcome: list[Exception] = []
    collected: list[str] = []

    def run() -> None:
        try:
            with _collected_log(collected):
                load()
        except Exception as error:  # noqa: BLE001 - carried to the caller's thread, and raised there
            outcome.append(error)

    thread = threading.Thread(target=run, name="kubeconfig", daemon=True)
    thread.start()
    thread.join(LOAD_TIMEOUT)
    if thread.is_alive():
        raise source.wrong(f"its exec plugin did not end in {LOAD_TIMEOUT:g} s")
    if outcome:
        raise outcome[0]
    return "; ".join(collected)


@contextmanager
def _collected_log(collected: list[str]) -> Iterator[None]:
    """Collect what the loader logs as errors in this thread: it tells an exec plugin's failure nowhere else."""
    thread = threading.get_ident()

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                collected.append(record.getMessage())

    handler = Collector(logging.ERROR)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _tls(source: _Source, configuration: Any, into: ssl.SSLContext | None) -> ssl.SSLContext:
    """Return a context with the CAs, the client certificate, and the check left out only if the file says so."""
    context = into or trusting(configuration.ssl_ca_cert, named_by=source.title)
    if configuration.verify_ssl is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        try:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
        except (OSError, ssl.SSLError) as error:
            raise source.wrong(f"its client certificate or key: {error.strerror or error}") from error
    return context


def _good_until(source: _Source, selected: _Selected, loader: Any) -> float | None:
    """Return the moment of the clock at which the credential is to be loaded anew."""
    if "tokenFile" in selected.user and "token" not in selected.user:
        return source.timing.clock() + TOKEN_READ_INTERVAL
    # The loader has this attribute only after an exec plugin said when its credential ends.
    expiry = getattr(loader, "expiry", None)
    if not isinstance(expiry, datetime):
        return None
    return source.timing.clock() + max(1.0, (expiry - datetime.now(UTC)).total_seconds() - EXPIRY_MARGIN)


def _credentials(source: _Source, selected: _Selected, loaded: Loaded, context: ssl.SSLContext | None) -> Credentials:
    if not loaded.authorization and loaded.good_until is None and "exec" not in selected.user:
        return NoCredentials()

    def load() -> Loaded:
        # A new certificate goes into the context that the connections use, so that new ones present it.
        return _load(source, _select(source), context)[0]

    return ReloadedCredentials(loaded, load, timing=source.timing)


def _proxy(configuration: Any, selected: _Selected) -> str:
    """Return the cluster's proxy-url, else the environment's proxy unless NO_PROXY or loopback: as kubectl does."""
    cluster_name = selected.merged["contexts"].get_with_name(selected.context).value["context"]["cluster"]
    cluster = selected.merged["clusters"].get_with_name(cluster_name).value["cluster"]
    if cluster.get("proxy-url"):
        return str(cluster["proxy-url"])
    parts = urlsplit(configuration.host)
    proxies = getproxies()
    if parts.hostname in _LOOPBACK or should_bypass_proxies(configuration.host, proxies.get("no", "")):
        return ""
    return proxies.get(parts.scheme, "")
