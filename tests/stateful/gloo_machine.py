"""The stateful property for RouteTables.

The user's has routes of every section, weighted siblings, a canary of the user's own and one pinned to the canary. What
is the user's is told by the places of the manifest: while stable is out of a route, its destinations do not show it.
"""

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.service.gloo.world import KEPT, KEY, crds, destination, http, table
from tests.stateful.gloo_model import LEDGER_KEYS, SECTIONS, GlooJudge, destinations, names, route_of, share, users_of
from tests.stateful.plans import FULL_PLANS, PLANS
from tests.stateful.records import PAIRS, Json, is_managed
from tests.stateful.rollout_machine import RolloutMachine

from rollouts_gwapi_plugin.embedded.host import actions


def _manifest() -> Json:
    """Return the user's RouteTable."""
    own = {**destination("c", 0), "port": {"name": "canary"}, "retries": 2}
    return table(
        http("s", "main", matchers=[{"uri": {"prefix": "/a"}}], labels={"team/policy": "x"}),
        http("s60 x40", "shared", matchers=[{"uri": {"prefix": "/b"}}], forwardTo={"pathRewrite": "/"}, later={"a": 1}),
        {"name": "own", "forwardTo": {"destinations": [destination("s", 100), own]}, "matchers": [{"method": "PUT"}]},
        http("c", "pinned", matchers=[{"uri": {"exact": "/pinned"}}]),
        http("t y20", "side", matchers=[{"uri": {"prefix": "/t"}}]),
        http("other", "free"),
        tcp=({**http("s70 x30"), "matchers": [{"port": 1}]},),
        tls=({**http("s"), "matchers": [{"sniHosts": ["a"]}]},),
    )


class GlooMachine(RolloutMachine):
    """Two Rollouts on a RouteTable, with MirrorPolicies."""

    kind = "RouteTable"
    section = "http"
    room = 12
    written = ("routetables", "configmaps", "mirrorpolicies")
    refused_verbs = ("update", "update", "create", "delete")
    ledger_keys = LEDGER_KEYS
    plugins: ClassVar[Json] = {KEY: {"routeTableSelector": {"name": "web"}}}
    plans = PLANS + FULL_PLANS

    def __init__(self) -> None:
        super().__init__(_manifest(), ("s", "c", "t", "d"), crds())
        self.judge = GlooJudge(PAIRS, users_of(self.original), self.records)
        # Whether name (True) or matchers (False) of the labelled route were edited since the plugin has seen it.
        self.edits: set[bool] = set()
        # Whether somebody edited weights of a pair, or a route's name or matchers: then the end only means the same.
        self.edited = False

    def look(self) -> None:
        """Ask the judge of `gloo_model`."""
        self.judge.check(self.live(), self._policies(), self.ledger())

    def weight_was_set(self, which: int, weight: int) -> None:
        """Ask the route of `tls`, which is the first Rollout's, for the weight of the canary."""
        if which == 0:
            self.edits.clear()
            found = share(self.live()["spec"]["tls"][0], "c")
            assert found == weight, f"W1: {found}, wanted {weight}"

    def is_clean(self, final: Json) -> None:
        """Only what the user wrote is left; after an edit of ours and theirs, what means the same."""
        live = users_of(final["spec"])
        for section in SECTIONS:
            for now, wrote in zip(live[section], self.judge.users[section], strict=True):
                assert self.edited or now == wrote, f"U2: {now} was {wrote}"
                assert names(now) == names(wrote), f"U2: {now} was {wrote}"
                shares = [(share(now, name), share(wrote, name)) for name in names(now)]
                assert all(left == right for left, right in shares), f"U2: {now} was {wrote}"
        assert KEPT not in (final["metadata"].get("annotations") or {}), f"U2: {final['metadata']['annotations']}"
        left = {route_of(policy) for policy in self._policies()}
        assert left <= self.records.unrecorded, f"policies are left: {left}"

    def user_has(self, spec: Json) -> None:
        """Take the pairs as they were: what the plugin has taken out or added is not the user's word on it."""
        wrote = users_of(spec)
        self.judge.users = {section: self._as_the_users(section, wrote[section]) for section in SECTIONS}

    def with_weights(self, spec: Json, weight: int) -> Json:
        """Weight the first pair in all sections."""
        self.edited = True
        for item in (item for section in SECTIONS for item in spec[section]):
            if {"s", "c"} == set(names(item)) and item.get("name") != "own" and not is_managed(item):
                for raw in destinations(item):
                    raw["weight"] = weight if raw["ref"]["name"] == "s" else 100 - weight
        return spec

    def another_route(self, number: int) -> Json:
        """Make a route with a path of its own."""
        return http("other", f"new-{number}", matchers=[{"uri": {"exact": f"/n{number}"}}])

    def managed_names(self) -> set[str]:
        """Return those of the policies, too."""
        return super().managed_names() | {route_of(policy) for policy in self._policies()}

    @rule(times=st.integers(1, 3), phase=st.sampled_from(["Running", "Running", "Successful"]))
    def reconcile_and_promote(self, times: int, phase: str) -> None:
        """Go on with the first Rollout, pauses promoted; one that is done begins the next revision."""
        if self.controllers[0].cluster.read.fully_promoted:
            self.new_revision()
        for _ in range(times):
            self.reconcile(0, 2)
            if self.controllers[0].cluster.experiment is None:
                self.controllers[0].act(actions.promote)
            else:
                self.experiment_goes_on(phase)

    @precondition(lambda self: self.plugin.writes_left is None)
    @rule(which=st.sampled_from([0, 0, 1]))
    def old_leader_is_late(self, which: int) -> None:
        """Nothing is refused meanwhile: a race and a refused write may leave a record to be made by the next call."""
        self.api.faults.clear()
        super().old_leader_is_late(which)

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

        def edit(live: list[Json]) -> list[Json]:
            for item in live:
                if item.get("labels", {}).get("team/policy") and not is_managed(item):
                    item["matchers"] = item["matchers"] if rename else [{"uri": {"prefix": path}}]
                    item["name"] = f"main{path.replace('/', '-')}" if rename else item["name"]
            return live

        self.user_edits(edit)

    @rule(change=st.sampled_from(["delete", "percentage"]))
    def somebody_changes_a_policy(self, change: str) -> None:
        """Delete or edit a MirrorPolicy."""
        for policy in self._policies():
            if change == "delete":
                self.api.delete("MirrorPolicy", "shop", policy["metadata"]["name"])
            else:
                policy["spec"]["config"]["percentage"] = 99
                self.api.update(policy)

    def _policed(self) -> Json:
        """Return the user's route with a label."""
        users = (item for item in self.routes() if not is_managed(item))
        return next(item for item in users if item.get("labels", {}).get("team/policy"))

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

    def _policies(self) -> list[Json]:
        found: list[Json] = self.api.list("MirrorPolicy", "shop")
        return found


def _same_place(origin: Json, item: Json) -> bool:
    """Whether the route is the one of the manifest: by its label, its name, or what it matches."""
    if origin.get("labels") or item.get("labels"):
        return bool(origin.get("labels") == item.get("labels"))
    return bool(origin.get("name") == item.get("name") and origin.get("matchers") == item.get("matchers"))
