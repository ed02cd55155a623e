"""The play: deploys a first version, sends load, releases a second, and notes what was asked and what came.

`Play.run` goes through the Rollout's steps as the controller does, reconciling at once while something changes and
each `IDLE_SECONDS` while nothing does; pauses and experiments pass `speed` times as fast as they are written. A stage
begins when what the plugin has set is in effect at the Gateway, and ends before the next change. What `state` gives is
for a view that looks on from another thread.
"""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from rollouts_gwapi_plugin.cli.demo.examples import Example
from rollouts_gwapi_plugin.cli.demo.result import Result, conclude
from rollouts_gwapi_plugin.cli.demo.stages import Recorder
from rollouts_gwapi_plugin.embedded.host import actions
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster
from rollouts_gwapi_plugin.embedded.host.controller import Controller, Reconcile
from rollouts_gwapi_plugin.embedded.host.process import ChildPlugin
from rollouts_gwapi_plugin.embedded.load import Load
from rollouts_gwapi_plugin.embedded.pods import VERSION_LABEL
from rollouts_gwapi_plugin.embedded.sandbox import Sandbox
from rollouts_gwapi_plugin.errors import Unavailable

# While nothing changes the controller looks in this often; the real one does at events, and every 15 minutes.
IDLE_SECONDS = 0.5
# A stage without a pause of its own (before the update, after it) is held as long as this pause would be.
DEFAULT_PAUSE = 30.0
# A call that fails is tried again, as the controller's queue does, but not for ever.
MAX_FAILURES = 20
RETRY_SECONDS = 0.25
# How long the whole play may take, whatever goes wrong; in the manifest's time, several of the longest pauses.
MAX_SECONDS = 300.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """How to play: the plugin's command, and how many times faster than the manifest."""

    command: tuple[str, ...]
    speed: float

    @property
    def hold(self) -> float:
        """How long a stage without a pause of its own is held."""
        return DEFAULT_PAUSE / self.speed


@dataclass
class State:
    """What a view shows; written by the play alone. `asked` has the new version's share of each cohort."""

    step: int | None = None
    asked: dict[str, float] = field(default_factory=dict)
    status: str = "starting"
    reads: int = 0
    writes: int = 0
    messages: list[str] = field(default_factory=list)


class Play:
    """One performance of an example."""

    def __init__(self, example: Example, options: Options) -> None:
        self.example = example
        self.options = options
        self.state = State()
        self.load: Load | None = None
        self.version = ""
        self._say: Say = lambda _: None
        self._ended = False

    def run(self, say: Say) -> Result:
        """Play; `say` gets a line for everything that happens."""
        self._say = say
        clock = self._clock()
        with ExitStack() as stack:
            namespace = self.example.rollout["metadata"]["namespace"]
            sandbox = self._sandbox = stack.enter_context(Sandbox(self.example.manifests, namespace, clock=clock))
            environment = {"KUBECONFIG": str(sandbox.kubeconfig)}
            plugin = stack.enter_context(ChildPlugin(self.options.command, environment, on_log=self._log))
            say(f"plugin started in {plugin.start_seconds:.2f} s: {plugin.process.line.protocol} on a unix socket")
            rollout = {**self.example.rollout, "metadata": {"generation": 1, **self.example.rollout["metadata"]}}
            self._controller = Controller(Cluster(rollout), plugin, switch=sandbox.switch, clock=clock)
            self._deploy()
            urls = {cohort.listener: sandbox.gateway.url(cohort.listener) for cohort in self.example.cohorts}
            load = Load(urls, self.example.cohorts, trust=sandbox.certificate_pem)
            self._stages = Recorder(self.example, sandbox, load)
            self.load = stack.enter_context(load)
            self._release(load)
        problems = [] if self._ended else [f"the rollout did not end, it stands at step {self._cluster.read.index}"]
        return conclude(self._stages, load.answers(), sandbox.times, plugin.start_seconds, problems)

    @property
    def _cluster(self) -> Cluster:
        return self._controller.cluster

    def _clock(self) -> Callable[[], float]:
        """Return the clock of the manifest's time."""
        began, real = time.time(), time.monotonic()
        return lambda: began + (time.monotonic() - real) * self.options.speed

    def _deploy(self) -> None:
        """Bring the first version up."""
        before = None
        while before != self._cluster:
            before = self._cluster
            done = self._controller.reconcile()
            if done.outcome.error:
                raise Unavailable(f"the first version can't be deployed: {done.outcome.error}")
            self._controller.act(self._sandbox.run_pods)
        self._sandbox.settle()
        self._say("first version deployed")

    def _release(self, load: Load) -> None:
        """Release the second version and go through all steps, under load."""
        self._begin()
        self._hold(load, self.options.hold)
        self._controller.act(self._new_revision)
        self.version = self.example.new_version
        self._say(f"new version: {self.version}")
        self._ended = self._progress(load, time.monotonic() + MAX_SECONDS)
        self._stages.end()

    def _new_revision(self, cluster: Cluster) -> Cluster:
        if self.example.version:
            return actions.label_template(cluster, VERSION_LABEL, self.example.version)
        return actions.new_revision(cluster, self.example.image)

    def _progress(self, load: Load, deadline: float) -> bool:
        """Reconcile until the rollout has ended; return whether it has."""
        failures = 0
        while time.monotonic() < deadline and failures < MAX_FAILURES:
            done, changed = self._turn()
            failures = failures + 1 if done.outcome.error else 0
            if done.outcome.error:
                self._say(f"failed, tried again: {done.outcome.error}")
                load.wait(RETRY_SECONDS)
            elif not changed and self._cluster.read.fully_promoted:
                self._hold(load, self.options.hold)
                self.state.status = "done"
                return True
            elif not changed:
                self._idle(load)
        return False

    def _turn(self) -> tuple[Reconcile, bool]:
        """Reconcile once; close the stage before a change and open the next one when it is in effect."""
        before = self._cluster
        if self._stages.changes(before):
            self._stages.end()
        self.state.reads, self.state.writes = self._sandbox.plugin_calls()
        done = self._controller.reconcile()
        if not done.outcome.error:
            self._stages.follow(done.plan)
        self._controller.act(self._sandbox.run_pods)
        if not self._stages.open and not done.outcome.error:
            self._sandbox.settle()
            self._begin()
        self._tell(before)
        return done, before != self._cluster

    def _begin(self) -> None:
        self.state.asked = self._stages.begin(self._cluster, self.version)

    def _hold(self, load: Load, seconds: float) -> None:
        """Keep everything as it is."""
        self._stages.hold()
        load.wait(seconds)

    def _idle(self, load: Load) -> None:
        """Wait for a pause or an experiment to pass; a pause without an end is ended after a while."""
        step = self._cluster.read.step or {}
        if step.get("pause") is not None and step["pause"].get("duration") is None:
            self._hold(load, self.options.hold)
            self._controller.act(actions.promote)
            self._say("promoted by hand")
            return
        self._hold(load, IDLE_SECONDS)
        # An experiment goes on by itself.
        self._controller.act(self._sandbox.run_pods)

    def _tell(self, before: Cluster) -> None:
        after = self._cluster.read
        self.state.reads, self.state.writes = self._sandbox.plugin_calls()
        self.state.step = after.index
        if before.read.stable_hash != after.stable_hash:
            self._say("promoted: the stable Service leads to the new version")
        if self._stages.news:
            # All weight taken off the canary is no outage once stable is the new version.
            now = (
                f" ({after.services()[0]} leads to {self.version} now)" if self.version and after.fully_promoted else ""
            )
            self._say(self._stages.news + now)
            self._stages.news = ""
        self.state.status = "paused" if after.status.get("pauseConditions") else "progressing"

    def _log(self, line: str) -> None:
        """Show what the plugin warns about."""
        try:
            entry: Any = json.loads(line)
        except ValueError:
            return
        if isinstance(entry, dict) and entry.get("@level") in {"warn", "error"}:
            self._say(f"plugin {entry['@level']}: {entry.get('@message')}")
