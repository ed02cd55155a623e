"""What a test does with the server: objects, hooks, kubeconfig, the log, speed."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer, Change, StatusError
from rollouts_gwapi_plugin.kube.auth import load_cluster_config
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline


def test_kubeconfig_works_with_the_client(tmp_path: Path) -> None:
    """The written kubeconfig, with TLS and a token, lets our own client in as the named user."""
    with ApiServer(tls=True, require_token=True) as server:
        path = server.write_kubeconfig(tmp_path / "config", user="somebody")
        client = KubeClient(load_cluster_config(path))
        version = client.raw_get("/version", deadline=Deadline.after(10))
        client.raw_get("/api/v1/namespaces/default", deadline=Deadline.after(10))
        client.close()

        assert version["gitVersion"].endswith("+embedded")
        assert server.requests[-1].user == "somebody"


def test_kubeconfig_is_yaml_for_the_owner(server: ApiServer, tmp_path: Path) -> None:
    """The file holds what `kubeconfig` gives, and nobody else reads it, also where it was there with another mode."""
    path = tmp_path / "config"
    path.write_text("old, and longer than what comes " * 100, encoding="utf-8")
    path.chmod(0o644)

    server.write_kubeconfig(path)

    assert yaml.safe_load(path.read_text(encoding="utf-8")) == server.kubeconfig()
    assert path.stat().st_mode & 0o777 == 0o600


def test_results_are_copies(server: ApiServer, web: dict[str, Any]) -> None:
    """Changing what was returned, or what was given, changes nothing on the server."""
    server.create(web)
    web["spec"]["rules"] = []
    server.read("HTTPRoute", "shop", "web")["spec"].clear()
    server.list("HTTPRoute")[0]["spec"].clear()

    assert len(server.read("httproutes", "shop", "web")["spec"]["rules"]) == 1


def test_load_creates_and_replaces(server: ApiServer, web: dict[str, Any]) -> None:
    """Documents are created or replaced in their order; lists are taken apart, empty documents skipped."""
    other = web | {"metadata": {"name": "other", "namespace": "shop"}}
    server.load([web, {}, {"apiVersion": "v1", "kind": "List", "items": [other]}])
    server.load([web | {"spec": {"hostnames": ["a.example.com"]}}])

    assert server.read("HTTPRoute", "shop", "web")["spec"] == {"hostnames": ["a.example.com"]}
    assert server.find("HTTPRoute", "shop", "other") is not None
    assert server.find("HTTPRoute", "shop", "third") is None


def test_kinds_have_many_names(server: ApiServer, web: dict[str, Any]) -> None:
    """A kind is found by kind, plural, and group; one that is not served is told."""
    server.create(web)

    for name in ("HTTPRoute", "httproutes", "httproute", "httproutes.gateway.networking.k8s.io"):
        assert server.read(name, "shop", "web")["kind"] == "HTTPRoute"
    with pytest.raises(StatusError, match="no kind 'HTTPRoutes' is served"):
        server.read("HTTPRoutes", "shop", "web")


def test_errors_of_hooks_come_out_at_the_end(web: dict[str, Any]) -> None:
    """A failed assertion in a hook does not disturb the write, and stop raises it."""

    def judge(change: Change) -> None:
        assert change.stored.value["kind"] != "HTTPRoute"

    server = ApiServer().start()
    server.after_write(judge)
    server.create(web)

    with pytest.raises(AssertionError):
        server.stop()


def test_a_get_costs_little_and_does_not_get_dearer(
    server: ApiServer, ask: Any, routes: str, web: dict[str, Any]
) -> None:
    """A GET takes less than a millisecond of CPU here, also after thousands of logged requests."""
    server.create(web)
    api = server._api

    def cost(count: int) -> float:
        begin = time.thread_time()
        for _ in range(count):
            request = server.requests.begin("GET", f"{routes}/web", {}, {})
            assert api.answer(request, api.identify(request)).code == 200
            server.requests.finish(request, 200)
        return (time.thread_time() - begin) / count

    ask("GET", f"{routes}/web")
    early = cost(500)
    cost(10_000)
    late = cost(500)

    assert early < 0.001
    assert late < 0.001
    assert len(server.requests) > 11_000


def test_log_can_be_asked_and_waited_on(server: ApiServer, ask: Any, routes: str) -> None:
    """The log finds requests by their attributes, and says what came where one is missing."""
    ask("GET", f"{routes}/web")
    ask("GET", "/version")

    (found,) = server.requests.matching(verb="get", plural="httproutes", namespace="shop", name="web", status=404)
    assert found.user == "system:serviceaccount:argo-rollouts:argo-rollouts"
    with pytest.raises(TimeoutError, match="GET /version -> 200"):
        server.requests.wait_for(lambda request: request.verb == "delete", timeout=0.05)
    server.requests.clear()
    assert list(server.requests) == []
