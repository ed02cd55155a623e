"""The stateful property for RouteTables: the controller, users, conflicts, crashes and a second process.

A smaller sister of `machine`: two Rollouts share a RouteTable with routes of every section, weighted siblings, a canary
of the user's own and a route that is pinned to the canary. After every single write the judge of `gloo_model` looks at
RouteTable, MirrorPolicies and ledger; a settled rollout leaves what the user wrote, and nothing else.
"""

import shutil
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.service.gloo.world import crds, http
from tests.service.world import LEDGER, service
from tests.stateful.gloo_model import (
    EXPERIMENT_PREFIX,
    KEPT,
    SECTIONS,
    GlooJudge,
    Json,
    destinations,
    is_managed,
    names,
    share,
    users_of,
)
from tests.stateful.gloo_world import MORE_PLANS, PAIRS, SIDE_PLAN, WRITTEN, MortalPlugin, manifest, rollout
from tests.stateful.machine import PLANS, SETTLE_LIMIT

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.host import actions
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, Destination
from rollouts_gwapi_plugin.embedded.host.controller import Controller, Reconcile


class GlooMachine(RuleBasedStateMachine):
    """The world; `initialize` picks what the first Rollout does."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.api = ApiServer(crds=crds()).start()
        self.api.create(manifest())
        for name in ("s", "c", "t", "d"):
            self.api.create(service(name))
        self.judge = GlooJudge(PAIRS, users_of(self.live()["spec"]))
        self.original = deepcopy(self.live()["spec"])
        self.api.after_write(self._look)
        kubeconfig = self.api.write_kubeconfig(self.folder / "kubeconfig")
        self.plugin, self.old_leader = MortalPlugin(kubeconfig), MortalPlugin(kubeconfig)
        self.now = 0.0
        self.revision = 1
        # Whether name (True) or matchers (False) of the labelled route were edited since the plugin has seen it.
        self.edits: set[bool] = set()
        # Whether somebody edited weights of a pair, or a route's name or matchers: then the end only means the same.
        self.edited = False

    def _look(self, _change: object) -> None:
        config_map = self.api.find("ConfigMap", "shop", LEDGER) or {}
        self.judge.check(self.live(), self.api.list("MirrorPolicy", "shop"), config_map.get("data") or {})

    def live(self) -> Json:
        """Return the RouteTable as it is."""
        found: Json = self.api.read("RouteTable", "shop", "web")
        return found

    def teardown(self) -> None:
        """Settle, compare with what the user has, and end."""
        try:
            if hasattr(self, "controllers"):
                self._settle()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.api.stop()

    @initialize(plan=st.sampled_from(PLANS + MORE_PLANS), version=st.sampled_from([(1, 5), (1, 9)]))
    def start(self, plan: list[Json], version: tuple[int, int]) -> None:
        """Let both Rollouts finish their first revision, and begin the second."""
        web = rollout("web", PAIRS[0], plan, ["m-b", "m-a", "m-m"])
        side = rollout("side", PAIRS[1], SIDE_PLAN, ["m-side"])
        self.controllers = [
            Controller(Cluster(raw), self.plugin, version=version, clock=lambda: self.now) for raw in (web, side)
        ]
        for controller in self.controllers:
            self._run_until_promoted(controller)
            controller.act(lambda cluster: actions.new_revision(cluster, "v2"))
        self.revision = 2

    # The controller and its pods

    @rule(which=st.sampled_from([0, 0, 0, 1]), times=st.integers(1, 4))
    def reconcile(self, which: int, times: int) -> None:
        """Reconcile a Rollout, pods starting in between."""
        for _ in range(times):
            self._reconcile(self.controllers[which])
            self.controllers[which].act(lambda cluster: cluster.all_available())

    @rule(times=st.integers(1, 3), phase=st.sampled_from(["Running", "Running", "Successful"]))
    def reconcile_and_promote(self, times: int, phase: str) -> None:
        """Go on with the first Rollout, pauses promoted; one that is done begins the next revision."""
        if self.controllers[0].cluster.read.fully_promoted:
            self.another_revision(0)
        for _ in range(times):
            self.reconcile(0, 2)
            if self.controllers[0].cluster.experiment is None:
                self.controllers[0].act(actions.promote)
            else:
                self.experiment_goes_on(phase)

    @rule()
    def canary_pods_die(self) -> None:
        """No canary is available for a moment."""
        controller = self.controllers[0]
        if controller.cluster.new is not None and controller.cluster.new is not controller.cluster.stable:
            pods = replace(controller.cluster.new, available=0)
            controller.act(lambda cluster: cluster.with_replica_set(cluster.read.pod_hash, pods))
            self._reconcile(controller)

    @rule(
        which=st.sampled_from([0, 0, 1]), action=st.sampled_from(["promote", "retry", "retry", "promote_full", "abort"])
    )
    def user_acts(self, which: int, action: str) -> None:
        """Do what `kubectl argo rollouts` does."""
        self.controllers[which].act(getattr(actions, action))

    @rule(back=st.sampled_from([0, 0, 0, 0, 1, 2]))
    def another_revision(self, back: int) -> None:
        """Set a new template, or an earlier one again, in the middle of whatever goes on."""
        self.revision += back == 0
        image = f"v{max(1, self.revision - back)}"
        self.controllers[0].act(lambda cluster: actions.new_revision(cluster, image))

    @rule(phase=st.sampled_from(["Running", "Successful"]))
    def experiment_goes_on(self, phase: str) -> None:
        """Let the experiment run (its Service is made then) or end."""
        cluster = self.controllers[0].cluster
        if cluster.experiment is None:
            return
        name = f"{EXPERIMENT_PREFIX}{self.revision}"
        if self.api.find("Service", "shop", name) is None:
            self.api.create(service(name))
        running = replace(cluster.experiment, phase=phase, destinations=(Destination(name, "hash", 5),))
        self.controllers[0].act(lambda before: replace(before, experiment=running))

    # Everybody else

    @rule()
    def gitops_resets(self) -> None:
        """Apply the manifest by force: all routes are the user's again; our annotation is nobody's business."""
        self._user_writes(lambda _live: deepcopy(self.original))

    @rule(weight=st.integers(1, 99))
    def hand_edit_of_weights(self, weight: int) -> None:
        """Somebody edits the weights of a pair in place."""
        self.edited = True

        def edit(spec: Json) -> Json:
            for item in (item for section in SECTIONS for item in spec[section]):
                if {"s", "c"} == set(names(item)) and item.get("name") != "own" and not is_managed(item):
                    for raw in destinations(item):
                        raw["weight"] = weight if raw["ref"]["name"] == "s" else 100 - weight
            return spec

        self._user_writes(edit)

    @rule(path=st.sampled_from(["/a", "/c", "/d"]), rename=st.booleans())
    def user_edits_a_source(self, path: str, rename: bool) -> None:  # noqa: FBT001 - hypothesis gives it by name
        """Change the matchers or the name of a weighted route; managed routes have to follow.

        Not both before the plugin has seen one of them, while stable is out of the route: then it is another route.
        """
        if "s" not in names(self._policed()):
            self.edits.add(rename)
            if len(self.edits) > 1:
                self.edits.discard(rename)
                return
        self.edited = True

        def edit(spec: Json) -> Json:
            for item in spec["http"]:
                if item.get("labels", {}).get("team/policy") and not is_managed(item):
                    item["matchers"] = item["matchers"] if rename else [{"uri": {"prefix": path}}]
                    item["name"] = f"main{path.replace('/', '-')}" if rename else item["name"]
            return spec

        self._user_writes(edit)

    @rule(first=st.booleans())
    def user_adds_a_route(self, first: bool) -> None:  # noqa: FBT001 - hypothesis gives it by name
        """Add a route of the user's, before or behind all others."""
        if len(self.live()["spec"]["http"]) > 12:
            return
        number = len(self.judge.users["http"])
        added = http("other", f"new-{number}", matchers=[{"uri": {"exact": f"/n{number}"}}])
        self._user_writes(lambda spec: {**spec, "http": [added, *spec["http"]] if first else [*spec["http"], added]})

    @rule()
    def somebody_deletes_managed_routes(self) -> None:
        """Our routes vanish, the user's stay."""
        self._user_writes(lambda spec: {**spec, "http": [item for item in spec["http"] if not is_managed(item)]})

    @rule(change=st.sampled_from(["delete", "percentage"]))
    def somebody_changes_a_policy(self, change: str) -> None:
        """Delete or edit a MirrorPolicy."""
        for policy in self.api.list("MirrorPolicy", "shop"):
            if change == "delete":
                self.api.delete("MirrorPolicy", "shop", policy["metadata"]["name"])
            else:
                policy["spec"]["config"]["percentage"] = 99
                self.api.update(policy)

    @rule()
    def ledger_is_lost(self) -> None:
        """Somebody deletes the ConfigMap."""
        if self.api.find("ConfigMap", "shop", LEDGER) is None:
            return
        with self.api.store.condition:
            routes = {item["name"] for item in self.live()["spec"]["http"] if is_managed(item)}
            annotation = "rollouts.argoproj.io/managed-route"
            policies = self.api.list("MirrorPolicy", "shop")
            routes |= {policy["metadata"]["annotations"][annotation].partition("/")[2] for policy in policies}
            self.judge.unrecorded |= routes
            self.api.delete("ConfigMap", "shop", LEDGER)

    @rule(plural=st.sampled_from(WRITTEN), times=st.integers(1, 3))
    def writes_conflict(self, plural: str, times: int) -> None:
        """Refuse the next writes as stale."""
        self.api.faults.add(plural=plural, verb="update", status=409, times=times)

    @rule(
        plural=st.sampled_from(WRITTEN),
        verb=st.sampled_from(["update", "update", "create", "delete"]),
        status=st.sampled_from([403, 422]),
    )
    def a_write_is_refused(self, plural: str, verb: str, status: int) -> None:
        """One write is refused for good."""
        self.api.faults.add(plural=plural, verb=verb, status=status, times=1)

    @rule(writes=st.integers(1, 5))
    def process_will_die(self, writes: int) -> None:
        """Let the process die right after one of its next writes."""
        self.plugin.writes_left = writes

    @precondition(lambda self: self.plugin.writes_left is None)
    @rule(which=st.sampled_from([0, 0, 1]))
    def old_leader_is_late(self, which: int) -> None:
        """Another process makes the calls of this reconcile in the middle of ours: before one of our writes.

        Nothing is refused meanwhile: a race and a refused write may leave a record to be made by the next call.
        """
        self.api.faults.clear()
        controller = self.controllers[which]
        late = Controller(controller.cluster, self.old_leader, clock=lambda: self.now)
        left = [1]

        def meddle(request: Any) -> None:
            if left and request.verb in {"update", "create", "delete"} and request.plural in WRITTEN:
                left.pop()
                late.reconcile()

        self.api._api.before_write.append(meddle)
        try:
            controller.reconcile()
        finally:
            self.api._api.before_write.remove(meddle)

    # How it is done

    def _policed(self) -> Json:
        """Return the user's route with a label."""
        users = (item for item in self.live()["spec"]["http"] if not is_managed(item))
        return next(item for item in users if item.get("labels", {}).get("team/policy"))

    def _user_writes(self, change: Callable[[Json], Json]) -> None:
        with self.api.store.condition:
            value = self.live()
            value["spec"] = change(deepcopy(value["spec"]))
            wrote = users_of(value["spec"])
            # What the plugin has taken out or added is not the user's word on it.
            self.judge.users = {section: self._as_the_users(section, wrote[section]) for section in SECTIONS}
            self.api.update(value)

    def _as_the_users(self, section: str, wrote: list[Json]) -> list[Json]:
        """Return the routes with the pairs that the user wrote, where the change left the pair alone."""
        originals = [item for item in self.original[section] if {"s", "t"} & set(names(item))]
        result = []
        for item in wrote:
            is_ours = {"s", "c", "t", "d"} & set(names(item)) and item.get("name") != "pinned"
            origin = next((found for found in originals if _same_place(found, item)), None) if is_ours else None
            pair_of = destinations(origin) if origin else destinations(item)
            result.append(
                item if origin is None else {**item, "forwardTo": {**item["forwardTo"], "destinations": pair_of}}
            )
        return result

    def _reconcile(self, controller: Controller) -> Reconcile:
        done = controller.reconcile()
        self.now += 1
        if done.outcome.error or not done.plan.sets_weight or done.plan.desired is None:
            return done
        if controller is self.controllers[0]:
            self.edits.clear()
            found = share(self.live()["spec"]["tls"][0], "c")
            assert found == done.plan.desired.weight, f"W1: {found}, wanted {done.plan.desired.weight}"
        return done

    def _run_until_promoted(self, controller: Controller) -> None:
        for _ in range(SETTLE_LIMIT):
            self._reconcile(controller)
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
        for controller in self.controllers:
            self._run_until_promoted(controller)
        for _ in range(2):
            for controller in self.controllers:
                self._reconcile(controller)
        version = self.live()["metadata"]["resourceVersion"]
        for controller in self.controllers:
            self._reconcile(controller)
        final = self.live()
        assert final["metadata"]["resourceVersion"] == version, "W4: a finished rollout is still written"
        assert not any(map(is_managed, final["spec"]["http"])), f"A1: managed routes are left: {final['spec']['http']}"
        live = users_of(final["spec"])
        for section in SECTIONS:
            for now, wrote in zip(live[section], self.judge.users[section], strict=True):
                assert self.edited or now == wrote, f"U2: {now} was {wrote}"
                assert names(now) == names(wrote), f"U2: {now} was {wrote}"
                shares = [(share(now, name), share(wrote, name)) for name in names(now)]
                assert all(left == right for left, right in shares), f"U2: {now} was {wrote}"
        assert KEPT not in (final["metadata"].get("annotations") or {}), f"U2: {final['metadata']['annotations']}"
        config_map = self.api.find("ConfigMap", "shop", LEDGER) or {}
        assert not config_map.get("data"), f"the ledger is not empty: {config_map.get('data')}"
        left = {policy["metadata"]["annotations"]["rollouts.argoproj.io/managed-route"] for policy in self._policies()}
        assert {name.partition("/")[2] for name in left} <= self.judge.unrecorded, f"policies are left: {left}"

    def _policies(self) -> list[Json]:
        found: list[Json] = self.api.list("MirrorPolicy", "shop")
        return found


def _same_place(origin: Json, item: Json) -> bool:
    """Whether the route is the one of the manifest: by its label, its name, or what it matches."""
    if origin.get("labels") or item.get("labels"):
        return bool(origin.get("labels") == item.get("labels"))
    return bool(origin.get("name") == item.get("name") and origin.get("matchers") == item.get("matchers"))
