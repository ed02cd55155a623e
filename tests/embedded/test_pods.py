"""Pods of a version: a server for each container port, under one name."""

import http.client
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.certificate import make_certificate
from rollouts_gwapi_plugin.embedded.clients import Cohort, Reply, make_client
from rollouts_gwapi_plugin.embedded.pods import VersionPods, container_ports, version_name


def template(*ports: tuple[str, int], image: str = "shop:v1", **labels: str) -> dict[str, Any]:
    """Return a pod template whose ports are spread over two containers."""
    named = [{"name": name, "containerPort": port} for name, port in ports]
    containers = [{"image": image, "ports": named[:1]}, {"image": "sidecar:7", "ports": named[1:]}]
    return {"metadata": {"labels": labels}, "spec": {"containers": containers}}


def test_a_server_for_each_port() -> None:
    """Ports are found by number and by name, and each speaks what its name says."""
    certificate = make_certificate(["shop.example"])
    made = template(("http", 8080), ("grpc-orders", 9000), ("https", 8443), app="web")
    with VersionPods("v1", made, certificate.context) as pods:
        pod = pods.pod("shop", {"hash": "h1"})
        replies = []
        for scheme, port, cohort in (
            ("http", 8080, Cohort("all", 1)),
            ("grpc", "grpc-orders", Cohort("all", 1, path="/a/b")),
            ("tls", "https", Cohort("all", 1, host="shop.example")),
        ):
            client = make_client("{}://{}:{}".format(scheme, *pod.address_of(port)), cohort, certificate.pem)
            replies.append(client.send(f"all-{port}"))
            client.close()

        assert [pods.times(f"all-{port}") for port in (8080, "grpc-orders", "https", "http")] == [1, 1, 1, 0]
    assert replies == [Reply(200, "v1")] * 3
    assert (pod.namespace, pod.labels) == ("shop", {"app": "web", "hash": "h1"})
    assert pod.address_of(9000) == pod.address_of("grpc-orders") != pod.address_of("http")
    # A Service whose targetPort nobody has leads to the first port.
    assert pod.address_of(1) == pod.address == pod.address_of("http")


def test_https_without_a_certificate() -> None:
    """Where no certificate is given all pods speak plainly."""
    with VersionPods("v1", template(("https", 8443)), None) as pods:
        client = http.client.HTTPConnection(*pods.pod("shop", {}).address, timeout=10)
        client.request("GET", "/")
        assert client.getresponse().headers["x-backend"] == "v1"
        client.close()


def test_names() -> None:
    """A version is called by its label, else by the tag of its first image."""
    assert version_name(template(version="green")) == "green"
    assert version_name(template(image="registry.example:5000/shop:v1")) == "v1"
    assert version_name({}) == ""
    assert [port["containerPort"] for port in container_ports({"spec": {"containers": [{}]}})] == [80]
