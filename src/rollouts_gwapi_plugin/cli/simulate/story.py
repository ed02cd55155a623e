"""The controller's story on a stage: the first version, a second one through all steps, the end; or an abort.

Pods are there as soon as they are asked for, a pause passes by the simulation's own clock, one without an end is
promoted, experiments start and succeed. `problem` says why the story did not come to its end, if so.
"""

from dataclasses import replace
from typing import Final

from rollouts_gwapi_plugin.cli.manifests import as_new
from rollouts_gwapi_plugin.cli.rehearsal import experiment_shares, ports_of
from rollouts_gwapi_plugin.cli.simulate.stage import Routes, Stage
from rollouts_gwapi_plugin.embedded.host import actions
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, Destination, Experiment
from rollouts_gwapi_plugin.embedded.host.controller import Controller
from rollouts_gwapi_plugin.embedded.host.rollout import PAUSE_STEP, seconds
from rollouts_gwapi_plugin.model.base import JsonObject

# A step takes a handful of reconciles; this many without an end mean that it has none.
RECONCILES_A_STEP: Final = 20
# The controller tries a failed call again for ever; the second try shows whether that helps.
MAX_FAILURES: Final = 2
# Any time will do, as long as every run has the same.
START: Final = 1_700_000_000.0
IMAGE: Final = "simulated"


class Story:
    """One update of one Rollout; `before` are the routes between the first version and the second."""

    def __init__(self, stage: Stage, raw: JsonObject, abort_after: int | None) -> None:
        new = as_new(raw)
        rollout = {**new, "metadata": {"generation": 1, **new["metadata"]}, "status": {}}
        self._stage = stage
        self._raw = raw
        self._abort_after = abort_after
        self._now = START
        self._failures = 0
        self._controller = Controller(Cluster(rollout), stage, clock=lambda: self._now)
        self.before: Routes = {}
        self.reconciles = 0
        self.problem = ""

    def play(self) -> None:
        """Play to the end, or to where it can't go on."""
        self._stage.step = "first version"
        goes_on = self._until_nothing_moves()
        self.before = self._stage.routes()
        if not goes_on:
            return
        self._controller.act(lambda cluster: actions.new_revision(cluster, IMAGE))
        while self._until_nothing_moves(told=True) and self._move_on():
            pass

    def _until_nothing_moves(self, *, told: bool = False) -> bool:
        """Reconcile until that changes nothing more, and return whether it came to that.

        `told` says to name the step that each call belongs to.
        """
        for _ in range(RECONCILES_A_STEP * (len(self._controller.cluster.read.steps) + 1)):
            before = self._controller.cluster
            if told:
                self._stage.step = self._where()
            done = self._controller.reconcile()
            self.reconciles += 1
            self._controller.act(Cluster.all_available)
            self._failures = self._failures + 1 if done.outcome.error else 0
            if self._failures >= MAX_FAILURES:
                self.problem = f"{self._stage.step}: {done.outcome.error}"
                return False
            if self._abort_is_due(passed=True):
                self._controller.act(actions.abort)
            elif self._controller.cluster == before and not done.outcome.error:
                return True
        self.problem = f"{self._stage.step}: the reconciles do not come to an end"
        return False

    def _move_on(self) -> bool:
        """Do what time or a user does when nothing moves; return whether there was anything to do."""
        cluster = self._controller.cluster
        read = cluster.read
        pause = read.pause_condition(PAUSE_STEP)
        if self._abort_is_due(passed=False):
            self._controller.act(actions.abort)
        elif cluster.experiment is not None and cluster.experiment.phase != "Successful":
            self._controller.act(self._next_phase)
        elif pause is not None and read.step is not None:
            duration = seconds((read.step.get("pause") or {}).get("duration"))
            if duration is None:
                self._controller.act(actions.promote)
            else:
                self._now += duration + 1
        else:
            if not read.aborted and not read.fully_promoted:
                self.problem = f"{self._stage.step}: the rollout stands still"
            return False
        return True

    def _abort_is_due(self, *, passed: bool) -> bool:
        """Whether the step is done (`passed`) or stands, after which the user aborts."""
        read = self._controller.cluster.read
        if self._abort_after is None or read.aborted or read.index is None or read.fully_promoted:
            return False
        return read.index > self._abort_after if passed else read.index == self._abort_after

    def _next_phase(self, cluster: Cluster) -> Cluster:
        experiment = cluster.experiment
        if experiment is None:
            return cluster
        if experiment.phase == "Running":
            return replace(cluster, experiment=replace(experiment, phase="Successful"))
        destinations = tuple(self._destinations(experiment, cluster.read.index or 0))
        return replace(cluster, experiment=replace(experiment, phase="Running", destinations=destinations))

    def _destinations(self, experiment: Experiment, index: int) -> list[Destination]:
        """Return the destinations of a starting experiment, and make their Services as the controller does."""
        found = []
        for share in experiment_shares(self._raw, index):
            name = share.service or f"{experiment.name}-{share.template}"
            metadata = {"name": name, "namespace": self._raw["metadata"]["namespace"]}
            service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": self._ports()}}
            self._stage.add([service])
            found.append(Destination(name, IMAGE, share.weight))
        return found

    def _ports(self) -> list[JsonObject]:
        """Return the container ports of the template, which an experiment's Service has; else those of the routes."""
        template = ((self._raw["spec"].get("template") or {}).get("spec") or {}).get("containers") or []
        ports = [
            {"port": port["containerPort"], **({"name": port["name"]} if port.get("name") else {})}
            for container in template
            for port in container.get("ports") or []
        ]
        numbers = set().union(*(ports_of(route["spec"]) for route in self._stage.routes().values()))
        return ports or [{"name": f"port-{number}", "port": number} for number in sorted(numbers)]

    def _where(self) -> str:
        read = self._controller.cluster.read
        if read.aborted:
            return "aborted"
        if read.fully_promoted:
            return "promoted"
        if read.step is None:
            return "after the last step"
        kind = next(iter(read.step), "no step")
        value = read.step[kind]
        what = value.get("name", "") if isinstance(value, dict) else value
        return f"step {read.index}: {kind} {what}".rstrip()
