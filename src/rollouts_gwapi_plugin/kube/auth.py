"""Where the API server is and how to be let in (decision D27).

`load_cluster_config` tries, in this order: the kubeconfig that was named or KUBECONFIG; the service account of the pod
that we run in; `~/.kube/config`. What was named and can't be used is an error, never a reason to try the next.
The service-account way is ours and small, since it is the production path; a kubeconfig is read by
`kube.kubeconfig`, imported only then.
"""

import os
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.kube.credentials import Credentials, NoCredentials, TokenFile
from rollouts_gwapi_plugin.log import get_logger

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")

log = get_logger()


@dataclass(frozen=True)
class ClusterConfig:
    """An API server and the way to it; without `ssl_context` an https server is checked against the system's CAs.

    `source` says for messages where this comes from; with `in_pod` it is the service account of the pod that we run in.
    `proxy_url` may hold a password and is never shown. `renewed_trust` is asked when a certificate was not trusted
    under a context, and returns another one where the CAs have changed since that one was made. `impersonate` holds the
    headers of the user whose rights we ask for instead of our own.
    """

    server: str
    credentials: Credentials = field(default_factory=NoCredentials)
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False)
    renewed_trust: Callable[[ssl.SSLContext], ssl.SSLContext | None] | None = field(default=None, repr=False)
    tls_server_name: str = ""
    proxy_url: str = field(default="", repr=False)
    namespace: str = "default"
    impersonate: tuple[tuple[str, str], ...] = ()
    source: str = "given"
    in_pod: bool = False


def trusting(ca_file: str | None, *, named_by: str) -> ssl.SSLContext:
    """Return a context that trusts the CAs in a file, or the system's where there is none.

    Raises:
        ConfigError: The file is missing or holds no certificate.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the CA file {ca_file} of {named_by} can't be used: {error.strerror or error}") from error
    # Python >= 3.13 also asks for extensions that clusters' own CAs often lack; Go, and so kubectl, does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class CaFile:
    """A file of CAs that somebody else renews, and the context that trusts what was read last."""

    def __init__(self, path: Path, *, named_by: str) -> None:
        self._path = path
        self._named_by = named_by
        self._lock = threading.Lock()
        self._content = self._read()
        self.context = trusting(str(path), named_by=named_by)

    def renewed(self, used: ssl.SSLContext) -> ssl.SSLContext | None:
        """Return a context of other content than the one that was used, None where nothing has changed."""
        with self._lock:
            # Read first: what is replaced in between is then found to be other once more, and not taken for known.
            content = self._read()
            if content != self._content:
                try:
                    self.context = trusting(str(self._path), named_by=self._named_by)
                except ConfigError as error:
                    log.warning("keeping the CAs read before", reason=str(error))
                else:
                    self._content = content
            return None if self.context is used else self.context

    def _read(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError:
            # Whoever makes a context of it says what is wrong.
            return b""


def load_cluster_config(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT_FOLDER,
) -> ClusterConfig:
    """Find the API server.

    Args:
        kubeconfig: A file to use and no other.
        context: A context of the kubeconfig; asks for a kubeconfig, too.
        environ: The process's environment.
        service_account: The folder that the kubelet mounts.

    Raises:
        ConfigError: There is no way to an API server, or the one that was named can't be used.
    """
    named = str(kubeconfig or environ.get("KUBECONFIG", ""))
    if named:
        return _from_kubeconfig(named, context, named_by="" if kubeconfig else "KUBECONFIG")
    in_pod = bool(environ.get("KUBERNETES_SERVICE_HOST"))
    if in_pod and not context and not _missing(service_account / "token"):
        return in_cluster(environ, service_account)
    default = _home(environ) / ".kube" / "config"
    missing = _missing(default)
    if not missing:
        return _from_kubeconfig(str(default), context, named_by="")
    if in_pod and not context:
        raise ConfigError(
            f"no way to an API server: this is a pod (KUBERNETES_SERVICE_HOST is set) but {service_account}/token "
            f"{_missing(service_account / 'token')}; allow the pod its token (automountServiceAccountToken) or set "
            "KUBECONFIG"
        )
    raise ConfigError(
        f"no way to an API server: KUBECONFIG is not set, this is not a pod (no KUBERNETES_SERVICE_HOST) and {default} "
        f"{missing}; name a kubeconfig file"
    )


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or "~").expanduser()
    except RuntimeError:
        # No HOME, and a user without an entry in passwd: there is no home, and nothing in it.
        return Path("~")


def _missing(path: Path) -> str:
    """Return why a file is not there for us, empty where it is."""
    try:
        return "" if path.is_file() else "does not exist"
    except OSError as error:
        return f"can't be reached ({error.strerror or error})"


def in_cluster(environ: Mapping[str, str], folder: Path) -> ClusterConfig:
    """Return the way to the API server for a pod: the service's address and the service account's files.

    The proxy variables of the environment are not used: the API server is the pod's own network.
    """
    host = environ["KUBERNETES_SERVICE_HOST"]
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    bracketed = f"[{host}]" if ":" in host else host
    authorities = CaFile(folder / "ca.crt", named_by="the pod's service account")
    return ClusterConfig(
        server=f"https://{bracketed}:{port}",
        credentials=TokenFile(folder / "token"),
        ssl_context=authorities.context,
        renewed_trust=authorities.renewed,
        namespace=_namespace(folder / "namespace"),
        source="the pod's service account",
        in_pod=True,
    )


def _namespace(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip() or "default"
    except (OSError, UnicodeDecodeError):
        return "default"


def _from_kubeconfig(paths: str, context: str | None, *, named_by: str) -> ClusterConfig:
    # The official loader costs 0.3 s and 15 MB that a pod need not pay.
    from rollouts_gwapi_plugin.kube.kubeconfig import load_kubeconfig  # noqa: PLC0415 - as said above

    return load_kubeconfig(paths, context, named_by=named_by)
