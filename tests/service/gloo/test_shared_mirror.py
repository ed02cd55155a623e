"""Two Rollouts in one route of a RouteTable, one with a mirror: its copy has the other's pair, too (W3, D12)."""

from pathlib import Path

import pytest
from tests.service.gloo.world import GlooShop, crds, http, line, table

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.model.calls import Verification

MIRROR = {"name": "m", "match": [{"method": {"exact": "GET"}}]}
PROGRESSING = {"stableRS": "old", "currentPodHash": "new"}


class Both:
    """Rollout `a` with a mirror at 20 and Rollout `b` at 40, which share the route `main` half and half."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.api = api
        self.a = self._rollout("a", folder, managed=["m"], steps=[{"setMirrorRoute": MIRROR}, {"setWeight": 20}])
        self.b = self._rollout("b", folder, managed=[], steps=[{"setWeight": 40}])
        self.b.weight(40)
        self.a.mirror("m", *MIRROR["match"])  # type: ignore[arg-type]
        self.a.status = {**PROGRESSING, "currentStepIndex": 1}
        self.a.weight(20)

    def _rollout(self, name: str, folder: Path, **fields: object) -> GlooShop:
        shop = GlooShop(self.api, folder, status=PROGRESSING, **fields)  # type: ignore[arg-type]
        shop.metadata = {"name": name, "uid": f"uid-{name}"}
        shop.canary = {"stableService": f"s{name}", "canaryService": f"c{name}"}
        shop.configure(routeTableName="web")
        return shop

    @property
    def lines(self) -> list[str]:
        """The routes as lines."""
        return self.a.lines()

    def updates(self) -> list[str]:
        """Let both be called as they stand now; return what was written."""

        def calls() -> None:
            self.a.weight(20)
            self.b.weight(0)

        return [request for request in self.a.requests(calls) if request.startswith("update")]

    def abort_b(self) -> None:
        """Rollout `b` aborts."""
        self.b.status = {**PROGRESSING, "abort": True}
        self.b.remove()
        self.b.weight(0)


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """Give the world."""
    api = ApiServer(crds=crds()).start()
    api.create(table(http("sa50 sb50", "main")))
    return Both(api, tmp_path)


def test_an_aborted_canary_leaves_the_others_mirror_at_once(both: Both) -> None:
    """The copy of `a` follows the source in the call of `b`; the next call of `a` only notes it."""
    before = both.lines
    both.abort_b()
    after = both.lines
    again = both.updates()

    assert ["m: sa=40 sb=30 cb=20 ca=10", "main: sa=40 sb=30 cb=20 ca=10"] == before
    assert ["m: sa=40 sb=50 ca=10", "main: sa=40 sb=50 ca=10"] == after
    assert both.b.verify(0) is Verification.VERIFIED
    assert "update routetables" not in again
    assert both.updates() == []


def test_stable_out_of_the_route_comes_back_into_the_copy(both: Both) -> None:
    """At the full weight stable's destination is kept aside, for both routes."""
    both.b.weight(100)
    full = both.lines
    both.abort_b()

    assert ["m: sa=40 cb=50 ca=10", "main: sa=40 cb=50 ca=10"] == full
    assert {part for text in both.lines for part in text.split()[1:]} == {"sa=40", "sb=50", "ca=10"}


def test_a_copy_that_stayed_behind_is_not_verified(both: Both) -> None:
    """Its requests still reach the canary."""
    stale = both.a.live()["spec"]["http"][0]
    both.abort_b()
    both.api.edit("RouteTable", "shop", "web", lambda value: value["spec"]["http"].__setitem__(0, stale))

    assert both.b.verify(0) is Verification.NOT_VERIFIED
    both.b.weight(0)
    assert both.b.verify(0) is Verification.VERIFIED
    assert ["m: sa=40 sb=50 ca=10", "main: sa=40 sb=50 ca=10"] == both.lines


def test_a_mirror_before_another_route_is_left_to_its_rollout(both: Both) -> None:
    """A route that a user put between may be no source of it: what else is in the two tells them apart."""
    added = http("sb50 x50", "added")
    both.api.edit("RouteTable", "shop", "web", lambda value: value["spec"]["http"].insert(1, added))
    both.b.weight(0)
    first, *rest = both.lines

    assert first == "m: sa=40 sb=30 cb=20 ca=10"
    assert rest == [line(added), "main: sa=40 sb=50 ca=10"]
    both.a.weight(20)
    assert both.lines == [line(added), "m: sa=40 sb=50 ca=10", "main: sa=40 sb=50 ca=10"]
