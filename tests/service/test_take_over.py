"""Take-over: whatever the Go plugin left in the middle of an update goes, and nothing of the user's does (T1).

Drawn: the user's rules (some with the pair, some with the canary alone, some that look much like the Go plugin's), the
version that worked on the route, what it had set, and whether it had been at weight 0. What it leaves is written down
here from its sources: 0.13 and later name their rules, one for each rule with the pair; up to 0.12 a rule has no name,
and a ConfigMap says where in the list it stands; both put a label on the route, and leave experiment backends behind.
"""

import json
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.service.world import LEDGER, Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

Json = dict[str, Any]
LABEL = "rollouts.argoproj.io/gatewayapi-canary"
HEADERS = {"r1": "X-One", "r2": "X-Two"}
# The names of their rules: none of the drawn routes has more than three rules with the pair.
OURS = {f"{name}{suffix}" for name in HEADERS for suffix in ("", "-1", "-2")}
EXPERIMENT = "web-6f7c9b-2-1-base"


def path(value: str) -> Json:
    """Make a match by path."""
    return {"path": {"type": "PathPrefix", "value": value}}


USERS = {
    "pair": rule("s100 c0", matches=[path("/")]),
    "pair and another": rule("s100 c0 x20", matches=[path("/a")]),
    "named pair": rule("s100 c0", name="main", matches=[path("/m")]),
    "pinned": rule("c1", matches=[path("/pinned")]),
    "pinned by name": rule("c1", name="r1-pinned", matches=[path("/p")]),
    "look-alike": rule("c1", matches=[{**path("/l"), "headers": [{"name": "X-Mine", "value": "1"}]}]),
    "other": rule("other1", matches=[path("/o")]),
}


@dataclass(frozen=True)
class Left:
    """What the Go plugin leaves: which version, the managed routes that it had set, the canary's weight, the rest."""

    rules: tuple[str, ...]
    by_index: bool
    managed: tuple[str, ...]
    weight: int
    experiment: bool

    def users(self) -> list[Json]:
        """Return the user's rules."""
        return [deepcopy(USERS[name]) for name in self.rules]

    def route(self) -> tuple[Json, Json]:
        """Return the route as the Go plugin leaves it, and its ConfigMap's value."""
        live = self.users()
        pairs = [item for item in live if {"s", "c"} <= {ref["name"] for ref in item["backendRefs"]}]
        made: list[Json] = []
        places: Json = {}
        for name in self.managed:
            # Before 0.13 there was one rule a managed route, of the first rule with the pair.
            for number, source in enumerate(pairs[:1] if self.by_index else pairs):
                if self.by_index:
                    places[name] = {"web": len(live) + len(made)}
                made.append(self._managed(name, number, source))
        for item in pairs:
            for ref in item["backendRefs"]:
                ref["weight"] = {"s": 100 - self.weight, "c": self.weight}.get(ref["name"], ref["weight"])
        if self.experiment:
            pairs[0]["backendRefs"].append({"name": EXPERIMENT, "port": 80, "weight": 5})
        value = route(*live, *made)
        if self.weight:
            value["metadata"]["labels"] = {LABEL: "in-progress"}
        return value, places

    def _managed(self, name: str, number: int, source: Json) -> Json:
        header = {"name": HEADERS[name], "type": "Exact", "value": "1"}
        matches = [{**match, "headers": [*match.get("headers", []), header]} for match in source["matches"]]
        # Up to 0.12 SetWeight wrote into its own rule, too: 0 was possible.
        backend = {"name": "c", "port": 80, **({"weight": self.weight} if self.by_index else {})}
        suffix = f"-{number}" if number else ""
        named = {} if self.by_index else {"name": f"{name}{suffix}"}
        return {**named, "matches": matches, "backendRefs": [backend]}


@st.composite
def left_behind(draw: st.DrawFn) -> Left:
    """Draw what is left."""
    others = draw(st.lists(st.sampled_from(sorted(set(USERS) - {"pair"})), unique=True, max_size=4))
    rules = draw(st.permutations(["pair", *others]))
    return Left(
        rules=tuple(rules),
        by_index=draw(st.booleans()),
        managed=tuple(draw(st.permutations(draw(st.sampled_from([[], ["r1"], ["r1", "r2"]]))))),
        weight=draw(st.sampled_from([0, 20, 100])),
        experiment=draw(st.booleans()),
    )


def make_shop(stack: ExitStack, left: Left) -> Shop:
    """Make the API with what is left, and the Rollout past its header steps."""
    api = stack.enter_context(ApiServer())
    value, places = left.route()
    api.create(value)
    if places:
        metadata = {"name": LEDGER, "namespace": "shop"}
        data = {"httpManagedRoutes": json.dumps(places)}
        api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    steps: list[Json] = [{"setHeaderRoute": header_step(name, HEADERS[name])} for name in left.managed]
    steps.append({"experiment": {"templates": [{"name": "base", "specRef": "stable", "weight": 5}]}})
    status = {"stableRS": "old", "currentPodHash": "new", "currentStepIndex": len(steps)}
    folder = Path(stack.enter_context(TemporaryDirectory()))
    return Shop(api, folder, steps=steps, managed=["r1", "r2"], status=status)


def resting(rules: list[Json]) -> list[Json]:
    """Return the user's rules with the API's defaults, and their pairs at stable."""
    with ApiServer() as api:
        api.create(route(*rules))
        found: list[Json] = api.read("HTTPRoute", "shop", "web")["spec"]["rules"]
        return found


@pytest.mark.parametrize("first", ["weight", "remove", "header"])
@settings(max_examples=40)
@given(left=left_behind())
def test_everything_that_the_go_plugin_left_goes(first: str, left: Left) -> None:
    """One call takes it over, whichever comes first; after the end the route is the user's, and nothing is recorded."""
    with ExitStack() as stack:
        shop = make_shop(stack, left)
        if first == "weight":
            shop.weight(20)
            rules = shop.api.read("HTTPRoute", "shop", "web")["spec"]["rules"]
            managed = [
                item for item in rules if item.get("name", "").startswith(("r1", "r2")) and len(item["name"]) < 5
            ]
            pairs = sum("pair" in name for name in left.rules)
            assert len(managed) == len(left.managed) * pairs, "duplicates, or a rule that was not taken over"
            assert all(ref["weight"] >= 1 for item in managed for ref in item["backendRefs"])
        elif first == "header" and left.managed:
            shop.header(left.managed[0], HEADERS[left.managed[0]])
        shop.remove()
        shop.status = {**shop.status, "abort": True}
        shop.weight(0)
        value = shop.api.read("HTTPRoute", "shop", "web")

        assert resting(left.users()) == value["spec"]["rules"]
        # A label without our annotation is the user's (D33).
        assert value["metadata"].get("labels") == left.route()[0]["metadata"].get("labels")
        assert not value["metadata"].get("annotations")
        assert shop.ledger() == {}
