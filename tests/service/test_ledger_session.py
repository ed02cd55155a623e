"""The ledger during one call: what is wrong with one kind's part does not touch another's (decision D8)."""

import pytest
from tests.service.world import LEDGER, Shop, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import LedgerError
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED
from rollouts_gwapi_plugin.service.ledger_session import LedgerSession


def test_a_broken_key_of_another_kind(shop: Shop, api: ApiServer) -> None:
    """With a broken record of GRPCRoutes the HTTPRoute gets its header route, and the error names the GRPCRoute."""
    api.create(route(rule("s100 c0"), name="rpc", kind="GRPCRoute"))
    broken = {"grpcManagedHeaderRoutes": "{"}
    metadata = {"name": LEDGER, "namespace": "shop"}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": broken})
    shop.config, shop.managed = {"httpRoute": "web", "grpcRoute": "rpc"}, ["canary"]

    with pytest.raises(LedgerError, match="GRPCRoute shop/rpc: managed route canary is not set"):
        shop.header("canary")

    assert shop.rules() == ["s=100 c=0", "canary: c=1"]
    assert shop.rules("rpc", "GRPCRoute") == ["s=100 c=0"]
    assert shop.ledger()["grpcManagedHeaderRoutes"] == "{"


def test_trouble_of_each_kind_is_its_own(shop: Shop, api: ApiServer) -> None:
    """Whatever was asked for last, and in one read of the ConfigMap."""
    metadata = {"name": LEDGER, "namespace": "shop"}
    broken = {"grpcManagedHeaderRoutes": "{"}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": broken})
    session = LedgerSession(shop.router._connector.cluster().client, "shop", LEDGER, "shop/web", "", Deadline.after(20))

    def ask() -> None:
        view, trouble = session.view("grpc", "web")
        assert (view, type(trouble)) == (NOTHING_RECORDED, LedgerError)
        assert session.view("http", "web")[1] is None
        assert session.trouble("http", "tcp") is None
        assert isinstance(session.trouble("http", "grpc"), LedgerError)

    assert shop.requests(ask) == ["get configmaps"]
