"""The record of a play: which state was in effect from when to when, what was asked in it, what stood on the API.

`Recorder` follows what the controller asks for (`follow`), and is told when a stage begins and ends. At the end of each
stage that was held it looks at the routes and the ledger, and notes what should not be there.
"""

from dataclasses import dataclass, field, replace

from rollouts_gwapi_plugin.cli.demo.asked import PROMOTED, Asked, Traffic
from rollouts_gwapi_plugin.cli.demo.examples import Example
from rollouts_gwapi_plugin.cli.demo.measure import Stage
from rollouts_gwapi_plugin.cli.demo.traces import RouteTrace, ledger_entries, leftovers, trace, wrong_weights
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster
from rollouts_gwapi_plugin.embedded.host.sequence import Plan, plan
from rollouts_gwapi_plugin.embedded.load import Load
from rollouts_gwapi_plugin.embedded.sandbox import ROUTE_KINDS, Sandbox
from rollouts_gwapi_plugin.model.base import JsonObject


@dataclass
class Recorder:
    """Writes the stages of one play; `news` is what has changed last, in words."""

    example: Example
    sandbox: Sandbox
    load: Load
    stages: list[Stage] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)
    news: str = ""
    _open: Stage | None = None
    _cluster: Cluster | None = None
    _before: dict[str, JsonObject] = field(default_factory=dict)
    _counted: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self._before = {_key(route): route for route in self._routes()}

    @property
    def open(self) -> bool:
        """Whether a stage is open."""
        return self._open is not None

    def changes(self, cluster: Cluster) -> bool:
        """Tell whether the next reconcile will change what happens to requests."""
        planned = plan(cluster)
        return len(planned.actions) > len(planned.calls) or self.traffic.after(planned) != self.traffic

    def follow(self, planned: Plan) -> None:
        """Take note of what a reconcile has asked for."""
        traffic = self.traffic.after(planned)
        if traffic != self.traffic:
            self.news = f"{self.traffic.name} -> {traffic.name}"
        self.traffic = traffic

    def begin(self, cluster: Cluster, version: str) -> dict[str, float]:
        """Open a stage; return the new version's share of each cohort."""
        self._cluster = cluster
        name = PROMOTED if version and cluster.read.fully_promoted else self.traffic.name
        by_weight = self.traffic.shares(cluster.read, lambda service: self.sandbox.backend_of(cluster, service))
        asked = {cohort.name: self._asked(cohort.name, name, by_weight) for cohort in self.example.cohorts}
        self._open = Stage(name, asked, self.load.now, self.load.now, held=False)
        return {cohort: one.shares.get(version, 0.0) for cohort, one in asked.items()}

    def hold(self) -> None:
        """Let the open stage count: nothing changes for a while."""
        if self._open is not None:
            self._open = replace(self._open, held=True)

    def end(self) -> None:
        """Close the stage; the API calls since the one before, which brought its state, are its own."""
        stage, self._open = self._open, None
        if stage is None:
            return
        if not stage.held:
            self.stages.append(replace(stage, until=self.load.now))
            return
        (reads, writes), before = self.sandbox.plugin_calls(), self._counted
        self._counted = (reads, writes)
        routes = tuple(trace(route, self._before[_key(route)], self._pair()) for route in self._routes())
        ledger = ledger_entries(self.sandbox.api.list("ConfigMap", self.sandbox.namespace), self._rollout())
        done = replace(
            stage,
            until=self.load.now,
            reads=reads - before[0],
            writes=writes - before[1],
            routes=routes,
            ledger=ledger,
        )
        self.stages.append(done)
        self.problems += [f"{stage.name}: {problem}" for problem in self._wrong(done)]

    def _asked(self, cohort: str, stage: str, by_weight: dict[str, float]) -> Asked:
        return self.example.expectations[cohort].asked(stage, by_weight)

    def _wrong(self, stage: Stage) -> list[str]:
        """Return what is on the API and should not be, or should be and is not."""
        found: list[str] = []
        if self._cluster is None:
            return found
        weights = self.traffic.weights(self._cluster.read)
        for route in stage.routes:
            found.append(wrong_weights(route, weights))
            if self.traffic.clean:
                found.append(leftovers(route, self._first(route), done=stage.name == PROMOTED))
        if self.traffic.clean and stage.ledger:
            found.append(f"the ledger has entries of {self._rollout()} on {stage.ledger} routes, none were expected")
        if self.traffic.clean:
            # An example has none of its own.
            left = [one["metadata"]["name"] for one in self.sandbox.api.list("MirrorPolicy", self.sandbox.namespace)]
            found.append(f"MirrorPolicies are left: {', '.join(left)}" if left else "")
        return [problem for problem in found if problem]

    def _routes(self) -> list[JsonObject]:
        return [route for kind in ROUTE_KINDS for route in self.sandbox.api.list(kind, self.sandbox.namespace)]

    def _first(self, route: RouteTrace) -> JsonObject:
        return self._before[_key(route.raw)]

    def _pair(self) -> tuple[str, str]:
        canary = self.example.rollout["spec"]["strategy"]["canary"]
        return canary["stableService"], canary["canaryService"]

    def _rollout(self) -> str:
        metadata = self.example.rollout["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"


def _key(route: JsonObject) -> str:
    return f"{route['kind']} {route['metadata']['name']}"
