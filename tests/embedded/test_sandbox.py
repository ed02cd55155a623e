"""The sandbox: manifests in, real answers out, and the plugin's rights are those of the manifests."""

import http.client
from collections.abc import Iterator
from typing import Any

import pytest

from rollouts_gwapi_plugin.cli.demo.examples import load_example
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, ReplicaSet, SwitchService
from rollouts_gwapi_plugin.embedded.host.rollout import short_hash
from rollouts_gwapi_plugin.embedded.sandbox import Sandbox
from rollouts_gwapi_plugin.errors import ConfigError, Forbidden
from rollouts_gwapi_plugin.kube.auth import load_cluster_config
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.kube import SERVICES, ResourceType

ROUTES = ResourceType("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Return a sandbox with the canary example in it."""
    with Sandbox(load_example("canary").manifests, "shop") as running:
        yield running


def two_versions() -> Cluster:
    """Return a cluster with pods of the example's version and of an older one."""
    rollout: dict[str, Any] = load_example("canary").rollout
    return Cluster(rollout, {short_hash(rollout["spec"]["template"]): ReplicaSet(2), "old": ReplicaSet(2)})


def test_traffic_goes_where_services_lead(sandbox: Sandbox) -> None:
    """Pods that a ReplicaSet asks for become available and answer; a switched Service moves the traffic."""
    cluster = sandbox.run_pods(two_versions())
    new = cluster.read.pod_hash
    answers = []
    for pod_hash in (new, "old"):
        sandbox.switch(SwitchService("web-stable", pod_hash))
        sandbox.settle()
        client = http.client.HTTPConnection("127.0.0.1", int(sandbox.gateway.url().rpartition(":")[2]), timeout=10)
        client.request("GET", "/")
        answers.append(client.getresponse().headers["x-backend"])
        client.close()

    assert {one.available for one in cluster.replica_sets.values()} == {2}
    assert answers == ["blue", "old"]


def test_the_plugin_has_the_rights_of_the_manifests(sandbox: Sandbox) -> None:
    """With the kubeconfig one may read and update routes, and not read Services; its calls are counted."""
    client = KubeClient(load_cluster_config(sandbox.kubeconfig))
    deadline, before = Deadline.after(20), sandbox.plugin_calls()
    route = client.get(ROUTES, "shop", "web", deadline=deadline)
    client.put(ROUTES, route, deadline=deadline)
    with pytest.raises(Forbidden):
        client.get(SERVICES, "shop", "web-stable", deadline=deadline)
    client.close()
    reads, writes = sandbox.plugin_calls()

    assert (reads - before[0], writes - before[1]) == (2, 1)


def test_manifests_without_a_gateway() -> None:
    """A sandbox needs a Gateway to listen for."""
    with pytest.raises(ConfigError, match="need one Gateway, 0 were found"):
        Sandbox([], "shop")
