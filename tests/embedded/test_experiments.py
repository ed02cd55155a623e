"""The experiment controller in small: pods and Services come, run for their time, and go after their delay."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.experiments import Experiments
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, Experiment
from rollouts_gwapi_plugin.embedded.host.rollout import HASH_LABEL, short_hash
from rollouts_gwapi_plugin.embedded.pods import VersionPods

NAME = "web-new-2-0"
SERVICES = [f"{NAME}-baseline", f"{NAME}-candidate"]


class Setup:
    """A Rollout at an experiment step, and a clock."""

    def __init__(self, stack: ExitStack, **step: Any) -> None:
        self.now = 0.0
        self.api = stack.enter_context(ApiServer())
        self.templates = {"old": self._template("v1", 8080), "": self._template("v2", 9090)}
        self.started: list[tuple[str, VersionPods]] = []

        def start(name: str, template: dict[str, Any]) -> VersionPods:
            pods = stack.enter_context(VersionPods(name, template, None))
            self.started.append((template["spec"]["containers"][0]["image"], pods))
            return pods

        self.experiments = Experiments(self.api, "shop", start, self._find, lambda: self.now)
        templates = [
            {"name": "baseline", "specRef": "stable", "weight": 5},
            {"name": "candidate", "specRef": "canary", "weight": 25},
            {"name": "unseen", "specRef": "canary"},
        ]
        steps = [{"experiment": {"duration": "60s", "templates": templates, **step}}]
        rollout = {
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"template": self.templates[""], "strategy": {"canary": {"steps": steps}}},
            "status": {"stableRS": "old"},
        }
        self.cluster = Cluster(rollout, experiment=Experiment(NAME))

    @staticmethod
    def _template(image: str, port: int) -> dict[str, Any]:
        containers = [{"image": image, "ports": [{"name": "http", "containerPort": port}]}]
        return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}

    def _find(self, pod_hash: str) -> dict[str, Any]:
        return self.templates["old" if pod_hash == "old" else ""]

    def at(self, now: float) -> str:
        """Reconcile at a time; return the experiment's phase."""
        self.now = now
        self.cluster = self.experiments.reconcile(self.cluster)
        return self.cluster.experiment.phase if self.cluster.experiment else "none"

    def services(self) -> list[str]:
        """Return the names of the experiment's Services with traffic that are there."""
        return [name for name in SERVICES if self.api.find("Service", "shop", name)]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Return a stack that ends what a test has started."""
    with ExitStack() as opened:
        yield opened


def test_from_start_to_end(stack: ExitStack) -> None:
    """It runs for its duration with Services that lead to its pods alone, and all is gone after the delay."""
    setup = Setup(stack, scaleDownDelaySeconds=10)

    assert setup.at(0) == "Running"
    assert setup.cluster.experiment is not None
    found = [(one.service_name, one.weight) for one in setup.cluster.experiment.destinations]
    assert found == [(SERVICES[0], 5), (SERVICES[1], 25)]
    assert [(image, pods.name) for image, pods in setup.started] == [
        ("v1", "baseline"),
        ("v2", "candidate"),
        ("v2", "unseen"),
    ]
    for name, port in zip(SERVICES, (8080, 9090), strict=True):
        spec = setup.api.read("Service", "shop", name)["spec"]
        assert spec["selector"] == {"app": "web", HASH_LABEL: short_hash(name)}
        assert [(one["name"], one["port"], one["targetPort"]) for one in spec["ports"]] == [("http", port, port)]
        assert sum(spec["selector"].items() <= dict(pod.labels).items() for pod in setup.experiments.pods()) == 1
    assert setup.experiments.backend_of(SERVICES[1]) == "candidate"
    assert setup.at(59) == "Running"
    assert setup.at(60) == "Successful"
    assert setup.at(69) == "Successful"
    assert setup.services() == SERVICES
    assert setup.at(70) == "Successful"
    assert (setup.services(), list(setup.experiments.pods())) == ([], [])
    assert setup.experiments.backend_of(SERVICES[1]) == ""


def test_dropped_by_the_controller(stack: ExitStack) -> None:
    """An experiment that the controller has forgotten ends, after Argo Rollouts' delay of 30 seconds."""
    setup = Setup(stack)
    setup.at(0)
    setup.cluster = replace(setup.cluster, experiment=None)

    assert setup.at(10) == "none"
    assert setup.at(39) == "none"
    assert setup.services() == SERVICES
    setup.at(40)
    assert setup.services() == []


def test_without_a_duration(stack: ExitStack) -> None:
    """It runs until somebody ends it."""
    setup = Setup(stack, duration=None)

    assert [setup.at(now) for now in (0, 1e6)] == ["Running", "Running"]
