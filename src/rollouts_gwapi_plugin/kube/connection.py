"""One HTTP exchange with the API server: bytes out, an `Answer` or `Lost` back. All of urllib3 is behind this module.

Keeps connections open between calls, from any number of threads. Never repeats, never follows a redirect, never waits
longer than it was told (`kube.timed`); only the look-up of the server's name takes what the system takes, and each of
several addresses has its own time to accept. What went wrong on the way is a `Lost`, which says whether asking again
can help. A certificate that is not trusted is tried once more where the CAs were renewed: nothing was sent by then.
"""

import logging
import socket
import ssl
import threading
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3 import exceptions
from urllib3.util import make_headers

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.kube.answers import Answer, one_line
from rollouts_gwapi_plugin.kube.auth import ClusterConfig, trusting
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.timed import POOLS, keeping_to
from rollouts_gwapi_plugin.log import get_logger

# The host calls from ten workers, verification polls beside them; more connections than this are made, not kept.
KEPT_CONNECTIONS = 16
# An API server in the same network accepts in milliseconds; three seconds leave room for one lost SYN.
CONNECT_TIMEOUT = 3.0
# An object is 1.5 MiB at most (etcd), a list of routes a few MiB, the OpenAPI document of a group 1-2 MiB.
MAX_RESPONSE_BYTES = 32 * 1024 * 1024
_CHUNK = 256 * 1024
# A balancer between may forget a quiet connection without a word: probes keep it known, or find out after a minute.
_SOCKET_OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # macOS has no TCP_KEEPIDLE; there the next line wins, and the idle time stays the system's.
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPIDLE", socket.TCP_KEEPINTVL), 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]

log = get_logger()
# What its log says (a full pool, a retry) is told by us in errors, or of no use; standard error is the host's log.
logging.getLogger("urllib3").setLevel(logging.CRITICAL)


class Lost(Exception):  # noqa: N818 - not an error of ours: the caller decides what it means
    """No whole answer came; `again` says whether a second try can end otherwise."""

    def __init__(self, reason: str, *, again: bool = True) -> None:
        super().__init__(reason)
        self.again = again


class Connections:
    """The kept-open connections to one API server."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._server = config.server.rstrip("/")
        self._trust = _trust(config)
        self._manager = _manager(config, self._trust)
        self._renewing = threading.Lock()

    def exchange(
        self, method: str, target: str, *, headers: dict[str, str], body: bytes | None, deadline: Deadline
    ) -> Answer:
        """Send one request and return the answer.

        Raises:
            Lost: No answer, half of one, one that is too long, or no connection.
        """
        manager = self._manager
        try:
            return self._send(manager, method, target, headers, body, deadline)
        except exceptions.HTTPError as error:
            # What broke one kept connection (a restart, a forgetful balancer) broke its neighbours, which may only be
            # found out by a time-out each.
            manager.clear()
            if not (_certificate_problem(error) and self._renewed_since(manager)):
                raise self._lost(error, deadline) from error
        try:
            return self._send(self._manager, method, target, headers, body, deadline)
        except exceptions.HTTPError as error:
            self.forget()
            raise self._lost(error, deadline) from error

    def _send(
        self,
        manager: urllib3.PoolManager,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes | None,
        deadline: Deadline,
    ) -> Answer:
        seconds = max(0.001, deadline.remaining())
        timeout = urllib3.Timeout(connect=min(CONNECT_TIMEOUT, seconds), read=seconds)
        with keeping_to(deadline):
            response = manager.request(
                method,
                f"{self._server}{target}",
                headers=self._with_impersonation(headers),
                body=body,
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                content = _read(response)
            except BaseException:
                response.close()
                raise
        return Answer(response.status, {key.lower(): value for key, value in response.headers.items()}, content)

    def _with_impersonation(self, headers: dict[str, str]) -> urllib3.HTTPHeaderDict:
        """Return the headers with those that name another user; a group each has one of its own."""
        whole = urllib3.HTTPHeaderDict(headers)
        for name, value in self._config.impersonate:
            # A header's text is sent as Latin-1, and UTF-8 is what the API server reads.
            whole.add(name, value.encode().decode("latin-1"))
        return whole

    def _renewed_since(self, used: urllib3.PoolManager) -> bool:
        """Whether other CAs are trusted by now than those of the pools that were used; reads them anew."""
        with self._renewing:
            if self._manager is not used:
                # Another thread was here first.
                return True
            renewed = self._trust and self._config.renewed_trust and self._config.renewed_trust(self._trust)
            if not renewed:
                return False
            self._trust = renewed
            self._manager = _manager(self._config, renewed)
            log.info("the CAs of the API server were renewed", read_from=self._config.source)
            return True

    def forget(self) -> None:
        """Close the kept connections: the next request makes its own, with the credentials of then."""
        self._manager.clear()

    def _lost(self, error: exceptions.HTTPError, deadline: Deadline) -> Lost:
        where = f"API server {self._server} ({self._config.source})"
        if isinstance(error, exceptions.ReadTimeoutError):
            return Lost(f"no answer from {where} in {deadline.limit:g} s")
        if isinstance(error, exceptions.ConnectTimeoutError) and not isinstance(error, exceptions.NewConnectionError):
            return Lost(f"no connection to {where} in {min(CONNECT_TIMEOUT, deadline.limit):g} s")
        certificate = _certificate_problem(error)
        if certificate:
            return Lost(f"the certificate of {where} is not trusted: {certificate}", again=False)
        return Lost(f"{where} can't be reached: {_reason(error)}")


def _trust(config: ClusterConfig) -> ssl.SSLContext | None:
    if not config.server.startswith("https:"):
        return None
    context = config.ssl_context or trusting(None, named_by="the system")
    if context.verify_mode == ssl.CERT_NONE:
        log.warning("the API server's certificate is not checked", asked_by=config.source)
        urllib3.disable_warnings(exceptions.InsecureRequestWarning)
    return context


def _manager(config: ClusterConfig, context: ssl.SSLContext | None) -> urllib3.PoolManager:
    options: dict[str, object] = {
        "num_pools": 2,
        "maxsize": KEPT_CONNECTIONS,
        "block": False,
        "socket_options": _SOCKET_OPTIONS,
        "ssl_context": context,
        "server_hostname": config.tls_server_name or None,
    }
    # The options are a table of keyword arguments.
    manager = _proxy_manager(config, options) if config.proxy_url else urllib3.PoolManager(**options)  # type: ignore[arg-type]
    manager.pool_classes_by_scheme = POOLS
    return manager


def _proxy_manager(config: ClusterConfig, options: dict[str, object]) -> urllib3.PoolManager:
    try:
        parts = urlsplit(config.proxy_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"the proxy-url of {config.source} is no http or https address (scheme {parts.scheme!r})")
        headers = None
        if parts.username:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            # A header's text is sent as Latin-1, and UTF-8 is what Go sends.
            headers = make_headers(proxy_basic_auth=user.encode().decode("latin-1"))
        return urllib3.ProxyManager(config.proxy_url, proxy_headers=headers, **options)  # type: ignore[arg-type]  # as above
    except (exceptions.LocationParseError, ValueError):
        # Their texts may quote the address, and so a password.
        raise ConfigError(f"the proxy-url of {config.source} is no address with a host and a port") from None


def _read(response: urllib3.BaseHTTPResponse) -> bytes:
    """Read the body as it comes, within size."""
    parts: list[bytes] = []
    size = 0
    while part := response.read1(_CHUNK, decode_content=False):
        parts.append(part)
        size += len(part)
        if size > MAX_RESPONSE_BYTES:
            raise Lost(f"the answer is longer than {MAX_RESPONSE_BYTES} bytes", again=False)
    return b"".join(parts)


def _certificate_problem(error: BaseException) -> str:
    """Return why a certificate was not trusted, empty where the error is another."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return one_line(seen.verify_message)
        inner = next((argument for argument in seen.args if isinstance(argument, BaseException)), None)
        seen = inner or seen.__cause__
    return ""


def _reason(error: BaseException) -> str:
    """Return the innermost cause in the system's words: urllib3's own texts repeat address and object ids."""
    seen = error
    while True:
        inner = (
            next((argument for argument in seen.args if isinstance(argument, BaseException)), None) or seen.__cause__
        )
        if inner is None or inner is seen:
            break
        seen = inner
    text = getattr(seen, "strerror", None) or str(seen) or type(seen).__name__
    return one_line(str(text))
