"""An example of examples/ as its README tells it: its commands typed on the local cluster, under its demo's cohorts.

The local cluster has no kind, no helm and no kubelet; `REPLACED` says for each command of that sort what happens in its
place. Every other command is executed as it stands, so that a README which goes wrong fails here. An example's own
rights are all that the plugin has.
"""

import json
import math
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from e2e.cluster import controller, process
from e2e.cluster.settings import PLUGIN_RIGHTS, REPOSITORY
from e2e.load.cohort import Cohort, Protocol
from e2e.load.generator import ask
from e2e.load.traffic import Load, Traffic
from e2e.readme import commands
from e2e.runner.api import Api, JsonObject, RouteWatch
from e2e.runner.match import differences
from e2e.runner.target import LocalTarget
from e2e.waiting import NotYet, until

EXAMPLES = REPOSITORY / "examples"
WAIT_SECONDS = 300.0
# A request that was on its way when the weights changed; Envoy follows within 30 ms.
CHANGE_SECONDS = 1.0
# So many requests of each cohort stand for a loop of curl.
LOOKS = 100
# The demo's rates are for a process of its own.
MOST_RATE = 20.0
# The API server has 443; the README's reader gets at that port by another number, too.
PORTS = {443: 8443}

# Pods of an experiment's templates: the baseline's are of the old version, too.
TEMPLATES = {"baseline": "-baseline-", "candidate": "-candidate-"}

_HEADING = "## On kind"
_ROUTE_KINDS = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute")
_PROTOCOLS: dict[str, Protocol] = {"HTTP": "http", "TCP": "tcp", "TLS": "tls"}


@dataclass(frozen=True)
class Example:
    """A folder of examples/."""

    name: str

    @property
    def folder(self) -> Path:
        """Where it is."""
        return EXAMPLES / self.name

    def documents(self, kind: str) -> list[JsonObject]:
        """Return its objects of a kind, in the order of the files' names."""
        found = [item for path in sorted(self.folder.glob("*.yaml")) for item in yaml.safe_load_all(path.read_text())]
        return [item for item in found if item and item.get("kind") == kind]

    @property
    def rollout(self) -> JsonObject:
        """Its Rollout."""
        return self.documents("Rollout")[0]

    @property
    def namespace(self) -> str:
        """Where all its objects are."""
        return str(self.rollout["metadata"]["namespace"])

    @property
    def route(self) -> tuple[str, str]:
        """Kind and name of the route that is watched."""
        return next((kind, item["metadata"]["name"]) for kind in _ROUTE_KINDS for item in self.documents(kind))

    @property
    def canary(self) -> str:
        """The canary's Service."""
        return str(self.rollout["spec"]["strategy"]["canary"]["canaryService"])

    @property
    def weights(self) -> set[float]:
        """The weights of its steps; 100 % is no state that stands, since the promotion follows."""
        steps = self.rollout["spec"]["strategy"]["canary"]["steps"]
        return {float(step["setWeight"]) for step in steps if "setWeight" in step} - {100.0}

    @property
    def demo(self) -> dict[str, Any]:
        """What its demo does; its cohorts are this test's, too."""
        found: dict[str, Any] = yaml.safe_load((self.folder / "demo.yaml").read_text())
        return found

    def cohorts(self) -> list[Cohort]:
        """Return the demo's cohorts, at the listeners' ports."""
        listeners = {item["name"]: item for item in self.documents("Gateway")[0]["spec"]["listeners"]}
        return [
            _cohort(part, listeners[part["listener"]] if "listener" in part else next(iter(listeners.values())))
            for part in self.demo["cohorts"]
        ]

    def commands(self) -> list[str]:
        """Return what its README says to type; all but the canary example begin with that one's first steps."""
        canary = commands(EXAMPLES / "canary" / "README.md", _HEADING)
        if self.name == "canary":
            return canary
        first = canary[: canary.index("kubectl apply -f examples/canary/gateway.yaml")]
        return [*first, *commands(self.folder / "README.md", _HEADING)]


def _cohort(part: dict[str, Any], listener: dict[str, Any]) -> Cohort:
    kinds = {item["kind"] for item in listener.get("allowedRoutes", {}).get("kinds", [])}
    return Cohort(
        name=part["name"],
        protocol="grpc" if kinds == {"GRPCRoute"} else _PROTOCOLS[listener["protocol"]],
        port=PORTS.get(listener["port"], listener["port"]),
        host=part.get("host", ""),
        method=part.get("method", "GET"),
        path=part.get("path", "/"),
        headers=part.get("headers", {}),
        rate=min(MOST_RATE, part["rate"]),
    )


@dataclass
class Walk:
    """A walkthrough under way, and what it showed."""

    example: Example
    target: LocalTarget
    folder: Path
    traffic: Traffic
    states: list[tuple[float, JsonObject]]
    # Copies that the new version got when the reader counted them, and requests until then, by cohort.
    copies: dict[str, tuple[int, int]] = field(default_factory=dict)
    began: float = 0.0
    promoted: float = 0.0

    @property
    def mirrored(self) -> float:
        """When the route first had a rule that mirrors."""
        return next((at for at, route in self.states if "requestMirror" in json.dumps(route["spec"])), math.inf)

    def type(self, command: str) -> None:
        """Do what a reader would: type the command, or what stands for it here."""
        for pattern, instead in REPLACED.items():
            if re.match(pattern, command):
                instead(self, command)
                return
        script = ["bash", "-euo", "pipefail", "-c", f"cd '{REPOSITORY}' && {command}"]
        process.run(script, environment=self.target.cluster.environment())

    def look(self) -> None:
        """Let each cohort ask as often as a reader would."""
        since = time.monotonic()

        def enough() -> bool:
            self.traffic.refresh()
            return all(len(self.traffic.window(cohort.name, since)) >= LOOKS for cohort in self.example.cohorts())

        until(enough, "enough requests", seconds=WAIT_SECONDS)


@contextmanager
def walk(example: Example, target: LocalTarget, folder: Path) -> Iterator[Walk]:
    """Type all commands; traffic begins before the one that brings the new version, and ends with the promotion."""
    typed = example.commands()
    change = next(index for index, command in enumerate(typed) if re.search(r" set image | patch rollout ", command))
    kind, name = example.route
    api, cohorts = target.api(), example.cohorts()
    try:
        target.cluster.kubectl("delete", "clusterrole,clusterrolebinding", "rollouts-gwapi-plugin")
        with RouteWatch(api, kind, example.namespace, name) as watch:
            load = Load(cohorts, folder, TEMPLATES)
            walked = Walk(example, target, folder, load.traffic, watch.states)
            for command in typed[:change]:
                walked.type(command)
            for cohort in cohorts:
                until(lambda cohort=cohort: _answered(cohort), "the first answer", seconds=60.0)  # type: ignore[misc]
            with load, _shown(walked, typed):
                walked.began = time.monotonic()
                for command in typed[change:]:
                    walked.type(command)
                until(lambda: _finished(api, example), "the new version is promoted", seconds=WAIT_SECONDS)
                walked.promoted = time.monotonic()
                walked.look()
            yield walked
    finally:
        _clean_up(example, target)


@contextmanager
def _shown(walked: Walk, typed: list[str]) -> Iterator[None]:
    """Run the command that shows the weights as they move, if there is one, into the file `watch`."""
    for command in typed:
        if re.match(_WATCH, command):
            with (walked.folder / "watch").open("wb") as output:
                script = ["bash", "-c", f"exec {command}"]
                running = subprocess.Popen(script, env=walked.target.cluster.environment(), stdout=output)
                try:
                    yield
                finally:
                    running.terminate()
                    running.wait()
            return
    yield


def _answered(cohort: Cohort) -> bool:
    record = ask(cohort)
    if record.error:
        raise NotYet(record.error)
    return True


def _finished(api: Api, example: Example) -> bool:
    found = api.read("Rollout", example.namespace, example.rollout["metadata"]["name"]) or {}
    status = found.get("status", {})
    if status.get("phase") != "Healthy" or status.get("stableRS") != status.get("currentPodHash"):
        raise NotYet(f"{status.get('phase')}: {status.get('message')}")
    label = "rollouts-pod-template-hash"
    sets = {item["metadata"]["labels"].get(label): item for item in api.all_of("ReplicaSet", example.namespace)}
    return not differences(found["spec"]["template"], sets[status["currentPodHash"]]["spec"]["template"])


def _clean_up(example: Example, target: LocalTarget) -> None:
    """Bring back the cluster's own rights and configuration, and remove the example."""
    target.cluster.kubectl("delete", "namespace", example.namespace, "--ignore-not-found", "--wait=true")
    target.cluster.kubectl("delete", "gatewayclass", "envoy", "--ignore-not-found")
    target.cluster.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={PLUGIN_RIGHTS}")
    target.configure(None)
    controller.wait(target.cluster.settings)


def _nothing(_walk: Walk, _command: str) -> None:
    """Do nothing: the local cluster has it already, or it goes on beside the others."""


def _restart(walked: Walk, _command: str) -> None:
    walked.target.restart("controller")


def _look(walked: Walk, _command: str) -> None:
    walked.look()


def _count_copies(walked: Walk, _command: str) -> None:
    """Count what the new version's pods have received: at weight 0 that is copies."""
    api, example = walked.target.api(), walked.example
    found = api.read("Rollout", example.namespace, example.rollout["metadata"]["name"]) or {}
    pods = f"-{found['status']['currentPodHash']}-"
    counted = [
        item for item in walked.target.counts() if item["namespace"] == example.namespace and pods in item["pod"]
    ]
    walked.traffic.refresh()
    for cohort in example.cohorts():
        received = sum(int(item["received"]) for item in counted if item["cohort"] == cohort.name)
        walked.copies[cohort.name] = (received, len(walked.traffic.window(cohort.name, walked.mirrored)))


def _apply_gateway(walked: Walk, command: str) -> None:
    path = REPOSITORY / command.rpartition(" ")[2]
    documents = list(yaml.safe_load_all(path.read_text()))
    for document in documents:
        for listener in document.get("spec", {}).get("listeners", []):
            listener["port"] = PORTS.get(listener["port"], listener["port"])
    walked.target.run(["kubectl", "apply", "--filename=-"], text=yaml.safe_dump_all(documents))


_WATCH = r"^kubectl get \w+ \w+ -n [\w-]+ -w "

REPLACED: dict[str, Callable[[Walk, str], None]] = {
    r"^kind create cluster": _nothing,
    r"^helm install eg ": _nothing,
    r"^kubectl create namespace argo-rollouts$": _nothing,
    r"^kubectl apply -n argo-rollouts -f https://": _nothing,
    r"^kubectl patch deployment argo-rollouts ": _nothing,  # the plugin's file is in the container
    r"^kubectl rollout restart deployment argo-rollouts ": _restart,
    r"^kubectl rollout status deployment argo-rollouts ": _nothing,  # the restart waits
    r"^kubectl apply -f examples/tls/gateway.yaml$": _apply_gateway,
    r"^kubectl port-forward ": _nothing,  # the gateway's port is open as it is
    r"^kubectl logs .* \| grep -c 'Echoing back request'$": _count_copies,  # kwok's pods have no logs
    r"^(for i in .*|curl |grpcurl )": _look,  # the test's own traffic
    _WATCH: _nothing,  # it runs beside the others
    r"^kubectl argo rollouts get rollout .* --watch$": _nothing,
}
