"""kwok plays the kubelet, the echo program answers at the pods' addresses.

kwok runs in the node's network namespace, echo in the pods'. Both follow the API server and outlive its restarts.
"""

import json
import urllib.request

from e2e.cluster import network, process
from e2e.cluster.controlplane import answers, kubectl
from e2e.cluster.process import Command
from e2e.cluster.settings import (
    API_URL,
    ECHO_CONTROL_PORT,
    MANIFESTS,
    NODE_ADDRESS,
    POD_RANGE,
    PODS_GATEWAY,
    Settings,
)
from e2e.cluster.tools import Tools
from e2e.waiting import until

READY_SECONDS = 120.0
ECHO_CONTROL = f"http://{PODS_GATEWAY}:{ECHO_CONTROL_PORT}"


def start(settings: Settings, tools: Tools) -> None:
    """Start both; they are ready once `wait` says so."""
    kubectl(settings, tools, "apply", "--server-side", f"--filename={MANIFESTS / 'node.yaml'}")
    command: Command = [
        tools.path("kwok"),
        f"--kubeconfig={settings.kubeconfig}",
        f"--config={MANIFESTS / 'kwok.yaml'}",
    ]
    command += ["--manage-all-nodes=true", f"--cidr={POD_RANGE}", f"--node-ip={NODE_ADDRESS}"]
    command += ["--server-address=", "--node-lease-duration-seconds=40"]
    process.start(settings, "kwok", command)
    pki = settings.state / "pki"
    echo: Command = [tools.path("echo"), f"--server={API_URL}", f"--ca={pki / 'ca.crt'}", f"--cert={pki / 'admin.crt'}"]
    echo += [f"--key={pki / 'admin.key'}", f"--control=:{ECHO_CONTROL_PORT}"]
    with network.inside(settings.pods_namespace):
        process.start(settings, "echo", echo)


def wait(settings: Settings, tools: Tools) -> None:
    """Wait until the node is Ready and echo answers."""
    kubectl(settings, tools, "wait", "--for=condition=Ready", f"--timeout={READY_SECONDS:.0f}s", "node/node-0")
    until(lambda: answers(f"{ECHO_CONTROL}/pods"), "echo answers", seconds=READY_SECONDS)


def counts() -> list[dict[str, object]]:
    """Return what each pod received so far, by protocol and cohort; called inside the node's network namespace."""
    with urllib.request.urlopen(f"{ECHO_CONTROL}/counts", timeout=READY_SECONDS) as response:  # noqa: S310 - our own
        found: list[dict[str, object]] = json.load(response)
    return found
