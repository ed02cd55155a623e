"""What the installed CRD takes and keeps, where that differs from what this program knows (C35, D18, D22)."""

from typing import Any

import pytest
from tests.service.world import Shop, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import RouteError, Unavailable
from rollouts_gwapi_plugin.kube.discovery import Discovery
from rollouts_gwapi_plugin.model.kube import ResourceType

GET = {"method": {"exact": "GET"}}


def _many(count: int) -> list[dict[str, Any]]:
    matches = [[{"path": {"type": "PathPrefix", "value": f"/{index}"}}] for index in range(count)]
    return [rule("s100 c0", matches=match) for match in matches]


def _methods(count: int) -> list[dict[str, Any]]:
    return [{"method": method} for method in ("GET", "PUT", "POST", "PATCH", "DELETE")[:count]]


@pytest.fixture
def crowded(shop: Shop, api: ApiServer) -> Shop:
    """Give a route with nine rules: a header route needs eighteen."""
    api.update(route(*_many(9)))
    shop.managed = ["canary"]
    return shop


@pytest.mark.parametrize(("most", "message"), [(None, "the Gateway API takes 16"), (17, "HTTPRoute CRD takes 17")])
def test_the_limit_of_the_installed_crd_is_told(
    crowded: Shop, monkeypatch: pytest.MonkeyPatch, most: int | None, message: str
) -> None:
    """The error gives route, needed number, limit and a way out, and nothing is written (C35)."""
    monkeypatch.setattr(Discovery, "most_items", lambda *_arguments, **_options: most)

    with pytest.raises(RouteError, match=rf"HTTPRoute shop/web: spec\.rules: 18 needed, .*{message}.*ruleName"):
        crowded.header("canary")
    assert 9 == len(crowded.rules())


def test_a_crd_that_takes_more_is_used(crowded: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later Gateway API may allow 64 rules; heal knows it, too."""
    monkeypatch.setattr(Discovery, "most_items", lambda *_arguments, **_options: 64)
    crowded.header("canary")
    crowded.weight(10)

    assert 18 == len(crowded.rules())


def test_the_matches_of_a_rule_are_those_of_the_installed_crd(
    shop: Shop, api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight before Gateway API 1.2: a step is refused before the write, and never holds back the weights (C36)."""

    def most(_self: Discovery, _resource: ResourceType, path: str, **_options: Any) -> int | None:
        return 8 if path == "spec.rules[].matches" else None

    monkeypatch.setattr(Discovery, "most_items", most)
    either = [{"path": {"exact": path}} for path in ("/x", "/y")]
    shop.managed, shop.steps = ["m"], [{"setMirrorRoute": {"name": "m", "match": either}}, {"setWeight": 20}]
    shop.status["currentStepIndex"] = 1
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"]["rules"][0].update(matches=_methods(4)))
    shop.mirror("m", *either)
    api.edit("HTTPRoute", "shop", "web", lambda value: value["spec"]["rules"][-1].update(matches=_methods(5)))

    with pytest.raises(
        RouteError, match=r"\(m\)\.matches: 10 needed, the installed HTTPRoute CRD takes 8; nothing was"
    ):
        shop.mirror("m", *either)
    shop.weight(20)

    assert ["m: s=80 c=20", "s=80 c=20"] == shop.rules()


def test_a_limit_that_can_not_be_asked_is_the_apis_own(crowded: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trouble with the question is no trouble of the call."""

    def away(*_arguments: Any, **_options: Any) -> int:
        raise Unavailable("no answer")

    monkeypatch.setattr(Discovery, "most_items", away)
    with pytest.raises(RouteError, match="the Gateway API takes 16"):
        crowded.header("canary")
    crowded.weight(10)

    assert ["s=90 c=10"] * 9 == crowded.rules()


def test_the_api_is_not_asked_for_routes_with_room(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rules fit whatever is installed."""
    asked: list[str] = []
    monkeypatch.setattr(Discovery, "most_items", lambda _self, _resource, path, **_options: asked.append(path))
    shop.managed = ["canary"]
    shop.header("canary")

    assert [] == asked


def test_what_can_not_be_found_out_is_told_as_such(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server that is away is no CRD that drops the percentage (D18)."""

    def away(*_arguments: Any, **_options: Any) -> bool:
        raise Unavailable("no answer in 5 s")

    monkeypatch.setattr(Discovery, "preserves", away)
    with pytest.raises(RouteError, match=r"can't be found out whether the installed HTTPRoute CRD keeps.*no answer"):
        shop.mirror("m", GET, percentage=30)
    shop.mirror("m", GET)

    assert ["m: s=100 c=0", "s=100 c=0"] == shop.rules()


@pytest.fixture
def without_schema(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Give a world whose API server shows no OpenAPI document."""
    monkeypatch.setattr(Discovery, "_schema", lambda *_arguments: ({}, None))
    return shop


def test_without_a_schema_a_dry_run_tells(without_schema: Shop) -> None:
    """The sample is the route with a percentage in it; it is asked for once, and not stored (D18)."""
    without_schema.managed = ["m", "n"]
    first = without_schema.requests(lambda: without_schema.mirror("m", GET, percentage=30))
    second = without_schema.requests(lambda: without_schema.mirror("n", GET, percentage=40))

    assert [2, 1] == [made.count("update httproutes") for made in (first, second)]
    assert ["m: s=100 c=0", "n: s=100 c=0", "s=100 c=0"] == without_schema.rules()


def test_a_dry_run_that_loses_the_percentage_is_believed(without_schema: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a silent 100 %."""
    client = without_schema.router._connector.cluster().client
    tried: list[Any] = []

    def put(_resource: Any, value: Any, *, dry_run: bool = False, **_options: Any) -> Any:
        assert dry_run
        tried.append(value["spec"]["rules"][0].pop("filters"))
        return value

    monkeypatch.setattr(client, "put", put)
    with pytest.raises(RouteError, match=r"drops requestMirror\.percent; without it everything would be mirrored"):
        without_schema.mirror("m", GET, percentage=30)

    mirror = tried[0][0]["requestMirror"]
    assert ("s", 50) == (mirror["backendRef"]["name"], mirror["percent"])
    assert ["s=100 c=0"] == without_schema.rules()
