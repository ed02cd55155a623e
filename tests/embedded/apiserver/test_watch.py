"""Watches over HTTP: live changes, the end of history, the end of the server."""

import json
import threading
from typing import Any

import pytest
import urllib3

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

MAPS = "/api/v1/namespaces/shop/configmaps"


def _map(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop", "labels": labels}}


@pytest.fixture
def pool() -> Any:
    """Give a pool for streams, which it ends at the end."""
    with urllib3.PoolManager(retries=False, timeout=10.0) as running:
        yield running


def _events(response: urllib3.BaseHTTPResponse) -> list[tuple[str, str]]:
    return [(line["type"], line["object"]["metadata"]["name"]) for line in map(json.loads, response)]


def test_changes_arrive_while_the_watch_runs(server: ApiServer, pool: Any) -> None:
    """A watch gets what is written after it was opened, without a new request."""
    start = server.create(_map("before"))["metadata"]["resourceVersion"]
    path = f"{server.url}{MAPS}?watch=1&resourceVersion={start}&timeoutSeconds=20"
    response = pool.request("GET", path, preload_content=False)
    server.create(_map("a"))
    server.delete("ConfigMap", "shop", "a")

    lines = iter(response)

    assert [json.loads(next(lines))["type"] for _ in range(2)] == ["ADDED", "DELETED"]
    response.close()


def test_watch_from_forgotten_history_is_told(server: ApiServer, ask: Any) -> None:
    """A version older than the history gives one ERROR event with 410 Expired, as after a compaction."""
    server.create(_map("a"))
    server.create(_map("b"))
    server.store.forget_history()

    event = json.loads(ask("GET", f"{MAPS}?watch=1&resourceVersion=2&timeoutSeconds=5").data)

    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_watch_ends_with_a_bookmark_where_asked(server: ApiServer, ask: Any) -> None:
    """With allowWatchBookmarks the last event says which version the watch has come to."""
    version = server.create(_map("a"))["metadata"]["resourceVersion"]

    answer = ask("GET", f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=3&allowWatchBookmarks=true")

    event = json.loads(answer.data)
    assert (event["type"], event["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", version)


def test_watch_of_one_object(server: ApiServer, ask: Any) -> None:
    """A watch on an object's own path sees that object only."""
    server.create(_map("a"))
    server.create(_map("b"))

    assert _events(ask("GET", f"{MAPS}/b?watch=1&timeoutSeconds=1", preload_content=False)) == [("ADDED", "b")]


def test_stop_ends_watches() -> None:
    """Stopping the server ends running watches, so that no client hangs."""
    with urllib3.PoolManager(retries=False, timeout=20.0) as pool:
        with ApiServer() as server:
            response = pool.request("GET", f"{server.url}{MAPS}?watch=1", preload_content=False)
            ended = threading.Thread(target=response.read)
            ended.start()
        ended.join(10)

        assert not ended.is_alive()
