"""One Rollout with the keys of the Gateway API and of Gloo Platform: the controller has a plugin process for each."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.service.gloo.world import KEY, GlooShop
from tests.service.world import PLUGIN_KEY, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.process import ChildPlugin

PLUGIN = """#!{python}
import sys
from rollouts_gwapi_plugin.serve import run

sys.exit(run(sys.argv[1:]))
"""
REST = {"stableRS": "new", "currentPodHash": "new"}


class BothPlugins:
    """Both processes, started as the controller starts them: by the path plugin-bin/ORG/NAME, with no argument."""

    def __init__(self, shop: GlooShop, folder: Path, stack: ExitStack) -> None:
        self.shop = shop
        kubeconfig = shop.api.write_kubeconfig(folder / "kubeconfig")
        self.running = []
        for key in (PLUGIN_KEY, KEY):
            path = folder / "plugin-bin" / key
            path.parent.mkdir(parents=True)
            path.write_text(PLUGIN.replace("{python}", sys.executable))
            path.chmod(0o755)
            self.running.append(stack.enter_context(ChildPlugin((str(path),), {"KUBECONFIG": str(kubeconfig)})))

    def call(self, method: str, **arguments: Any) -> list[str]:
        """Make the call of both, one after the other as the controller does; return the errors."""
        call = Call(method, {"rollout": self.shop.rollout(), **arguments})
        return [plugin.call(call).error for plugin in self.running]

    def weight(self, weight: int) -> list[str]:
        """SetWeight."""
        return self.call("SetWeight", desiredWeight=weight, additionalDestinations=[])


@pytest.fixture
def both(api: ApiServer, tmp_path: Path) -> Iterator[BothPlugins]:
    """Give both processes, an HTTPRoute and a RouteTable."""
    api.create(route(rule("s100 c0")))
    shop = GlooShop(api, tmp_path, plugins={PLUGIN_KEY: {"httpRoute": "web"}, KEY: {"routeTableName": "web"}})
    shop.managed = ["h"]
    with ExitStack() as stack:
        yield BothPlugins(shop, tmp_path, stack)


def test_each_process_moves_its_own_routes(both: BothPlugins) -> None:
    """Weights and a header route stand on both, each in its own record; at the end both routes are as they were."""
    before = both.shop.live()["spec"], both.shop.rules()

    assert both.call("SetHeaderRoute", setHeaderRoute=header_step("h")) == ["", ""]
    assert both.weight(30) == ["", ""]
    assert both.shop.lines() == ["h: c=-", "main: s=70 c=30"]
    assert both.shop.rules() == ["s=70 c=30", "h: c=1"]
    assert set(both.shop.recorded()) == {"httpManagedHeaderRoutes", "routeTableManagedHeaderRoutes"}

    both.shop.status = REST
    assert both.call("RemoveManagedRoutes") == ["", ""]
    assert both.weight(0) == ["", ""]
    assert (both.shop.live()["spec"], both.shop.rules()) == before
    assert both.shop.recorded() == {}


def test_trouble_of_one_is_not_the_others(both: BothPlugins) -> None:
    """Without the RouteTable its process says so, and the HTTPRoute moves."""
    both.shop.api.delete("RouteTable", "shop", "web")

    gateway, gloo = both.weight(30)

    assert gateway == ""
    assert "RouteTable shop/web" in gloo
    assert both.shop.rules() == ["s=70 c=30"]
