"""A managed step that some of several configured routes can't take: the others go on (D13, D24, X1)."""

from typing import Any

import pytest
from tests.service.world import Shop, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import PluginError, StepNotTakenError

Json = dict[str, Any]
API = {"path": {"prefix": "/api"}}


def at(path: str) -> list[Json]:
    """Make a rule's matches of one path."""
    return [{"path": {"type": "PathPrefix", "value": path}}]


def told(shop: Shop) -> list[str]:
    """Return the texts of all Events of steps that a route does not take."""
    shop.router._connector.cluster().events.flush(5)
    return [event["message"] for event in shop.api.list("events", "shop") if event["reason"] == "StepNotTaken"]


def split_by_path(shop: Shop) -> None:
    """Configure a route of /api and one of /static."""
    shop.api.create(route(rule("s100 c0", matches=at("/api")), name="a"))
    shop.api.create(route(rule("s100 c0", matches=at("/static")), name="b"))
    shop.config = {"httpRoutes": [{"name": "a", "useHeaderRoutes": True}, {"name": "b", "useHeaderRoutes": True}]}
    shop.managed = ["m"]


def test_a_route_without_requests_of_the_step(shop: Shop) -> None:
    """The step means nothing on it: one warning, no rule, no record, and no write however often it is asked for."""
    split_by_path(shop)
    shop.mirror("m", API)
    again = shop.requests(lambda: shop.mirror("m", API))

    assert ["m: s=100 c=0", "s=100 c=0"] == shop.rules("a")
    assert ["s=100 c=0"] == shop.rules("b")
    assert '"b"' not in str(shop.ledger())
    assert not [line for line in again if line.startswith("update")]
    assert told(shop) == [
        "HTTPRoute shop/b takes no part in managed route m: no rule and the step have requests in common"
    ]


def test_a_route_that_pins_another_value_of_the_header(shop: Shop) -> None:
    """Its requests are not of the step's cohort."""
    shop.api.create(route(rule("s100 c0"), name="a"))
    pinned = [{"headers": [{"name": "X-Test", "value": "2"}]}]
    shop.api.create(route(rule("s100 c0", matches=pinned), name="b"))
    shop.config = {"httpRoutes": [{"name": "a", "useHeaderRoutes": True}, {"name": "b", "useHeaderRoutes": True}]}
    shop.header("m")

    assert ["s=100 c=0", "m: c=1"] == shop.rules("a")
    assert ["s=100 c=0"] == shop.rules("b")
    assert ["its own headers contradict" in text for text in told(shop)] == [True]


@pytest.mark.parametrize("field", [{"method": {"exact": "GET"}}, API])
def test_a_kind_that_can_not_match_it(shop: Shop, field: Json) -> None:
    """The HTTPRoute takes it, the note names the GRPCRoute, the field and why, and the next weight says the same."""
    shop.api.create(route(rule("s100 c0"), kind="GRPCRoute"))
    shop.config = {"httpRoute": "web", "grpcRoute": "web"}
    step = {"name": "m", "match": [field]}
    shop.managed, shop.steps = ["m"], [{"setMirrorRoute": step}, {"setWeight": 20}]
    shop.mirror("m", field)
    shop.status = {**shop.status, "currentStepIndex": 1}
    shop.weight(20)

    assert ["m: s=80 c=20", "s=80 c=20"] == shop.rules()
    assert ["s=80 c=20"] == shop.rules(kind="GRPCRoute")
    (text,) = told(shop)
    assert text.startswith(
        f"GRPCRoute shop/web takes no part in managed route m: setMirrorRoute m.match[0].{next(iter(field))}"
    )


def test_where_no_route_takes_it_every_one_is_told(shop: Shop) -> None:
    """A step that would do nothing anywhere is refused, and each route's reason is in the error."""
    split_by_path(shop)

    with pytest.raises(PluginError, match=r"HTTPRoute shop/a: .*requests in common; HTTPRoute shop/b: .*in common"):
        shop.mirror("m", {"path": {"prefix": "/other"}})
    assert told(shop) == []


def test_the_only_route_still_refuses(shop: Shop, api: ApiServer) -> None:
    """With one route nothing else can have taken the step."""
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"]["rules"][0].update(matches=at("/static")))

    with pytest.raises(StepNotTakenError, match="HTTPRoute shop/web: managed route m can't be set"):
        shop.mirror("m", API)


def test_what_is_broken_is_told_beside_a_route_that_takes_it(shop: Shop) -> None:
    """X1: only the missing route is an error."""
    split_by_path(shop)
    shop.config["httpRoutes"].append({"name": "gone"})

    with pytest.raises(PluginError, match="shop/gone") as raised:
        shop.mirror("m", API)
    assert "shop/b" not in str(raised.value)
    assert ["m: s=100 c=0", "s=100 c=0"] == shop.rules("a")


def test_what_an_earlier_step_of_the_name_made_goes(shop: Shop) -> None:
    """The last step of a name wins, on a route that it does not mean, too."""
    split_by_path(shop)
    shop.mirror("m", {"headers": {"X": {"exact": "1"}}})
    both = [shop.rules("a"), shop.rules("b")]
    shop.mirror("m", API)

    assert both == [["m: s=100 c=0", "s=100 c=0"]] * 2
    assert ["m: s=100 c=0", "s=100 c=0"] == shop.rules("a")
    assert ["s=100 c=0"] == shop.rules("b")
    assert '"b"' not in str(shop.ledger())


def test_a_rewritten_prefix_is_no_empty_intersection(shop: Shop) -> None:
    """The route has requests of the step that can't be told apart: they would be missed, so it stays an error."""
    split_by_path(shop)
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/x"}}
    filters = [{"type": "URLRewrite", "urlRewrite": rewrite}]
    root = rule("s100 c0", matches=at("/"), filters=filters)
    shop.api.edit("HTTPRoute", "shop", "b", lambda value: value["spec"].update(rules=[root]))

    with pytest.raises(PluginError, match="HTTPRoute shop/b"):
        shop.mirror("m", {"path": {"regex": "/api.*"}})
