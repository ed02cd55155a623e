"""Seven of the eight things that the proof-of-concept plugin leaves to do; test_keys_and_switches.py has the eighth."""

import pytest
from tests.service.gloo.world import GlooShop, Json, destination, http, put, table
from tests.service.world import service

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import ConfigError, RouteError
from rollouts_gwapi_plugin.model.calls import Verification

REST = {"stableRS": "new", "currentPodHash": "new"}


def destinations(shop: GlooShop, section: str = "http", index: int = 0) -> list[Json]:
    """Return the destinations of a route."""
    found: list[Json] = shop.live()["spec"][section][index]["forwardTo"]["destinations"]
    return found


def of_kind(kind: str, name: str, weight: int | None = None, **ref: str) -> Json:
    """Make a destination of a kind."""
    return destination(name, weight, kind=kind, ref={"name": name, **ref})


@pytest.mark.parametrize("kind", ["SERVICE", "VIRTUAL_DESTINATION", "EXTERNAL_SERVICE"])
def test_item_1_all_destination_kinds(shop: GlooShop, kind: str) -> None:
    """Each kind is found and written; one of the same name but another kind is somebody else's."""
    other = "EXTERNAL_SERVICE" if kind == "VIRTUAL_DESTINATION" else "VIRTUAL_DESTINATION"
    put(shop, {"name": "main", "forwardTo": {"destinations": [of_kind(kind, "s", 90), of_kind(other, "c", 10)]}})
    shop.configure(routeTableSelector={"name": "web"}, stableDestination={"kind": kind})

    shop.weight(50)

    assert destinations(shop) == [of_kind(kind, "s", 45), of_kind(other, "c", 10), of_kind(kind, "c", 45)]
    assert shop.verify(50) is Verification.VERIFIED


def test_item_1_explicit_names_clusters_ports_and_subsets(shop: GlooShop) -> None:
    """A VirtualDestination need not bear the Service's name, and one object may be both, by subset."""
    blue, green = ({**of_kind("VIRTUAL_DESTINATION", "web-vd"), "subset": {"v": v}} for v in ("blue", "green"))
    put(shop, {"name": "main", "forwardTo": {"destinations": [blue, destination("s", 10)]}})
    shop.configure(
        routeTableName="web",
        stableDestination={"kind": "VIRTUAL_DESTINATION", "ref": {"name": "web-vd"}, "subset": {"v": "blue"}},
        canaryDestination={"ref": {"name": "web-vd"}, "subset": {"v": "green"}},
    )

    shop.weight(30)

    assert destinations(shop) == [{**blue, "weight": 63}, destination("s", 10), {**green, "weight": 27}]
    shop.weight(0)
    assert destinations(shop) == [blue, destination("s", 10)]


def test_item_1_one_name_on_two_clusters(shop: GlooShop) -> None:
    """The RouteTable's own cluster is meant; where neither is that, the configuration must say which."""
    far, near = destination("s", 40, ref={"name": "s", "cluster": "far"}), destination("s", 60)
    put(shop, {"name": "main", "forwardTo": {"destinations": [far, near]}})
    shop.weight(50)
    assert [(raw["ref"].get("cluster"), raw["weight"]) for raw in destinations(shop)] == [
        ("far", 40), (None, 30), (None, 30)
    ]  # fmt: skip

    put(shop, {"name": "main", "forwardTo": {"destinations": [far, {**far, "ref": {"name": "s", "cluster": "mid"}}]}})
    with pytest.raises(RouteError, match=r"there several times .*cluster far.*cluster mid.*stableDestination"):
        shop.weight(50)
    shop.configure(routeTableName="web", stableDestination={"ref": {"cluster": "mid"}})
    shop.weight(50)
    assert [(raw["ref"]["cluster"], raw["weight"]) for raw in destinations(shop)] == [
        ("far", 40), ("mid", 30), ("mid", 30)
    ]  # fmt: skip


@pytest.mark.parametrize(("weight", "expected"), [(0, "s=70 x=30"), (25, "s=53 x=30 c=17"), (100, "x=30 c=70")])
def test_item_2_static_siblings_keep_their_weights(shop: GlooShop, weight: int, expected: str) -> None:
    """What others have stays; the rest is shared by largest remainder, and the sum is 100."""
    put(shop, http("s70 x30"))

    shop.weight(weight)

    assert shop.lines() == [expected]
    assert sum(raw["weight"] for raw in destinations(shop)) == 100


def test_item_2_experiments_share_the_rest_too(shop: GlooShop) -> None:
    """Parts of 70 in the ratio 65 : 25 : 10 are 45.5, 17.5 and 7: of equal remainders the first is rounded up."""
    put(shop, http("s70 x30"))
    shop.api.create(service("e"))

    shop.weight(25, e=10)

    assert shop.lines() == ["s=46 x=30 c=17 e=7"]


def test_item_2_siblings_that_leave_nothing_are_an_error(shop: GlooShop) -> None:
    """Where others have all 100 the call fails, with route and sum, and nothing is written."""
    put(shop, http("s x60 y40", "main"))
    before = shop.live()

    with pytest.raises(RouteError, match=r"RouteTable shop/web: http\[0\] \(main\): .* add up to 100 of 100"):
        shop.weight(20)
    assert before == shop.live()


def test_item_2_a_sibling_without_weight_keeps_its_part_of_the_rest(shop: GlooShop) -> None:
    """It has no number to keep, and what Gloo gives it does not change: stable and canary share the other half."""
    put(shop, http("s x"))

    shop.weight(20)

    assert shop.lines() == ["s=40 x=- c=10"]
    shop.status = REST
    shop.weight(0)
    assert shop.lines() == ["s=- x=-"]


def test_item_3_route_tables_by_labels(api: ApiServer, shop: GlooShop) -> None:
    """All that have the labels take part, no other; expressions narrow."""
    for name, labels in (("a", {"app": "web", "tier": "1"}), ("b", {"app": "web", "tier": "2"}), ("d", {"tier": "1"})):
        made = table(http("s"), name=name)
        made["metadata"]["labels"] = labels
        api.create(made)
    shop.configure(routeTableSelector={"labels": {"app": "web"}})
    shop.weight(20)
    assert [shop.lines(name) for name in "abd"] == [["s=80 c=20"], ["s=80 c=20"], ["s=-"]]

    expression = {"key": "tier", "operator": "NotIn", "values": ["2"]}
    shop.configure(routeTableSelector={"matchLabels": {"app": "web"}, "matchExpressions": [expression]})
    shop.weight(40)
    assert shop.lines("a") == ["s=60 c=40"]


def test_item_3_no_route_table_is_an_error_with_the_selector(shop: GlooShop) -> None:
    """The text has the selector, the kind and the namespace."""
    shop.configure(routeTableSelector={"labels": {"app": "none"}, "namespace": "elsewhere"})

    with pytest.raises(
        ConfigError, match=r"routeTableSelector \(app=none\) matches no RouteTable in namespace elsewhere"
    ):
        shop.weight(20)


def test_item_3_routes_by_name_and_all_labels(shop: GlooShop) -> None:
    """A route takes part if its name and every label are equal, case included; a missing key is no match."""
    put(
        shop,
        http("s", "one", labels={"a.b/x": "1", "a.b/y": "2"}),
        http("s", "two", labels={"a.b/x": "1"}),
        http("s", "three", labels={"a.b/x": "1", "a.b/y": "Two"}),
    )
    shop.configure(routeTableName="web", routeSelector={"labels": {"a.b/x": "1", "a.b/y": "2"}})
    shop.weight(20)
    assert shop.lines() == ["one: s=80 c=20", "two: s=-", "three: s=-"]

    shop.configure(routeTableName="web", routeSelector={"name": "two", "labels": {"a.b/x": "1"}})
    shop.weight(20)
    assert shop.lines() == ["one: s=-", "two: s=80 c=20", "three: s=-"], (
        "a route that is not selected any more is put back"
    )


@pytest.mark.parametrize(
    "selector", [{"name": "Main"}, {"labels": {"a.b/x": "1"}}, {"name": "main", "labels": {"a.b/x": "1"}}]
)
def test_item_3_no_route_is_an_error_with_the_selector(shop: GlooShop, selector: Json) -> None:
    """A selector that takes no route is told, and nothing is written."""
    shop.configure(routeTableName="web", routeSelector=selector)
    before = shop.live()

    with pytest.raises(RouteError, match="no http route matches routeSelector"):
        shop.weight(20)
    assert before == shop.live()


def test_item_4_stable_and_canary_of_unequal_kinds(shop: GlooShop) -> None:
    """The canary has from stable what the configuration does not say of it."""
    stable = destination("s", timeout="3s", subset={"v": "1"}, ref={"name": "s", "namespace": "shop"})
    put(shop, {"name": "main", "forwardTo": {"destinations": [stable]}})
    shop.configure(
        routeTableName="web",
        canaryDestination={"kind": "VirtualDestination", "ref": {"name": "web-vd"}, "port": {"name": "http"}},
    )

    shop.weight(25)

    assert destinations(shop)[1] == {
        "ref": {"name": "web-vd", "namespace": "shop"}, "kind": "VIRTUAL_DESTINATION", "port": {"name": "http"},
        "subset": {"v": "1"}, "timeout": "3s", "weight": 25,
    }  # fmt: skip
    assert shop.verify(25) is Verification.VERIFIED


@pytest.mark.parametrize("finish", ["promoted", "aborted"])
def test_item_5_an_added_canary_is_gone_at_the_end(shop: GlooShop, finish: str) -> None:
    """After promotion and after an abort the RouteTable is what the user wrote, to the letter."""
    before = shop.live()["spec"]
    for weight in (20, 60, 100):
        shop.weight(weight)
    shop.status = REST if finish == "promoted" else {"stableRS": "old", "currentPodHash": "new", "abort": True}

    shop.remove()
    shop.weight(0)

    assert before == shop.live()["spec"]
    assert "annotations" not in shop.live()["metadata"]
    assert shop.verify(0) is Verification.VERIFIED


def test_item_5_a_canary_of_the_user_is_restored_as_it_was(shop: GlooShop) -> None:
    """It is out of the route while it has no share, so that no zero is ever beside a full 100, and back at the end."""
    canary = destination("c", 0, port={"name": "http-canary"}, retries=3)
    put(shop, {"name": "main", "forwardTo": {"destinations": [destination("s", 100), canary, destination("x", 0)]}})
    before = shop.live()["spec"]
    shop.status = REST
    assert "update routetables" not in shop.requests(lambda: shop.weight(0))

    shop.status = {"stableRS": "old", "currentPodHash": "new"}
    shop.weight(0)
    assert shop.lines() == ["main: s=100 x=0"]
    shop.weight(20)
    assert destinations(shop)[1] == {**canary, "weight": 20}
    shop.weight(100)
    assert shop.lines() == ["main: c=100 x=0"]
    shop.status = REST
    shop.weight(0)

    assert before == shop.live()["spec"]
    assert shop.kept() == {}


def test_item_5_a_canary_with_a_share_of_its_own_stays_out_and_is_kept(shop: GlooShop) -> None:
    """At weight 0 it must not have its share; the annotation has it until it gets one again."""
    canary = destination("c", 10, port={"name": "http-canary"})
    put(shop, {"name": "main", "forwardTo": {"destinations": [destination("s", 90), canary]}})
    shop.status = REST

    shop.weight(0)

    assert shop.lines() == ["main: s=100"]
    assert shop.kept()["shop/web"][0]["canary"] == {
        "index": 1, "destination": {"ref": {"name": "c"}, "port": {"name": "http-canary"}}
    }  # fmt: skip
    shop.weight(10)
    assert destinations(shop) == [destination("s", 90), canary]
    assert shop.kept() == {}


def test_item_6_one_look_up_for_http_tcp_and_tls(shop: GlooShop) -> None:
    """Weights, verification and the way back are the same in every section; managed routes are of http alone."""
    tls = {**http("s70 x30"), "matchers": [{"sniHosts": ["www.example.com"]}]}
    put(shop, http("s", "main"), http("other", "free"), tcp=(http("s", port=1), http("x")), tls=(tls,))
    before = shop.live()["spec"]
    shop.managed = ["h"]

    shop.weight(20)
    shop.header("h")

    assert shop.lines() == ["h: c=-", "main: s=80 c=20", "free: other=-"]
    assert shop.lines(section="tcp") == ["s=80 c=20", "x=-"]
    assert shop.lines(section="tls") == ["s=56 x=30 c=14"]
    assert shop.verify(20) is Verification.VERIFIED
    _spoil(shop, "tls")
    assert shop.verify(20) is Verification.NOT_VERIFIED
    shop.weight(100)
    assert shop.lines(section="tls") == ["x=30 c=70"]
    shop.status = REST
    shop.remove()
    shop.weight(0)
    assert before == shop.live()["spec"]


@pytest.mark.parametrize("section", ["tcp", "tls"])
def test_item_6_a_table_without_http(shop: GlooShop, section: str) -> None:
    """Weights work there; a header step has no route to stand before, and says so."""
    put(shop, **{section: (http("s"),)})
    shop.weight(20)
    assert shop.lines(section=section) == ["s=80 c=20"]

    with pytest.raises(RouteError, match="managed route h can't be set: no http route"):
        shop.header("h")


def _spoil(shop: GlooShop, section: str) -> None:
    live = shop.live()
    live["spec"][section][0]["forwardTo"]["destinations"][0]["weight"] += 1
    live["spec"][section][0]["forwardTo"]["destinations"][-1]["weight"] -= 1
    shop.api.update(live)


def test_item_7_named_ports_stay_named(shop: GlooShop) -> None:
    """The canary and an experiment have stable's port by its name."""
    put(shop, {"name": "main", "forwardTo": {"destinations": [destination("s", port={"name": "p80"})]}})
    shop.api.create(service("e", (80, 81)))

    shop.weight(20, e=10)

    assert [raw["port"] for raw in destinations(shop)] == [{"name": "p80"}] * 3
    assert shop.lines() == ["main: s=70 c=20 e=10"]


@pytest.mark.parametrize(
    ("stable_port", "ports", "expected"),
    [
        ({"number": 80}, (80, 81), {"number": 80}),
        ({"number": 80}, (8080,), {"number": 8080}),
        ({"name": "web"}, (8080,), {"number": 8080}),
        (None, (8080,), None),
    ],
)
def test_item_7_ports_of_experiments(
    shop: GlooShop, stable_port: Json | None, ports: tuple[int, ...], expected: Json | None
) -> None:
    """An experiment's Service is read: the same number, the same name, or its only port."""
    stable = {"ref": {"name": "s"}} | ({"port": stable_port} if stable_port else {})
    put(shop, {"name": "main", "forwardTo": {"destinations": [stable]}})
    shop.api.create(service("e", ports))

    shop.weight(20, e=10)

    assert destinations(shop)[2].get("port") == expected


def test_item_7_a_port_that_fits_nothing_is_an_error(shop: GlooShop) -> None:
    """The text has the Service, the port and what the Service has; a lowering call lowers all the same (D31)."""
    shop.weight(50)
    shop.api.create(service("e", (8080, 8081)))
    message = r"experiment Service shop/e: none fits port 80 of stable's destination; it has 8080 \(p8080\)"

    with pytest.raises(RouteError, match=message):
        shop.weight(60, e=10)
    assert shop.lines() == ["main: s=50 c=50"]
    with pytest.raises(RouteError, match=message):
        shop.weight(20, e=10)
    assert shop.lines() == ["main: s=80 c=20"]
