"""What is special about single core kinds."""

import base64
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer, StatusError
from rollouts_gwapi_plugin.embedded.apiserver.core import MAX_DATA


def _object(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "shop"}} | fields


def test_config_map_holds_one_mebibyte(server: ApiServer) -> None:
    """The last byte that fits is taken, one more is refused, also when it comes by an update."""
    server.create(_object("ConfigMap", data={"a": "x" * MAX_DATA}))

    with pytest.raises(StatusError, match="Too long: may not be more than 1048576 bytes") as caught:
        server.update(_object("ConfigMap", data={"a": "x" * MAX_DATA, "b": "y"}))
    assert caught.value.code == 422


def test_size_counts_bytes(server: ApiServer) -> None:
    """A text of fewer characters than bytes is counted in bytes; base64 counts as what it stands for."""
    with pytest.raises(StatusError, match="Too long"):
        server.create(_object("ConfigMap", data={"a": "é" * (MAX_DATA // 2 + 1)}))
    server.create(_object("Secret", data={"a": base64.b64encode(b"x" * MAX_DATA).decode()}))


def test_immutable_config_map_stays(server: ApiServer) -> None:
    """Data of an immutable ConfigMap can't be changed, its labels can."""
    server.create(_object("ConfigMap", data={"a": "b"}, immutable=True))

    server.patch("ConfigMap", "shop", "a", {"metadata": {"labels": {"x": "y"}}})
    with pytest.raises(StatusError, match="field is immutable when `immutable` is set"):
        server.patch("ConfigMap", "shop", "a", {"data": {"a": "c"}})


def test_service_gets_address_and_ports(server: ApiServer) -> None:
    """A Service has an address of its own, a target port and a protocol; it needs ports."""
    service = _object("Service", spec={"ports": [{"port": 80}]})
    spec = server.create(service)["spec"]
    other = server.create(service | {"metadata": {"name": "b", "namespace": "shop"}})["spec"]

    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert spec["clusterIP"] != other["clusterIP"]
    with pytest.raises(StatusError, match=r"spec\.ports: Required value"):
        server.create(_object("Service", spec={"selector": {"a": "b"}}) | {"metadata": {"name": "c"}})


def test_namespace_takes_its_objects_along(server: ApiServer) -> None:
    """Objects of a deleted namespace are gone, those of others are not."""
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    server.create(_object("ConfigMap"))
    server.create(_object("ConfigMap") | {"metadata": {"name": "a", "namespace": "other"}})
    server.delete("Namespace", "", "shop")

    assert [entry["metadata"]["namespace"] for entry in server.list("ConfigMap")] == ["other"]


def test_namespaces_can_be_required() -> None:
    """Where namespaces are strict, an object needs one that was created."""
    with ApiServer(strict_namespaces=True) as server:
        with pytest.raises(StatusError, match='namespaces "shop" not found'):
            server.create(_object("ConfigMap"))
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        server.create(_object("ConfigMap"))
