"""Several routes of one Rollout, some of them broken or gone (invariants X1 and X2).

Drawn: routes of both L7 kinds and TCP, each sound or broken in one of the ways that users met, and what the controller
calls. A broken route never stops a sound one, each one that is broken is named in the error, and once they are mended
the same call brings all of them there.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.service.world import Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import PluginError

FAMILIES = {"http": "HTTPRoute", "grpc": "GRPCRoute", "tcp": "TCPRoute"}
SOUND = ["s=80 c=20"]


class State(Enum):
    """What is wrong with a route."""

    SOUND = "nothing"
    MISSING = "there is no such object"
    NO_PAIR = "no rule has both Services"
    UNREADABLE = "reading it is forbidden"
    REFUSED = "each write of it is refused"
    STRANGE = "it is no route that could be read"


@dataclass(frozen=True)
class Drawn:
    """One route."""

    family: str
    name: str
    state: State

    @property
    def text(self) -> str:
        """The route's name for people."""
        return f"{FAMILIES[self.family]} shop/{self.name}"

    def object(self) -> dict[str, object]:
        """Return the route with nothing wrong about it."""
        version = "v1" if self.family != "tcp" else "v1alpha2"
        return route(rule("s100 c0"), name=self.name, kind=FAMILIES[self.family], version=version)


@st.composite
def several_routes(draw: st.DrawFn) -> list[Drawn]:
    """Draw two to five routes."""
    families = draw(st.lists(st.sampled_from(sorted(FAMILIES)), min_size=2, max_size=5))
    return [Drawn(family, f"r{index}", draw(st.sampled_from(State))) for index, family in enumerate(families)]


@dataclass
class World:
    """An API with the drawn routes, and a Rollout that names all of them."""

    api: ApiServer
    shop: Shop
    routes: list[Drawn]

    def of(self, *states: State) -> list[Drawn]:
        """Return the routes in these states."""
        return [item for item in self.routes if item.state in states]

    def rules(self, item: Drawn) -> list[str]:
        """Return a route's rules as lines."""
        return self.shop.rules(item.name, FAMILIES[item.family])

    def mend(self) -> None:
        """Make every route sound."""
        self.api.faults.clear()
        for item in self.of(State.MISSING, State.NO_PAIR, State.STRANGE):
            if self.api.find(FAMILIES[item.family], "shop", item.name) is not None:
                self.api.delete(FAMILIES[item.family], "shop", item.name)
            self.api.create(item.object())


def make_world(stack: ExitStack, routes: list[Drawn]) -> World:
    """Make the API, break what is to be broken, and name each route in the configuration."""
    api = stack.enter_context(ApiServer())
    folder = Path(stack.enter_context(TemporaryDirectory()))
    config = {
        f"{family}Routes": [
            {"name": item.name, "useHeaderRoutes": family != "tcp"} for item in routes if item.family == family
        ]
        for family in {item.family for item in routes}
    }
    steps = [{"setHeaderRoute": header_step("m-h")}]
    for item in routes:
        value = item.object()
        if item.state is State.NO_PAIR:
            value["spec"] = {"rules": [rule("s100 x1")]}
        if item.state is State.STRANGE:
            value["spec"] = {"rules": [{"backendRefs": [{"name": ["no", "text"]}]}]}
        if item.state is not State.MISSING:
            api.create(value)
        if item.state is State.UNREADABLE:
            api.faults.add(verb="get", name=item.name, status=403, times=None)
        if item.state is State.REFUSED:
            api.faults.add(verb="update", name=item.name, status=422, times=None)
    return World(api, Shop(api, folder, config=config, steps=steps, managed=["m-h"]), routes)


def check_told(call: Callable[[], object], broken: list[Drawn]) -> None:
    """Make the call: it succeeds where nothing is broken, else its one error names each broken route and no other."""
    if not broken:
        call()
        return
    with pytest.raises(PluginError) as raised:
        call()
    told = str(raised.value)
    every = {f"{kind} shop/r{number}" for kind in FAMILIES.values() for number in range(5)}
    assert {item.text for item in broken} == {name for name in every if name in told}


@settings(max_examples=40)
@given(routes=several_routes())
def test_a_broken_route_never_stops_the_others(routes: list[Drawn]) -> None:
    """SetWeight brings every sound route there and names each other one; mended, the same call brings all (X1)."""
    with ExitStack() as stack:
        world = make_world(stack, routes)
        check_told(lambda: world.shop.weight(20), [item for item in routes if item.state is not State.SOUND])
        for item in world.of(State.SOUND):
            assert world.rules(item)[:1] == SOUND
        for item in world.of(State.REFUSED, State.UNREADABLE):
            assert world.rules(item) == ["s=100 c=0"], "half of a write is on the route"
        world.mend()
        world.shop.weight(20)
        for item in routes:
            assert world.rules(item)[:1] == SOUND
        assert not [line for line in world.shop.requests(lambda: world.shop.weight(20)) if line.startswith("update")]


@settings(max_examples=40)
@given(routes=several_routes())
def test_a_broken_route_never_stops_a_header_step(routes: list[Drawn]) -> None:
    """SetHeaderRoute sets the rule on every sound route that takes it and names each other one (X1)."""
    with ExitStack() as stack:
        world = make_world(stack, routes)
        able = [item for item in routes if item.family != "tcp"]
        check_told(lambda: world.shop.header("m-h"), [item for item in able if item.state is not State.SOUND])
        for item in able:
            if item.state is State.SOUND:
                assert world.rules(item) == ["s=100 c=0", "m-h: c=1"]
        for item in world.of(State.REFUSED, State.UNREADABLE):
            assert world.rules(item) == ["s=100 c=0"]


@settings(max_examples=40)
@given(routes=several_routes())
def test_a_missing_route_has_nothing_to_remove(routes: list[Drawn]) -> None:
    """RemoveManagedRoutes succeeds where a route is gone, and cleans the sound ones (X2).

    What it can't clean is named by the SetWeight after it, which an error of its own would keep from being called.
    """
    with ExitStack() as stack:
        world = make_world(stack, [Drawn(item.family, item.name, State.SOUND) for item in routes])
        world.shop.weight(20)
        able = [item for item in routes if item.family != "tcp"]
        for item in routes:
            if item.state is State.MISSING:
                world.api.delete(FAMILIES[item.family], "shop", item.name)
            if item.state is State.UNREADABLE:
                world.api.faults.add(verb="get", name=item.name, status=403, times=None)
            if item.state is State.REFUSED:
                world.api.faults.add(verb="update", name=item.name, status=422, times=None)
        world.shop.remove()
        gone = {item.name for item in routes if item.state is State.MISSING}
        for item in able:
            if item.state not in {State.MISSING, State.UNREADABLE, State.REFUSED}:
                assert world.rules(item) == SOUND
        assert not [name for name in gone if f'"{name}"' in str(world.shop.ledger())]
        left = [item for item in able if item.state is State.REFUSED]
        left += [item for item in routes if item.state in {State.MISSING, State.UNREADABLE}]
        check_told(lambda: world.shop.weight(20), left)
        world.api.faults.clear()
        world.shop.remove()
        assert world.shop.ledger() == {}
        check_told(lambda: world.shop.weight(0), [item for item in routes if item.state is State.MISSING])


@pytest.mark.parametrize(
    ("config", "verb"),
    [
        ({"httpRoute": "web", "grpcRoute": "api"}, "get"),
        ({"httpRoute": "web", "grpcRoute": "api"}, "update"),
        ({"httpRoute": "web", "grpcRouteSelector": {"matchLabels": {"app": "web"}}}, "list"),
    ],
)
def test_an_abort_is_not_held_up_by_a_broken_route(
    shop: Shop, api: ApiServer, config: dict[str, object], verb: str
) -> None:
    """Each reconcile of it begins with RemoveManagedRoutes and ends with the first error (A1, X1)."""
    api.create(route(rule("s50 c50"), name="api", kind="GRPCRoute"))
    shop.config, shop.managed, shop.steps = config, ["canary"], [{"setHeaderRoute": header_step("canary")}]
    api.update(route(rule("s50 c50")))
    api.faults.add(verb=verb, plural="grpcroutes", status=403, times=None)
    shop.status["abort"] = True

    shop.remove()
    with pytest.raises(PluginError, match="GRPCRoute"):
        shop.weight(0)
    assert shop.rules() == ["s=100 c=0"]


def test_what_could_not_be_removed_is_told_once(shop: Shop, api: ApiServer) -> None:
    """By the SetWeight of the same reconcile, with its cause; the next reconcile removes it."""
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}]
    shop.header("canary")
    shop.status["abort"] = True
    api.faults.add(verb="update", plural="httproutes", status=422, times=1)

    shop.remove()
    with pytest.raises(PluginError, match=r"HTTPRoute shop/web.*422"):
        shop.weight(0)
    shop.weight(0)
    shop.remove()
    shop.weight(0)
    assert shop.rules() == ["s=100 c=0"]


def test_what_an_earlier_reconcile_could_not_remove_is_not_told(shop: Shop, api: ApiServer) -> None:
    """The Rollout has changed since: what it asks for now was done."""
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}]
    shop.header("canary")
    api.faults.add(verb="update", plural="httproutes", status=422, times=1)
    shop.remove()

    shop.metadata = {"resourceVersion": "8"}
    shop.weight(10)
    assert shop.rules() == ["s=90 c=10", "canary: c=1"]
