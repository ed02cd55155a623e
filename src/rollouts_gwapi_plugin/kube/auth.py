"""Where the API server is and how to be let in (decision D27).

`load_cluster_config` tries, in this order: the kubeconfig that was named or KUBECONFIG; the service account of the pod
that we run in; `~/.kube/config`. What was named and can't be used is an error, never a reason to try the next.
The service-account way is ours and small, since it is the production path; a kubeconfig is read by
`kube.kubeconfig`, imported only then.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.kube.credentials import Credentials, NoCredentials, TokenFile

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class ClusterConfig:
    """An API server and the way to it; without `ssl_context` an https server is checked against the system's CAs.

    `source` says for messages where this comes from; with `in_pod` it is the service account of the pod that we run in.
    `proxy_url` may hold a password and is never shown.
    """

    server: str
    credentials: Credentials = field(default_factory=NoCredentials)
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False)
    tls_server_name: str = ""
    proxy_url: str = field(default="", repr=False)
    namespace: str = "default"
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
    if in_pod and not context and (service_account / "token").exists():
        return in_cluster(environ, service_account)
    default = Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config"
    if default.is_file():
        return _from_kubeconfig(str(default), context, named_by="")
    if in_pod and not context:
        raise ConfigError(
            f"no way to an API server: this is a pod (KUBERNETES_SERVICE_HOST is set) but {service_account}/token is "
            "missing; allow the pod its token (automountServiceAccountToken) or set KUBECONFIG"
        )
    raise ConfigError(
        f"no way to an API server: KUBECONFIG is not set, this is not a pod (no KUBERNETES_SERVICE_HOST) and {default} "
        "does not exist; name a kubeconfig file"
    )


def in_cluster(environ: Mapping[str, str], folder: Path) -> ClusterConfig:
    """Return the way to the API server for a pod: the service's address and the service account's files.

    The proxy variables of the environment are not used: the API server is the pod's own network.
    """
    host = environ["KUBERNETES_SERVICE_HOST"]
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    bracketed = f"[{host}]" if ":" in host else host
    return ClusterConfig(
        server=f"https://{bracketed}:{port}",
        credentials=TokenFile(folder / "token"),
        ssl_context=trusting(str(folder / "ca.crt"), named_by="the pod's service account"),
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
