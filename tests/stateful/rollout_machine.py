"""The stateful property: the controller, users, conflicts, crashes and a second process against one API.

Two Rollouts share a route. Each has the controller of `embedded.host` (every branch of the real one's call sequence),
driven through the plugin's service in this process. In between users edit and reset the route, the ledger is lost,
writes conflict or fail, the process dies after any single write, and an old leader's process makes late calls. After
every single write a judge looks at the route; a settled rollout leaves what was there before.

A subclass says what kind of route that is, what of it is judged, and what else happens to it.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.service.world import LEDGER, service
from tests.stateful.plans import SIDE_PLAN, Plan, rollout
from tests.stateful.process import InProcess
from tests.stateful.records import EXPERIMENT_PREFIX, PAIRS, Json, Records, is_managed

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.host import actions
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, Destination
from rollouts_gwapi_plugin.embedded.host.controller import Controller

# More than the longest rollout here needs, pauses promoted and pods ready at once.
SETTLE_LIMIT = 60


class RolloutMachine(RuleBasedStateMachine):
    """The world; `initialize` picks what the first Rollout does."""

    kind: ClassVar[str]
    # Where in `spec` the managed routes are, beside the user's.
    section: ClassVar[str]
    # As many of the section's routes leave room for another one of the user's.
    room: ClassVar[int]
    # Plurals of what the plugin writes.
    written: ClassVar[tuple[str, ...]]
    refused_verbs: ClassVar[tuple[str, ...]]
    ledger_keys: ClassVar[tuple[str, ...]]
    # How a Rollout names the route to the plugin.
    plugins: ClassVar[Json]
    plans: ClassVar[tuple[Plan, ...]]

    def __init__(self, manifest: Json, services: Iterable[str], crds: Iterable[Json] = ()) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.api = ApiServer(crds=crds).start()
        self.api.create(manifest)
        for name in services:
            self.api.create(service(name))
        self.records = Records(self.ledger_keys)
        self.original = deepcopy(self.live()["spec"])
        self.api.after_write(lambda _change: self.look())
        kubeconfig = self.api.write_kubeconfig(self.folder / "kubeconfig")
        self.plugin, self.old_leader = InProcess(kubeconfig), InProcess(kubeconfig)
        self.controllers: list[Controller] = []
        self.now = 0.0
        self.revision = 1

    def teardown(self) -> None:
        """Settle, compare with what the user has, and end."""
        try:
            if self.controllers:
                self._settle()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.api.stop()

    @initialize(data=st.data(), version=st.sampled_from([(1, 5), (1, 8), (1, 9)]))
    def start(self, data: st.DataObject, version: tuple[int, int]) -> None:
        """Let both Rollouts finish their first revision, and begin the second."""
        plans = (data.draw(st.sampled_from(self.plans)), SIDE_PLAN)
        self.controllers = [
            Controller(Cluster(rollout(pair, plan, self.plugins)), self.plugin, version=version, clock=lambda: self.now)
            for pair, plan in zip(PAIRS, plans, strict=True)
        ]
        for which, controller in enumerate(self.controllers):
            self._run_until_promoted(which)
            controller.act(lambda cluster: actions.new_revision(cluster, "v2"))
        self.revision = 2

    # What a subclass judges and edits

    def look(self) -> None:
        """Raise AssertionError where an invariant does not hold right after a write."""
        raise NotImplementedError

    def weight_was_set(self, which: int, weight: int) -> None:
        """Raise AssertionError where a route has another weight than a Rollout's last call (W1)."""
        raise NotImplementedError

    def is_clean(self, final: Json) -> None:
        """Raise AssertionError where something is left of settled rollouts (A1, E1, U2)."""
        raise NotImplementedError

    def user_has(self, spec: Json) -> None:
        """Note what is the user's in a spec that a user is about to write."""
        raise NotImplementedError

    def with_weights(self, spec: Json, weight: int) -> Json:
        """Return the spec with another weight of stable where it is weighted, and the rest for the canary."""
        raise NotImplementedError

    def another_route(self, number: int) -> Json:
        """Make one more route of the user's."""
        raise NotImplementedError

    # The controller and its pods

    @rule(which=st.sampled_from([0, 0, 0, 1]), times=st.integers(1, 4))
    def reconcile(self, which: int, times: int) -> None:
        """Reconcile a Rollout, pods starting in between."""
        for _ in range(times):
            self._reconcile(which)
            self.controllers[which].act(lambda cluster: cluster.all_available())

    @rule()
    def canary_pods_die(self) -> None:
        """No canary is available for a moment."""
        controller = self.controllers[0]
        if controller.cluster.new is not None and controller.cluster.new is not controller.cluster.stable:
            pods = replace(controller.cluster.new, available=0)
            controller.act(lambda cluster: cluster.with_replica_set(cluster.read.pod_hash, pods))
            self._reconcile(0)

    @rule(
        which=st.sampled_from([0, 0, 1]), action=st.sampled_from(["promote", "retry", "retry", "promote_full", "abort"])
    )
    def user_acts(self, which: int, action: str) -> None:
        """Do what `kubectl argo rollouts` does."""
        self.controllers[which].act(getattr(actions, action))

    @rule()
    def new_revision(self) -> None:
        """Set a new template in the middle of whatever goes on."""
        self.revision += 1
        self.controllers[0].act(lambda cluster: actions.new_revision(cluster, f"v{self.revision}"))

    @rule(back=st.integers(1, 2))
    def roll_back(self, back: int) -> None:
        """Set an earlier template again."""
        image = f"v{max(1, self.revision - back)}"
        self.controllers[0].act(lambda cluster: actions.new_revision(cluster, image))

    @rule(phase=st.sampled_from(["Running", "Successful", "Failed"]))
    def experiment_goes_on(self, phase: str) -> None:
        """Let the experiment run (its Service is made then) or end."""
        cluster = self.controllers[0].cluster
        if cluster.experiment is None:
            return
        name = f"{EXPERIMENT_PREFIX}{self.revision}-1-base"
        if self.api.find("Service", "shop", name) is None:
            self.api.create(service(name))
        running = replace(cluster.experiment, phase=phase, destinations=(Destination(name, "hash", 5),))
        self.controllers[0].act(lambda before: replace(before, experiment=running))

    # Everybody else

    @rule()
    def gitops_resets(self) -> None:
        """Apply the manifest by force: all routes are the user's again; our annotation is nobody's business."""
        self.user_writes(lambda _live: deepcopy(self.original))

    @rule(weight=st.integers(1, 99))
    def hand_edit_of_weights(self, weight: int) -> None:
        """Somebody edits the weights of a pair in place."""
        self.user_writes(lambda spec: self.with_weights(spec, weight))

    @rule(first=st.booleans())
    def user_adds_a_route(self, first: bool) -> None:  # noqa: FBT001 - hypothesis gives it by name
        """Add a route of the user's, before or behind all others."""
        routes = self.routes()
        if len(routes) > self.room:
            return
        added = self.another_route(sum(not is_managed(item) for item in routes))
        self.user_edits(lambda live: [added, *live] if first else [*live, added])

    @rule()
    def somebody_deletes_managed_routes(self) -> None:
        """Our routes vanish, the user's stay."""
        self.user_edits(lambda live: [item for item in live if not is_managed(item)])

    @rule()
    def ledger_is_lost(self) -> None:
        """Somebody deletes the ConfigMap."""
        if self.api.find("ConfigMap", "shop", LEDGER) is None:
            return
        with self.api.store.condition:
            self.records.unrecorded |= self.managed_names()
            self.api.delete("ConfigMap", "shop", LEDGER)

    @rule(data=st.data(), times=st.integers(1, 3))
    def writes_conflict(self, data: st.DataObject, times: int) -> None:
        """Refuse the next writes as stale."""
        plural = data.draw(st.sampled_from(self.written))
        self.api.faults.add(plural=plural, verb="update", status=409, times=times)

    @rule(data=st.data(), status=st.sampled_from([403, 422]))
    def a_write_is_refused(self, data: st.DataObject, status: int) -> None:
        """One write is refused for good."""
        plural, verb = (data.draw(st.sampled_from(choice)) for choice in (self.written, self.refused_verbs))
        self.api.faults.add(plural=plural, verb=verb, status=status, times=1)

    @rule(writes=st.integers(1, 5))
    def process_will_die(self, writes: int) -> None:
        """Let the process die right after one of its next writes."""
        self.plugin.writes_left = writes

    @precondition(lambda self: self.plugin.writes_left is None)
    @rule(which=st.sampled_from([0, 0, 1]))
    def old_leader_is_late(self, which: int) -> None:
        """Another process makes the calls of this reconcile in the middle of ours: before one of our writes."""
        controller = self.controllers[which]
        late = Controller(controller.cluster, self.old_leader, clock=lambda: self.now)
        left = [1]

        def meddle(request: Any) -> None:
            if left and request.verb in {"update", "create", "delete"} and request.plural in self.written:
                left.pop()
                late.reconcile()

        self.api._api.before_write.append(meddle)
        try:
            controller.reconcile()
        finally:
            self.api._api.before_write.remove(meddle)

    # How it is done

    def live(self) -> Json:
        """Return the route as it is."""
        found: Json = self.api.read(self.kind, "shop", "web")
        return found

    def routes(self) -> list[Json]:
        """Return the managed routes and the user's beside them as they are."""
        found: list[Json] = self.live()["spec"][self.section]
        return found

    def managed_names(self) -> set[str]:
        """Return the names of the managed routes that something is there of."""
        return {item["name"] for item in self.routes() if is_managed(item)}

    def ledger(self) -> Json:
        """Return the ledger's data; empty where there is no ConfigMap."""
        data: Json = (self.api.find("ConfigMap", "shop", LEDGER) or {}).get("data") or {}
        return data

    def user_writes(self, change: Callable[[Json], Json]) -> None:
        """Let a user write another spec."""
        with self.api.store.condition:
            value = self.live()
            value["spec"] = change(deepcopy(value["spec"]))
            self.user_has(value["spec"])
            self.api.update(value)

    def user_edits(self, change: Callable[[list[Json]], list[Json]]) -> None:
        """Let a user change the section of the managed routes."""
        self.user_writes(lambda spec: {**spec, self.section: change(spec[self.section])})

    def _reconcile(self, which: int) -> None:
        done = self.controllers[which].reconcile()
        self.now += 1
        if not done.outcome.error and done.weight is not None:
            self.weight_was_set(which, done.weight)

    def _run_until_promoted(self, which: int) -> None:
        controller = self.controllers[which]
        for _ in range(SETTLE_LIMIT):
            self._reconcile(which)
            controller.act(lambda cluster: cluster.all_available())
            read = controller.cluster.read
            if read.stable_hash and read.fully_promoted and not read.changed:
                return
            if read.aborted:
                controller.act(actions.retry)
            if controller.cluster.experiment is not None:
                ended = replace(controller.cluster.experiment, phase="Successful")
                controller.cluster = replace(controller.cluster, experiment=ended)
            controller.act(actions.promote)
        raise AssertionError("the rollout never ends")

    def _settle(self) -> None:
        self.plugin.writes_left = None
        self.api.faults.clear()
        both = range(len(self.controllers))
        for which in both:
            self._run_until_promoted(which)
        for which in (*both, *both):
            self._reconcile(which)
        version = self.live()["metadata"]["resourceVersion"]
        for which in both:
            self._reconcile(which)
        final = self.live()
        assert final["metadata"]["resourceVersion"] == version, "W4: a finished rollout is still written"
        left = [item for item in final["spec"][self.section] if is_managed(item)]
        assert not left, f"A1: managed routes are left: {left}"
        self.is_clean(final)
        assert not self.ledger(), f"the ledger is not empty: {self.ledger()}"
