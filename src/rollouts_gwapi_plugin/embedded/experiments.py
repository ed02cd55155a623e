"""Argo Rollouts' experiment controller in small: pods and Services of a Rollout's experiment step.

`reconcile(cluster)` goes as far as can be gone at this moment and returns the cluster with the experiment's new phase:
pods and Services are made, the experiment runs for its duration, and after `scaleDownDelaySeconds` they are taken away
again, whatever still points at them. One that the controller has dropped (abort, full promotion) ends at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Pod
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, Destination, Experiment
from rollouts_gwapi_plugin.embedded.host.rollout import HASH_LABEL, seconds, short_hash
from rollouts_gwapi_plugin.embedded.pods import VersionPods, container_ports
from rollouts_gwapi_plugin.model.base import JsonObject

# Argo Rollouts' default of an experiment's scaleDownDelaySeconds.
SCALE_DOWN_DELAY = 30.0

StartPods = Callable[[str, JsonObject], VersionPods]
FindTemplate = Callable[[str], JsonObject]


@dataclass(frozen=True)
class _Part:
    """One template of an experiment that runs; `weight` is None where it gets no traffic."""

    service: str
    pod_hash: str
    pods: VersionPods
    weight: int | None


@dataclass
class _Running:
    """An experiment with its parts; `until` is when it is over, None without an end, `gone` when its pods end."""

    parts: list[_Part]
    until: float | None
    delay: float
    gone: float | None = None


class Experiments:
    """The experiments of one Rollout; at most one runs, others are on their way out."""

    def __init__(
        self,
        api: ApiServer,
        namespace: str,
        start_pods: StartPods,
        find_template: FindTemplate,
        clock: Callable[[], float],
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._start_pods = start_pods
        self._find_template = find_template
        self._clock = clock
        self._running: dict[str, _Running] = {}

    def reconcile(self, cluster: Cluster) -> Cluster:
        """Do what is due; return the cluster with the experiment as it is now."""
        now, experiment = self._clock(), cluster.experiment
        if experiment is not None:
            experiment = self._advance(cluster, experiment, now)
        for name, running in list(self._running.items()):
            if experiment is None or name != experiment.name or experiment.phase != "Running":
                self._end(name, running, now)
        return replace(cluster, experiment=experiment)

    def pods(self) -> Iterator[Pod]:
        """Return the pods of all experiments."""
        for running in self._running.values():
            for part in running.parts:
                yield part.pods.pod(self._namespace, {HASH_LABEL: part.pod_hash})

    def backend_of(self, service: str) -> str:
        """Return the name of the pods behind an experiment's Service, empty where there is none of this name."""
        parts = (part for running in self._running.values() for part in running.parts)
        return next((part.pods.name for part in parts if part.service == service), "")

    def _advance(self, cluster: Cluster, experiment: Experiment, now: float) -> Experiment:
        step = (cluster.read.step or {}).get("experiment") or {}
        if experiment.phase == "":
            running = self._running[experiment.name] = self._start(cluster, experiment.name, step, now)
            destinations = tuple(
                Destination(part.service, part.pod_hash, part.weight)
                for part in running.parts
                if part.weight is not None
            )
            return replace(experiment, phase="Running", destinations=destinations)
        until = self._running[experiment.name].until if experiment.name in self._running else None
        if experiment.phase == "Running" and until is not None and now >= until:
            return replace(experiment, phase="Successful")
        return experiment

    def _start(self, cluster: Cluster, name: str, step: JsonObject, now: float) -> _Running:
        parts = [self._start_part(cluster, name, template) for template in step.get("templates") or []]
        duration, delay = seconds(step.get("duration")), step.get("scaleDownDelaySeconds")
        until = None if duration is None else now + duration
        return _Running(parts, until, SCALE_DOWN_DELAY if delay is None else float(delay))

    def _start_part(self, cluster: Cluster, experiment: str, template: JsonObject) -> _Part:
        read, service = cluster.read, f"{experiment}-{template['name']}"
        pod_template = self._find_template(read.stable_hash if template["specRef"] == "stable" else read.pod_hash)
        pods, pod_hash = self._start_pods(template["name"], pod_template), short_hash(service)
        ports = [
            {**port, "port": port["containerPort"], "targetPort": port["containerPort"], "protocol": "TCP"}
            for port in container_ports(pod_template)
        ]
        self._api.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": service, "namespace": self._namespace},
                "spec": {"selector": {**pods.labels, HASH_LABEL: pod_hash}, "ports": [_service_port(p) for p in ports]},
            }
        )
        return _Part(service, pod_hash, pods, template.get("weight"))

    def _end(self, name: str, running: _Running, now: float) -> None:
        """Take pods and Services away once their delay has passed."""
        running.gone = now + running.delay if running.gone is None else running.gone
        if now < running.gone:
            return
        for part in running.parts:
            self._api.delete("Service", self._namespace, part.service)
        del self._running[name]


def _service_port(port: JsonObject) -> JsonObject:
    return {key: value for key, value in port.items() if key != "containerPort"}
