"""The Go plugin's old ConfigMap entries, which are not by Rollout (decision D30)."""

import json
from pathlib import Path

from tests.service.world import LEDGER, Shop, header_step, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

OLD_KEY = "httpManagedRoutes"


def old_rule(canary: str, value: str) -> dict[str, object]:
    """Make a rule as the Go plugin up to 0.12 made it: no name, the step's header, only the canary."""
    match = {"headers": [{"name": "X-Test", "value": value}]}
    return rule(f"{canary}1", matches=[match])


def test_another_rollouts_entry_on_a_shared_route_is_kept(api: ApiServer, tmp_path: Path) -> None:
    """A Rollout drops only the entries of its own managed routes, so that the other still finds its rule."""
    entries = {"alpha": {"web": 2}, "beta": {"web": 3}}
    api.update(route(rule("s100 c0"), rule("t100 d0"), old_rule("c", "1"), old_rule("d", "2")))
    api.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": LEDGER, "namespace": "shop"},
            "data": {OLD_KEY: json.dumps(entries)},
        }
    )
    first = Shop(api, tmp_path, managed=["alpha"], steps=[{"setHeaderRoute": header_step("alpha")}])
    second = Shop(
        api,
        tmp_path,
        managed=["beta"],
        steps=[{"setHeaderRoute": header_step("beta", value="2")}],
        metadata={"name": "api", "uid": "uid-api"},
        canary={"stableService": "t", "canaryService": "d"},
    )

    first.remove()

    assert first.rules() == ["s=100 c=0", "t=100 d=0", "d=1"]
    assert json.loads(first.ledger()[OLD_KEY]) == {"beta": {"web": 3}}

    api.edit("ConfigMap", "shop", LEDGER, lambda one: one["data"].update({OLD_KEY: json.dumps({"beta": {"web": 2}})}))
    second.remove()

    assert first.rules() == ["s=100 c=0", "t=100 d=0"]
    assert first.ledger() == {}
