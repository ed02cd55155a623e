"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler: how each is started and when it is ready.

All functions run inside the node's network namespace.
"""

import json
import ssl
import urllib.request
from pathlib import Path

from e2e.cluster import certificates, process
from e2e.cluster.process import Command, CommandFailed
from e2e.cluster.settings import (
    API_ADDRESS,
    API_PORT,
    API_URL,
    ETCD_URL,
    NODE_ADDRESS,
    SERVICE_RANGE,
    Settings,
)
from e2e.cluster.tools import Tools
from e2e.waiting import NotYet, until

# On a busy machine the API server has been seen to take 10 s; the deadline is for machines that are really stuck.
READY_SECONDS = 180.0
_PROBE_SECONDS = 5.0

Flags = dict[str, str | int | Path]


def prepare(settings: Settings) -> None:
    """Write certificates and the administrator's kubeconfig."""
    pki = settings.state / "pki"
    certificates.write_all(pki)
    user = {"client-certificate": str(pki / "admin.crt"), "client-key": str(pki / "admin.key")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {"server": API_URL, "certificate-authority": str(pki / "ca.crt")}}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "admin"}}],
        "current-context": "e2e",
    }
    settings.kubeconfig.write_text(json.dumps(config, indent=1))


def start_etcd(settings: Settings, tools: Tools) -> None:
    """Start etcd on a folder that needs to survive a restart, not a power cut."""
    folder = settings.state / "etcd"
    folder.mkdir(mode=0o700, exist_ok=True)
    peer = "http://127.0.0.1:2380"
    command: Command = [
        tools.path("server"),
        "--name=one",
        f"--data-dir={folder}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
    command += [f"--listen-client-urls={ETCD_URL}", f"--advertise-client-urls={ETCD_URL}"]
    command += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=one={peer}"]
    process.start(settings, "etcd", command)
    until(lambda: answers(f"{ETCD_URL}/health"), "etcd is healthy", seconds=READY_SECONDS)


def start_apiserver(settings: Settings, tools: Tools) -> None:
    """Start the API server and wait until it is ready."""
    pki = settings.state / "pki"
    flags: Flags = {
        "etcd-servers": ETCD_URL,
        "bind-address": API_ADDRESS,
        "advertise-address": NODE_ADDRESS,
        "secure-port": API_PORT,
        # A Gateway may have a listener on 443 at the other addresses.
        "permit-port-sharing": "true",
        "endpoint-reconciler-type": "none",
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "client-ca-file": pki / "ca.crt",
        "cert-dir": settings.state / "apiserver",
        "authorization-mode": "RBAC",
        "service-cluster-ip-range": SERVICE_RANGE,
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-signing-key-file": pki / "sa.key",
        "service-account-key-file": pki / "sa.pub",
        "profiling": "false",
        "v": 1,
    }
    process.start(settings, "apiserver", [tools.path("kube-apiserver"), *_flags(flags)])
    wait_apiserver(settings)


def wait_apiserver(settings: Settings) -> None:
    """Wait until the API server says that it is ready."""
    until(lambda: _api_ready(settings), "the API server is ready", seconds=READY_SECONDS)


def start_controllers(settings: Settings, tools: Tools) -> None:
    """Start controller manager and scheduler; they are ready once `wait_controllers` says so."""
    pki = settings.state / "pki"
    shared: Flags = {
        "kubeconfig": settings.kubeconfig,
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "profiling": "false",
        "v": 1,
    }
    manager: Flags = {
        **shared,
        "service-account-private-key-file": pki / "sa.key",
        "root-ca-file": pki / "ca.crt",
        "cert-dir": settings.state / "kcm",
        # Its default is a folder of the machine.
        "flex-volume-plugin-dir": settings.state / "flex",
        # Objects of the tests come and go in seconds.
        "namespace-sync-period": "30s",
        "concurrent-namespace-syncs": 4,
    }
    process.start(settings, "kcm", [tools.path("kube-controller-manager"), *_flags(manager)])
    scheduler: Flags = {**shared, "cert-dir": settings.state / "scheduler"}
    process.start(settings, "scheduler", [tools.path("kube-scheduler"), *_flags(scheduler)])


def wait_controllers(settings: Settings, tools: Tools) -> None:
    """Wait until a namespace gets its service account: the controller manager is at work."""
    account = ["--namespace=default", "get", "serviceaccount", "default", "--output=name"]
    until(
        lambda: kubectl(settings, tools, *account, check=False) != "",
        "the default service account",
        seconds=READY_SECONDS,
    )


def kubectl(settings: Settings, tools: Tools, *arguments: str, text: str | None = None, check: bool = True) -> str:
    """Run kubectl as the administrator; return what it printed, or nothing where it failed and `check` is off."""
    try:
        return process.run([tools.path("kubectl"), f"--kubeconfig={settings.kubeconfig}", *arguments], text=text)
    except CommandFailed:
        if check:
            raise
        return ""


def answers(url: str) -> bool:
    """Whether the URL answers 200; a `NotYet` says what it did instead."""
    try:
        with urllib.request.urlopen(url, timeout=_PROBE_SECONDS) as response:  # noqa: S310 - our own URLs
            return bool(response.status == 200)
    except OSError as error:
        raise NotYet(f"{url}: {error}") from error


def _api_ready(settings: Settings) -> bool:
    pki = settings.state / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    request = urllib.request.Request(f"{API_URL}/readyz")  # noqa: S310 - our own URL
    try:
        with urllib.request.urlopen(request, timeout=_PROBE_SECONDS, context=context) as response:  # noqa: S310
            return bool(response.status == 200)
    except OSError as error:
        raise NotYet(f"{API_URL}/readyz: {error}") from error


def _flags(flags: Flags) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]
