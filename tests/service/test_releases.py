"""One rollout on the definitions of several Gateway API releases, both channels (C33, C34, D18, D23)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.world import Shop, header_step, rule, service

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.model.calls import Verification

RELEASES = [
    (release, channel)
    for release in ("1.2.1", "1.3.0", "1.4.1", "1.5.1", "1.6.1")
    for channel in ("standard", "experimental")
]
KINDS = {"http": "HTTPRoute", "grpc": "GRPCRoute", "tcp": "TCPRoute", "tls": "TLSRoute", "udp": "UDPRoute"}

pytestmark = pytest.mark.go


@pytest.fixture(params=RELEASES, ids="-".join)
def release(
    request: pytest.FixtureRequest, gateway_api_crds: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> Iterator[tuple[Shop, dict[str, list[str]]]]:
    """Give a world on the definitions of a release, and the versions that it serves a kind."""
    definitions = gateway_api_crds(*request.param)
    served = {
        crd["spec"]["names"]["kind"]: [item["name"] for item in crd["spec"]["versions"] if item["served"]]
        for crd in definitions
    }
    with ApiServer(crds=definitions) as api:
        api.create(service("b"))
        yield Shop(api, tmp_path), served


def _create(shop: Shop, kind: str, versions: list[str]) -> None:
    version = "v1" if "v1" in versions else versions[-1]
    spec: dict[str, Any] = {"parentRefs": [{"name": "gw"}], "rules": [rule("s100 c0")]}
    if kind == "TLSRoute":
        spec["hostnames"] = ["web.example"]
    metadata = {"name": "web", "namespace": "shop"}
    group = "gateway.networking.k8s.io"
    shop.api.create({"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata, "spec": spec})


@pytest.mark.parametrize("family", KINDS)
def test_weights_and_experiments_on_every_served_kind(release: tuple[Shop, dict[str, list[str]]], family: str) -> None:
    """Whatever version is served is found; a kind that is not is named in the error."""
    shop, served = release
    kind = KINDS[family]
    shop.config = {f"{family}Route": "web"}
    if not served.get(kind):
        with pytest.raises(PluginError, match=f"serves no {kind}"):
            shop.weight(30)
        return
    _create(shop, kind, served[kind])
    shop.weight(30, b=10)
    during = shop.rules(kind=kind)
    verified = shop.verify(30, b=10)
    writes = [made for made in shop.requests(lambda: shop.weight(30, b=10)) if not made.startswith("get")]
    shop.weight(0)

    assert ["s=60 c=30 b=10"] == during
    assert Verification.VERIFIED == verified
    assert [] == writes
    assert ["s=100 c=0"] == shop.rules(kind=kind)


@pytest.mark.parametrize("family", ["http", "grpc"])
def test_a_header_route_with_and_without_rule_names(release: tuple[Shop, dict[str, list[str]]], family: str) -> None:
    """Where the CRD prunes names the record finds the rule by its fingerprint: no duplicate, no write, no orphan."""
    shop, served = release
    _create(shop, KINDS[family], served[KINDS[family]])
    shop.config, shop.managed = {f"{family}Route": "web"}, ["canary"]
    shop.steps = [{"setHeaderRoute": header_step("canary")}]
    for _ in range(2):
        shop.header("canary")
    shop.weight(40)
    during = shop.rules(kind=KINDS[family])
    writes = [made for made in shop.requests(lambda: shop.weight(40)) if not made.startswith("get")]
    shop.restart()
    shop.remove()

    assert ["s=60 c=40", "c=1"] == [line.removeprefix("canary: ") for line in during]
    assert [] == writes
    assert ["s=60 c=40"] == shop.rules(kind=KINDS[family])
    assert {} == shop.ledger()


def test_a_mirror_share_is_kept_or_refused(
    release: tuple[Shop, dict[str, list[str]]], request: pytest.FixtureRequest
) -> None:
    """Never a silent 100 %: a CRD that drops the percentage is found out before the write (D18)."""
    shop, served = release
    _create(shop, "HTTPRoute", served["HTTPRoute"])
    drops = request.node.callspec.params["release"] == ("1.2.1", "standard")
    if drops:
        with pytest.raises(PluginError, match=r"drops requestMirror\.percent"):
            shop.mirror("m", {"method": {"exact": "GET"}}, percentage=30)
        assert ["s=100 c=0"] == shop.rules()
        return
    shop.mirror("m", {"method": {"exact": "GET"}}, percentage=30)
    mirror = shop.api.read("HTTPRoute", "shop", "web")["spec"]["rules"][0]["filters"][0]["requestMirror"]
    shop.remove()

    assert 30 == mirror["percent"]
    assert ["s=100 c=0"] == shop.rules()
