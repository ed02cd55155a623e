"""The stateful property for HTTPRoutes: rules with the pair, one with another backend beside it, and one pinned."""

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.service.world import PLUGIN_KEY, route
from tests.service.world import rule as rule_of
from tests.stateful.http_model import LEDGER_KEYS, HttpJudge, backends, has_pair, user_part, weight_of
from tests.stateful.plans import PLANS
from tests.stateful.records import EXPERIMENT_PREFIX, PAIRS, Json, is_managed
from tests.stateful.rollout_machine import RolloutMachine


def _on(path: str, type_: str = "PathPrefix") -> list[Json]:
    return [{"path": {"type": type_, "value": path}}]


def _manifest() -> Json:
    """Return the user's route: two rules with the pair of `web`, others that are nobody's business, one of `side`."""
    return route(
        rule_of("s100 c0"),
        rule_of("s100 x7 c0", matches=_on("/b"), timeouts={"request": "9s"}),
        rule_of("c1", name="pinned", matches=_on("/pinned")),
        rule_of("other1", matches=_on("/o")),
        rule_of("t100 d0", matches=_on("/t")),
    )


class HttpMachine(RolloutMachine):
    """Two Rollouts on an HTTPRoute."""

    kind = "HTTPRoute"
    section = "rules"
    room = 8
    written = ("httproutes", "configmaps")
    refused_verbs = ("update", "update", "create")
    ledger_keys = LEDGER_KEYS
    plugins: ClassVar[Json] = {PLUGIN_KEY: {"httpRoute": "web"}}
    plans = PLANS

    def __init__(self) -> None:
        super().__init__(_manifest(), ("s", "c", "t", "d", "x", "other"))
        self.judge = HttpJudge(PAIRS, self.routes(), self.records)

    def look(self) -> None:
        """Ask the judge of `http_model`."""
        self.judge.check(self.live(), self.ledger())

    def weight_was_set(self, which: int, weight: int) -> None:
        """Ask every rule with the pair, but for header rules."""
        pair = PAIRS[which]
        for item in self.routes():
            mirrors = any("requestMirror" in part for part in item.get("filters") or [])
            if has_pair(item, pair) and (not is_managed(item) or mirrors):
                assert weight_of(item, pair.canary) == weight, f"W1: {item}"

    def is_clean(self, final: Json) -> None:
        """Only what the user wrote is left, stable with all weight."""
        rules = final["spec"]["rules"]
        assert user_part(rules, PAIRS) == user_part(self.judge.users, PAIRS)
        for item in rules:
            assert not any(name.startswith(EXPERIMENT_PREFIX) for name in backends(item)), f"E1: {item}"
            for pair in PAIRS:
                if has_pair(item, pair):
                    assert (weight_of(item, pair.stable), weight_of(item, pair.canary)) == (100, 0), f"U2: {item}"
        assert not final["metadata"].get("labels"), "U2: the label is left"
        assert not final["metadata"].get("annotations"), "U2: the annotation is left"

    def user_has(self, spec: Json) -> None:
        """Take all rules that are not managed."""
        self.judge.users = [item for item in spec["rules"] if not is_managed(item)]

    def with_weights(self, spec: Json, weight: int) -> Json:
        """Give both backends of the first pair the weight."""
        for item in spec["rules"]:
            if not is_managed(item) and has_pair(item, PAIRS[0]):
                for ref in item["backendRefs"]:
                    ref["weight"] = weight if ref["name"] in {"s", "c"} else ref.get("weight", 1)
        return spec

    def another_route(self, number: int) -> Json:
        """Make a rule with the API's defaults, so that it reads back as it was written."""
        added = rule_of("new1", matches=_on(f"/n{number}", "Exact"))
        added["backendRefs"] = [{**ref, "group": "", "kind": "Service"} for ref in added["backendRefs"]]
        return added

    @rule(path=st.sampled_from(["/b", "/c", "/d"]))
    def user_edits_a_source(self, path: str) -> None:
        """Change the path of a weighted rule; managed rules have to follow."""

        def edit(live: list[Json]) -> list[Json]:
            return [
                {**item, "matches": _on(path)} if not is_managed(item) and "x" in backends(item) else item
                for item in live
            ]

        self.user_edits(edit)
