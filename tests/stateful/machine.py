"""The stateful property: the controller, users, conflicts, crashes and a second process against one API.

Two Rollouts share an HTTPRoute. Each has the controller of `embedded.host` (every branch of the real one's call
sequence), driven through the plugin's service in this process. In between users edit and reset the route, the ledger is
lost, writes conflict or fail, the process dies after any single write, and an old leader's process makes late calls.
After every single write the judge of `model` looks at the route; a settled rollout leaves what was there before.
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
from tests.service.world import LEDGER, PLUGIN_KEY, route, service
from tests.service.world import rule as rule_of
from tests.stateful.model import EXPERIMENT_PREFIX, Json, Judge, Pair, is_managed, user_part, weight_of

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.host import actions
from rollouts_gwapi_plugin.embedded.host.cluster import Call, Cluster, Destination
from rollouts_gwapi_plugin.embedded.host.controller import Controller, Reconcile, Reply
from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.model.calls import (
    HeaderRouteCall,
    MirrorRouteCall,
    RemoveManagedRoutesCall,
    UpdateHashCall,
    Verification,
    WeightCall,
)
from rollouts_gwapi_plugin.model.kube import EVENTS
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.observe.metrics import Metrics
from rollouts_gwapi_plugin.service.router import TrafficRouter

# More than the longest rollout here needs, pauses promoted and pods ready at once.
SETTLE_LIMIT = 60
PAIRS = (Pair("shop/web", "s", "c"), Pair("shop/side", "s2", "c2"))


class Crash(BaseException):
    """The process died; nothing of the plugin may catch it."""


class InProcess:
    """The plugin as the controller sees it, in this process; it can die after any write."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._router = self._start()
        self.writes_left: int | None = None

    def _start(self) -> TrafficRouter:
        router = TrafficRouter(ServiceSettings(kubeconfig=str(self._kubeconfig)), Metrics())
        client = router._connector.cluster().client
        client.put = self._dying(client.put)  # type: ignore[method-assign]
        client.post = self._dying(client.post)  # type: ignore[method-assign]
        return router

    def _dying(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def die_after(*arguments: Any, **options: Any) -> Any:
            result = write(*arguments, **options)
            if arguments[0] == EVENTS:
                # Events have a thread of their own; the process dies in the thread of a call here.
                return result
            if self.writes_left is not None and not options.get("dry_run"):
                self.writes_left -= 1
                if self.writes_left <= 0:
                    raise Crash
            return result

        return die_after

    def ping(self) -> None:
        """Do nothing: it is always there, since the controller starts it again."""

    def call(self, call: Call) -> Reply:
        """Make the call; a crash is what the controller sees of one, and the next call meets a new process."""
        try:
            return self._call(call.method, call.arguments)
        except PluginError as error:
            return Reply(error=str(error))
        except Crash:
            self._router._connector.cluster().client.close()
            self.writes_left = None
            self._router = self._start()
            return Reply(error="connection is shut down")

    def _call(self, method: str, arguments: Json) -> Reply:
        router = self._router
        match method:
            case "SetWeight":
                router.set_weight(WeightCall.model_validate(arguments))
            case "VerifyWeight":
                verified = router.verify_weight(WeightCall.model_validate(arguments))
                return Reply(verified=verified is Verification.VERIFIED)
            case "SetHeaderRoute":
                router.set_header_route(HeaderRouteCall.model_validate(arguments))
            case "SetMirrorRoute":
                router.set_mirror_route(MirrorRouteCall.model_validate(arguments))
            case "RemoveManagedRoutes":
                router.remove_managed_routes(RemoveManagedRoutesCall.model_validate(arguments))
            case "UpdateHash":
                router.update_hash(UpdateHashCall.model_validate(arguments))
        return Reply(text=router.type_name())


def _header(name: str, header: str = "X-A", value: str = "1") -> Json:
    return {"setHeaderRoute": {"name": name, "match": [{"headerName": header, "headerValue": {"exact": value}}]}}


def _mirror(name: str) -> Json:
    return {"setMirrorRoute": {"name": name, "percentage": 30, "match": [{"method": {"exact": "GET"}}]}}


EXPERIMENT: Json = {"experiment": {"templates": [{"name": "base", "specRef": "stable", "weight": 5}]}}
PLANS: list[list[Json]] = [
    [_header("m-a"), {"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {}}],
    [
        {"setCanaryScale": {"replicas": 1}},
        _header("m-a"),
        {"pause": {}},
        {"setWeight": 10},
        _header("m-b", "X-B"),
        {"pause": {}},
    ],
    [{"setWeight": 10}, _mirror("m-m"), {"pause": {}}, {"setMirrorRoute": {"name": "m-m"}}, {"setWeight": 50}],
    [
        _header("m-a"),
        _mirror("m-m"),
        {"setWeight": 30},
        {"pause": {}},
        {"setHeaderRoute": {"name": "m-a"}},
        {"pause": {}},
    ],
    [{"setWeight": 20}, EXPERIMENT, {"setWeight": 40}, {"pause": {}}],
    [_header("m-a"), EXPERIMENT, _header("m-b", "X-A", "2"), {"pause": {}}],
]
SIDE_PLAN: list[Json] = [_header("m-side"), {"setWeight": 50}, {"pause": {}}]


def _rollout(name: str, pair: Pair, steps: list[Json], managed: list[str]) -> Json:
    routing = {"managedRoutes": [{"name": item} for item in managed], "plugins": {PLUGIN_KEY: {"httpRoute": "web"}}}
    canary = {"stableService": pair.stable, "canaryService": pair.canary, "steps": steps, "trafficRouting": routing}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1},
        "spec": {
            "replicas": 4,
            "strategy": {"canary": canary},
            "template": {"spec": {"containers": [{"image": "v1"}]}},
        },
    }


def _manifest() -> list[Json]:
    """Return the user's rules: two with the pair of `web`, others that are nobody's business, one of `side`."""
    return [
        rule_of("s100 c0"),
        rule_of("s100 x7 c0", matches=[{"path": {"type": "PathPrefix", "value": "/b"}}], timeouts={"request": "9s"}),
        rule_of("c1", name="pinned", matches=[{"path": {"type": "PathPrefix", "value": "/pinned"}}]),
        rule_of("other1", matches=[{"path": {"type": "PathPrefix", "value": "/o"}}]),
        rule_of("s2100 c20", matches=[{"path": {"type": "PathPrefix", "value": "/t"}}]),
    ]


class Machine(RuleBasedStateMachine):
    """The world; `initialize` picks what the first Rollout does."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.api = ApiServer().start()
        rules = _manifest()
        rules[4]["backendRefs"] = [{"name": "s2", "port": 80, "weight": 100}, {"name": "c2", "port": 80, "weight": 0}]
        self.api.create(route(*rules))
        for name in ("s", "c", "s2", "c2", "x", "other"):
            self.api.create(service(name))
        self.judge = Judge(PAIRS, self.live_rules())
        self.original = deepcopy(self.judge.users)
        self.api.after_write(self._look)
        kubeconfig = self.api.write_kubeconfig(self.folder / "kubeconfig")
        self.plugin, self.old_leader = InProcess(kubeconfig), InProcess(kubeconfig)
        self.now = 0.0
        self.revision = 1
        self.faulty = False

    def _look(self, _change: object) -> None:
        config_map = self.api.find("ConfigMap", "shop", LEDGER) or {}
        self.judge.check(self.api.read("HTTPRoute", "shop", "web"), config_map.get("data") or {})

    def live_rules(self) -> list[Json]:
        """Return the route's rules as they are."""
        rules: list[Json] = self.api.read("HTTPRoute", "shop", "web")["spec"]["rules"]
        return rules

    def teardown(self) -> None:
        """Settle, compare with what the user has, and end."""
        try:
            if self.api.find("HTTPRoute", "shop", "web") is not None and hasattr(self, "controllers"):
                self._settle()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.api.stop()

    @initialize(plan=st.sampled_from(PLANS), version=st.sampled_from([(1, 5), (1, 8), (1, 9)]))
    def start(self, plan: list[Json], version: tuple[int, int]) -> None:
        """Let both Rollouts finish their first revision, and begin the second."""
        web = _rollout("web", PAIRS[0], plan, ["m-b", "m-a", "m-m"])
        side = _rollout("side", PAIRS[1], SIDE_PLAN, ["m-side"])
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
        controller = self.controllers[which]
        for _ in range(times):
            self._reconcile(controller, PAIRS[which])
            controller.act(lambda cluster: cluster.all_available())

    @rule()
    def canary_pods_die(self) -> None:
        """No canary is available for a moment."""
        controller = self.controllers[0]
        if controller.cluster.new is not None and controller.cluster.new is not controller.cluster.stable:
            pods = replace(controller.cluster.new, available=0)
            controller.act(lambda cluster: cluster.with_replica_set(cluster.read.pod_hash, pods))
            self._reconcile(controller, PAIRS[0])

    @rule(which=st.sampled_from([0, 0, 1]), action=st.sampled_from(["promote", "promote_full", "abort", "retry"]))
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
        name = f"{EXPERIMENT_PREFIX}{self.revision}"
        if self.api.find("Service", "shop", name) is None:
            self.api.create(service(name))
        destinations = (Destination(name, "hash", 5),)
        running = replace(cluster.experiment, phase=phase, destinations=destinations)
        self.controllers[0].act(lambda before: replace(before, experiment=running))

    # Everybody else

    @rule()
    def gitops_resets(self) -> None:
        """Apply the manifest by force: all rules are the user's again."""
        self._user_writes(lambda _live: deepcopy(self.original))

    @rule(weight=st.integers(1, 99))
    def hand_edit_of_weights(self, weight: int) -> None:
        """Somebody edits the pair's weights in place."""

        def edit(live: list[Json]) -> list[Json]:
            for item in live:
                if not is_managed(item) and PAIRS[0].weights(item):
                    for ref in item["backendRefs"]:
                        ref["weight"] = weight if ref["name"] in {"s", "c"} else ref.get("weight", 1)
            return live

        self._user_writes(edit)

    @rule(first=st.booleans())
    def user_adds_a_rule(self, first: bool) -> None:  # noqa: FBT001 - hypothesis gives it by name
        """Add a rule of the user's, before or behind all others."""
        if len(self.live_rules()) > 8:
            return
        number = len(self.judge.users)
        added = rule_of("new1", matches=[{"path": {"type": "Exact", "value": f"/n{number}"}}])
        # With the API's defaults, so that it reads back as it was written.
        added["backendRefs"] = [{**ref, "group": "", "kind": "Service"} for ref in added["backendRefs"]]
        self._user_writes(lambda live: [added, *live] if first else [*live, added])

    @rule(path=st.sampled_from(["/b", "/c", "/d"]))
    def user_edits_a_source(self, path: str) -> None:
        """Change the path of a weighted rule; managed rules have to follow."""

        def edit(live: list[Json]) -> list[Json]:
            users = [
                item for item in live if not is_managed(item) and "x" in [ref["name"] for ref in item["backendRefs"]]
            ]
            for item in users:
                item["matches"] = [{"path": {"type": "PathPrefix", "value": path}}]
            return live

        self._user_writes(edit)

    @rule()
    def somebody_deletes_managed_rules(self) -> None:
        """Our rules vanish, the user's stay."""
        self._user_writes(lambda live: [item for item in live if not is_managed(item)])

    @rule()
    def ledger_is_lost(self) -> None:
        """Somebody deletes the ConfigMap."""
        if self.api.find("ConfigMap", "shop", LEDGER) is None:
            return
        with self.api.store.condition:
            self.judge.unrecorded |= {item["name"] for item in self.live_rules() if is_managed(item)}
            self.api.delete("ConfigMap", "shop", LEDGER)

    @rule(plural=st.sampled_from(["httproutes", "configmaps"]), times=st.integers(1, 3))
    def writes_conflict(self, plural: str, times: int) -> None:
        """Refuse the next writes as stale."""
        self.api.faults.add(plural=plural, verb="update", status=409, times=times)

    @rule(plural=st.sampled_from(["httproutes", "configmaps"]), status=st.sampled_from([403, 422]))
    def a_write_is_refused(self, plural: str, status: int) -> None:
        """One write is refused for good."""
        self.api.faults.add(plural=plural, verb="update", status=status, times=1)

    @rule(writes=st.integers(1, 4))
    def process_will_die(self, writes: int) -> None:
        """Let the process die right after one of its next writes."""
        self.plugin.writes_left = writes

    @precondition(lambda self: self.plugin.writes_left is None)
    @rule(which=st.sampled_from([0, 0, 1]))
    def old_leader_is_late(self, which: int) -> None:
        """Another process makes the calls of this reconcile in the middle of ours: before each of our writes, once."""
        controller = self.controllers[which]
        late = Controller(controller.cluster, self.old_leader, clock=lambda: self.now)
        left = [1]

        def meddle(request: Any) -> None:
            if left and request.verb in {"update", "create"} and request.plural in {"httproutes", "configmaps"}:
                left.pop()
                late.reconcile()

        self.api._api.before_write.append(meddle)
        try:
            controller.reconcile()
        finally:
            self.api._api.before_write.remove(meddle)

    # How it is done

    def _user_writes(self, change: Callable[[list[Json]], list[Json]]) -> None:
        with self.api.store.condition:
            value = self.api.read("HTTPRoute", "shop", "web")
            rules = change(deepcopy(value["spec"]["rules"]))
            self.judge.users = [item for item in rules if not is_managed(item)]
            value["spec"]["rules"] = rules
            self.api.update(value)

    def _reconcile(self, controller: Controller, pair: Pair) -> Reconcile:
        done = controller.reconcile()
        self.now += 1
        if done.outcome.error or not done.plan.sets_weight or done.plan.desired is None:
            return done
        for item in self.live_rules():
            mirrors = any("requestMirror" in part for part in item.get("filters") or [])
            if pair.weights(item) and (not is_managed(item) or mirrors):
                assert weight_of(item, pair.canary) == done.plan.desired.weight, f"W1: {item}"
        return done

    def _run_until_promoted(self, controller: Controller) -> None:
        for _ in range(SETTLE_LIMIT):
            self._reconcile(controller, PAIRS[0] if controller is self.controllers[0] else PAIRS[1])
            controller.act(lambda cluster: cluster.all_available())
            read = controller.cluster.read
            if read.stable_hash and read.fully_promoted and not read.changed:
                return
            if read.aborted:
                controller.act(actions.retry)
            if controller.cluster.experiment is not None:
                controller.cluster = replace(
                    controller.cluster, experiment=replace(controller.cluster.experiment, phase="Successful")
                )
            controller.act(actions.promote)
        raise AssertionError("the rollout never ends")

    def _settle(self) -> None:
        self.plugin.writes_left = None
        self.api.faults.clear()
        for controller in self.controllers:
            self._run_until_promoted(controller)
        for _ in range(2):
            for controller, pair in zip(self.controllers, PAIRS, strict=True):
                self._reconcile(controller, pair)
        version = self.api.read("HTTPRoute", "shop", "web")["metadata"]["resourceVersion"]
        for controller, pair in zip(self.controllers, PAIRS, strict=True):
            self._reconcile(controller, pair)
        final = self.api.read("HTTPRoute", "shop", "web")
        rules = final["spec"]["rules"]
        assert final["metadata"]["resourceVersion"] == version, "W4: a finished rollout is still written"
        assert not any(map(is_managed, rules)), f"A1: managed rules are left: {rules}"
        assert user_part(rules, PAIRS) == user_part(self.judge.users, PAIRS)
        for item in rules:
            names = [ref["name"] for ref in item.get("backendRefs") or []]
            assert not any(name.startswith(EXPERIMENT_PREFIX) for name in names), f"E1: experiments are left: {item}"
            for pair in PAIRS:
                if pair.weights(item):
                    assert (weight_of(item, pair.stable), weight_of(item, pair.canary)) == (100, 0), f"U2: {item}"
        assert not final["metadata"].get("labels"), "U2: the label is left"
        assert not final["metadata"].get("annotations"), "U2: the annotation is left"
        config_map = self.api.find("ConfigMap", "shop", LEDGER) or {}
        assert not config_map.get("data"), f"the ledger is not empty: {config_map.get('data')}"
