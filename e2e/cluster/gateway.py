"""Envoy Gateway, which reads its objects from the API server and runs Envoy as its child.

It wants its certificates in the fixed folder /certs and Envoy in a folder named by its version; so it runs in a
container whose root has the machine's programs and libraries, read-only, and that folder.
"""

import sys
from pathlib import Path

from e2e.cluster import container, process
from e2e.cluster.container import Bind, Spec
from e2e.cluster.controlplane import answers, kubectl
from e2e.cluster.process import Command
from e2e.cluster.settings import GATEWAY_NAMESPACE, MANIFESTS, REPOSITORY, Settings
from e2e.cluster.tools import ENVOY_VERSION, Tools
from e2e.waiting import until

READY_SECONDS = 120.0
# What Envoy, a program of glibc, needs of the machine.
MACHINE_FOLDERS = ("/bin", "/usr", "/lib", "/lib64", "/etc")
_HEALTH = "http://127.0.0.1:8081/healthz"


def start(settings: Settings, tools: Tools) -> None:
    """Start it; it is ready once `wait` says so. Its definitions must be served already."""
    home = settings.state / "gateway"
    _prepare(settings, tools, home)
    binds = [Bind(folder, folder) for folder in MACHINE_FOLDERS if Path(folder).exists()]
    binds += [
        Bind(str(home / "config" / "certs" / "envoy-gateway"), "/certs"),
        Bind(str(home), str(home), read_only=False),
        Bind(str(settings.kubeconfig), str(settings.kubeconfig)),
        Bind(str(settings.state / "pki"), str(settings.state / "pki")),
        Bind(str(tools.path("envoy-gateway")), "/envoy-gateway"),
        Bind(str(tools.path("envoy")), "/envoy"),
    ]
    spec = Spec(
        command=["/envoy-gateway", "server", "--config-path", str(home / "config.yaml")],
        root=str(home / "root"),
        notes=str(home),
        environment={"KUBECONFIG": str(settings.kubeconfig), "PATH": "/usr/bin:/bin", "HOME": str(home)},
        binds=binds,
        hostname="envoy-gateway",
        drop=False,
    )
    spec.save(home / "spec.json")
    command: Command = [sys.executable, "-m", container.__name__, "supervise", home / "spec.json"]
    process.start(settings, "gateway", command, folder=REPOSITORY)


def wait() -> None:
    """Wait until it says that it is healthy; a Gateway's listeners open some 0.1 s after the Gateway is made."""
    until(lambda: answers(_HEALTH), "Envoy Gateway is healthy", seconds=READY_SECONDS)


def _prepare(settings: Settings, tools: Tools, home: Path) -> None:
    versioned = home / "data" / "envoy-versions" / ENVOY_VERSION / "bin"
    for folder in (versioned, home / "root"):
        folder.mkdir(parents=True, exist_ok=True)
    # Each Gateway has an Envoy of its own; several in one network namespace need different base ids.
    (versioned / "envoy").write_text('#!/bin/sh\nexec /envoy --use-dynamic-base-id "$@"\n')
    (versioned / "envoy").chmod(0o755)
    certgen: Command = [tools.path("envoy-gateway"), "certgen", "--local", "--config-home", home / "config"]
    process.run(certgen)
    config = (MANIFESTS / "envoy-gateway.yaml").read_text()
    (home / "config.yaml").write_text(config.replace("HOME", str(home)).replace("ENVOY_VERSION", ENVOY_VERSION))
    certificates = home / "config" / "certs" / "envoy"
    create = ["create", "secret", "generic", "envoy", f"--namespace={GATEWAY_NAMESPACE}", "--dry-run=client"]
    create += ["--output=yaml", *(f"--from-file={certificates / name}" for name in ("ca.crt", "tls.crt", "tls.key"))]
    secret = kubectl(settings, tools, *create)
    namespace = kubectl(settings, tools, "create", "namespace", GATEWAY_NAMESPACE, "--dry-run=client", "--output=yaml")
    gateway_class = (MANIFESTS / "gatewayclass.yaml").read_text()
    text = f"{namespace}\n---\n{secret}\n---\n{gateway_class}"
    kubectl(settings, tools, "apply", "--server-side", "--filename=-", text=text)
