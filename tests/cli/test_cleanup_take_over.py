"""`cleanup` of what the Go plugin left; D30."""

import json

from tests.cli.town import Town
from tests.service.world import LEDGER, header_step, route, rule


def test_the_go_plugins_old_entries_go_with_the_rules(town: Town) -> None:
    """The rule that an old entry points at is removed, and the entry with it (D30)."""
    shop = town.shop
    shop.managed, shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}]
    town.apply()
    match = [{"headers": [{"name": "X-Test", "value": "1"}]}]
    town.api.update(route(rule("s100 c0"), rule("c1", matches=match)))
    old = {"httpManagedRoutes": json.dumps({"canary": {"web": 1}, "foreign": {"other": 2}})}
    metadata = {"name": LEDGER, "namespace": "shop"}
    town.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": old})

    assert town.run("cleanup", "web", "-y")[0] == 0
    assert shop.rules() == ["s=100 c=0"]
    assert json.loads(shop.ledger()["httpManagedRoutes"]) == {"foreign": {"other": 2}}
