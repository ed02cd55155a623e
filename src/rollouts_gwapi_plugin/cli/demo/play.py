"""The play: deploys a first version, sends load, releases a second, and notes what was asked and what came.

`Play.run` goes through the Rollout's steps as the controller does, reconciling at once while something changes and
each `IDLE_SECONDS` while nothing does; pauses pass `speed` times as fast as they are written. A stage begins when the
weight that the plugin has set is in effect at the Gateway, and ends before the next change. What `state` gives is for
a view that looks on from another thread.
"""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from rollouts_gwapi_plugin.cli.demo.examples import Example
from rollouts_gwapi_plugin.cli.demo.measure import Share, Stage, share
from rollouts_gwapi_plugin.embedded.host import actions
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster
from rollouts_gwapi_plugin.embedded.host.controller import Controller, Reconcile
from rollouts_gwapi_plugin.embedded.host.process import ChildPlugin
from rollouts_gwapi_plugin.embedded.host.sequence import plan
from rollouts_gwapi_plugin.embedded.load import Answer, Load
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


@dataclass(frozen=True)
class Result:
    """What the play measured; `timeline` has the asked share at each change."""

    example: Example
    shares: tuple[Share, ...]
    answers: tuple[Answer, ...]
    timeline: tuple[tuple[float, float], ...]
    version: str
    start_seconds: float
    problems: tuple[str, ...]

    @property
    def lost(self) -> list[Answer]:
        """Requests without a good answer."""
        return [answer for answer in self.answers if answer.lost]


@dataclass
class State:
    """What a view shows; written by the play alone."""

    step: int | None = None
    asked: float = 0.0
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
        self._stages: list[Stage] = []
        self._timeline: list[tuple[float, float]] = []
        self._problems: list[str] = []
        self._open: Stage | None = None
        self._counted = (0, 0)
        self._held = False

    def run(self, say: Say) -> Result:
        """Play; `say` gets a line for everything that happens."""
        self._say = say
        with ExitStack() as stack:
            namespace = self.example.rollout["metadata"]["namespace"]
            sandbox = self._sandbox = stack.enter_context(Sandbox(self.example.manifests, namespace))
            environment = {"KUBECONFIG": str(sandbox.kubeconfig)}
            plugin = stack.enter_context(ChildPlugin(self.options.command, environment, on_log=self._log))
            say(f"plugin started in {plugin.start_seconds:.2f} s: {plugin.process.line.protocol} on a unix socket")
            rollout = {**self.example.rollout, "metadata": {"generation": 1, **self.example.rollout["metadata"]}}
            self._controller = Controller(Cluster(rollout), plugin, switch=sandbox.switch, clock=self._clock())
            self._deploy()
            self.load = stack.enter_context(Load(sandbox.gateway.url(), list(self.example.cohorts)))
            self._release(self.load)
        answers = tuple(self.load.answers())
        shares = tuple(share(stage, list(answers), self.version) for stage in self._stages)
        self._problems += [one.problem for one in shares if one.problem]
        self._problems += [f"{len(lost)} requests were lost"] if (lost := [one for one in answers if one.lost]) else []
        return Result(
            self.example,
            shares,
            answers,
            tuple(self._timeline),
            self.version,
            plugin.start_seconds,
            tuple(self._problems),
        )

    def _clock(self) -> Callable[[], float]:
        """Return the clock of the manifest's time."""
        began, real = time.time(), time.monotonic()
        return lambda: began + (time.monotonic() - real) * self.options.speed

    def _deploy(self) -> None:
        """Bring the first version up."""
        before = None
        while before != self._controller.cluster:
            before = self._controller.cluster
            done = self._controller.reconcile()
            if done.outcome.error:
                raise Unavailable(f"the first version can't be deployed: {done.outcome.error}")
            self._controller.act(self._sandbox.run_pods)
        self._sandbox.settle()
        self._say(
            f"first version deployed: {self.example.rollout['spec']['template']['spec']['containers'][0]['image']}"
        )

    def _release(self, load: Load) -> None:
        """Release the second version and go through all steps, under load."""
        self._begin(load)
        self._hold(load, self.options.hold)
        self._controller.act(lambda cluster: actions.new_revision(cluster, self.example.image))
        self.version = self.example.image.rpartition(":")[2]
        self._say(f"new version: {self.example.image}")
        if not self._progress(load, time.monotonic() + MAX_SECONDS):
            self._problems.append(f"the rollout did not end, it stands at step {self._controller.cluster.read.index}")
        self._end(load)

    def _progress(self, load: Load, deadline: float) -> bool:
        """Reconcile until the rollout has ended; return whether it has."""
        failures = 0
        while time.monotonic() < deadline and failures < MAX_FAILURES:
            done, changed = self._turn(load)
            failures = failures + 1 if done.outcome.error else 0
            if done.outcome.error:
                self._say(f"failed, tried again: {done.outcome.error}")
                load.wait(RETRY_SECONDS)
            elif not changed and self._controller.cluster.read.fully_promoted:
                self._hold(load, self.options.hold)
                self.state.status = "done"
                return True
            elif not changed:
                self._idle(load)
        return False

    def _turn(self, load: Load) -> tuple[Reconcile, bool]:
        """Reconcile once; close the stage before a change and open the next one when it is in effect."""
        before = self._controller.cluster
        if self._changes_traffic(before):
            self._end(load)
        self.state.reads, self.state.writes = self._sandbox.plugin_calls()
        done = self._controller.reconcile()
        self._controller.act(self._sandbox.run_pods)
        if self._open is None and not done.outcome.error:
            self._sandbox.settle()
            self._begin(load)
        self._tell(before)
        return done, before != self._controller.cluster

    def _changes_traffic(self, cluster: Cluster) -> bool:
        planned = plan(cluster)
        switches = len(planned.actions) > len(planned.calls)
        weight = planned.desired.weight if planned.desired and planned.sets_weight else cluster.read.canary_weight
        return switches or weight != (cluster.read.canary_weight or 0)

    def _asked(self) -> float:
        """Return the new version's share, by the weight set last and by where the Services lead."""
        cluster = self._controller.cluster
        read, new = cluster.read, cluster.read.pod_hash
        if not self.version:
            return 0.0
        stable, canary = (cluster.selectors.get(service) == new for service in read.services())
        weight = read.canary_weight or 0
        return (weight * canary + (read.max_weight - weight) * stable) / read.max_weight

    def _begin(self, load: Load) -> None:
        asked = self._asked()
        weight = self._controller.cluster.read.canary_weight or 0
        promoted = self.version and self._controller.cluster.read.fully_promoted
        name = "promoted" if promoted else f"weight {weight}"
        self._open, self._held = Stage(name, asked, load.now, load.now), False
        self._timeline.append((load.now, asked))
        self.state.asked = asked

    def _end(self, load: Load) -> None:
        """Close the stage; the API calls since the one before, which brought its weight, are its own."""
        stage, self._open = self._open, None
        if stage is not None and self._held:
            (reads, writes), before = self._sandbox.plugin_calls(), self._counted
            self._counted = (reads, writes)
            self._stages.append(replace(stage, until=load.now, reads=reads - before[0], writes=writes - before[1]))

    def _hold(self, load: Load, seconds: float) -> None:
        """Keep everything as it is."""
        self._held = True
        load.wait(seconds)

    def _idle(self, load: Load) -> None:
        """Wait for a pause to pass; one without an end is ended after a while."""
        step = self._controller.cluster.read.step or {}
        if step.get("pause") is not None and step["pause"].get("duration") is None:
            self._hold(load, self.options.hold)
            self._controller.act(actions.promote)
            self._say("promoted by hand")
            return
        self._hold(load, IDLE_SECONDS)

    def _tell(self, before: Cluster) -> None:
        after = self._controller.cluster.read
        self.state.reads, self.state.writes = self._sandbox.plugin_calls()
        self.state.step = after.index
        if (before.read.canary_weight or 0) != (after.canary_weight or 0):
            self._say(f"weight {before.read.canary_weight or 0} -> {after.canary_weight or 0}")
        if before.read.stable_hash != after.stable_hash:
            self._say("promoted: the stable Service leads to the new version")
        self.state.status = "paused" if after.status.get("pauseConditions") else "progressing"

    def _log(self, line: str) -> None:
        """Show what the plugin warns about."""
        try:
            entry: Any = json.loads(line)
        except ValueError:
            return
        if isinstance(entry, dict) and entry.get("@level") in {"warn", "error"}:
            self._say(f"plugin {entry['@level']}: {entry.get('@message')}")
