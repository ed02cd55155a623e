"""The eighth thing: the flat keys of the proof-of-concept plugin and the switches of section `gloo`."""

from tests.service.gloo.world import GlooShop, destination, http, line, put, table

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer


def test_item_8_the_flat_keys_work(api: ApiServer, shop: GlooShop) -> None:
    """The older form, under the older key, in another namespace."""
    made = table({"forwardTo": {"destinations": [destination("s", ref={"name": "s", "namespace": "shop"})]}})
    made["metadata"]["namespace"] = "gateway"
    api.create(made)
    flat = {"routeTableName": "web", "routeTableNamespace": "gateway", "destinationNamespace": "shop"}
    shop.plugins = {"solo-io/glooplatformAPI": {**flat, "destinationKind": "SERVICE"}}

    shop.weight(20)

    live = api.read("RouteTable", "gateway", "web")
    assert line(live["spec"]["http"][0]) == "s=80 c=20"
    assert live["spec"]["http"][0]["forwardTo"]["destinations"][1]["ref"] == {"name": "c", "namespace": "shop"}


def test_item_8_one_rollout_may_use_both_plugins(api: ApiServer, shop: GlooShop) -> None:
    """Two processes: each finds its key by its executable's path, and leaves the other's routes and records alone."""
    route = {
        "parentRefs": [{"name": "gw"}],
        "rules": [{"backendRefs": [{"name": "s", "port": 80}, {"name": "c", "port": 80}]}],
    }
    metadata = {"name": "web", "namespace": "shop"}
    api.create({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": metadata, "spec": route})
    shop.plugins = {"argoproj-labs/gatewayAPI": {"httpRoute": "web"}, "solo-io/glooplatform": {"routeTableName": "web"}}
    shop.managed = ["h"]
    for path in ("/plugin-bin/argoproj-labs/gatewayAPI", "/plugin-bin/solo-io/glooplatform"):
        shop.settings = {"executable": path}
        shop.restart()
        shop.header("h")
        shop.weight(20)
    for path in ("/plugin-bin/argoproj-labs/gatewayAPI", "/plugin-bin/solo-io/glooplatform"):
        shop.settings = {"executable": path}
        shop.restart()
        shop.weight(30)

    assert shop.rules() == ["s=70 c=30", "h: c=1"]
    assert shop.lines() == ["h: c=-", "main: s=70 c=30"]
    assert set(shop.recorded()) == {"httpManagedHeaderRoutes", "routeTableManagedHeaderRoutes"}


def test_item_8_zero_weight_keep_leaves_zeros(shop: GlooShop) -> None:
    """Where a Gloo version wants them, what the user wrote stays with an explicit 0; what we added still goes."""
    put(shop, http("s100 c0", "main"), http("s100", "single"))
    shop.configure(routeTableName="web", zeroWeight="keep")

    shop.weight(100)
    assert shop.lines() == ["main: s=0 c=100", "single: s=0 c=100"]
    shop.weight(0)
    assert shop.lines() == ["main: s=100 c=0", "single: s=100"]


def test_item_8_header_match_any(shop: GlooShop) -> None:
    """`headerMatch: any` makes each entry of a step an alternative matcher, `all` needs all of them."""
    shop.steps = []
    entries = [{"headerName": name, "headerValue": {"exact": "1"}} for name in ("X-A", "X-B")]
    for mode, expected in (("all", [["X-A", "X-B"]]), ("any", [["X-A"], ["X-B"]])):
        shop.configure(routeTableName="web", headerMatch=mode)
        shop.header_step({"name": "h", "match": entries})
        matchers = shop.live()["spec"]["http"][0]["matchers"]
        assert [[header["name"] for header in matcher["headers"]] for matcher in matchers] == expected


def test_item_8_mirror_off(shop: GlooShop) -> None:
    """`mirror: off` makes a mirror step succeed without a route and a policy."""
    shop.configure(routeTableName="web", mirror="off")

    shop.mirror("m", {"method": {"exact": "GET"}})

    assert shop.lines() == ["main: s=-"]
    assert shop.policies() == {}
