"""Faults and denials reach the client; the log tells what happened."""

import threading
from typing import Any

import pytest
import urllib3

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer, Drop


def test_status_fault_is_used_up(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A fault of two times answers two requests and no third."""
    server.create(web)
    server.faults.add(verb="get", plural="httproutes", status=429, retry_after=3, times=2)

    answers = [ask("GET", f"{routes}/web") for _ in range(3)]

    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "3"


def test_conflict_fault_leaves_the_object(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """An injected 409 looks like a real one and writes nothing."""
    route = server.create(web)
    server.faults.add(verb="update", status=409)

    answer = ask("PUT", f"{routes}/web", route | {"spec": {}})

    assert 'Operation cannot be fulfilled on httproutes.gateway.networking.k8s.io "web"' in answer.json()["message"]
    assert server.read("HTTPRoute", "shop", "web") == route


@pytest.mark.parametrize(("drop", "written"), [(Drop.BEFORE, False), (Drop.AFTER, True)])
def test_dropped_connection(
    server: ApiServer,
    ask: Any,
    routes: str,
    web: dict[str, Any],
    drop: Drop,
    written: bool,  # noqa: FBT001 - a case
) -> None:
    """A dropped connection gives no answer; whether the write was done is as asked."""
    route = server.create(web)
    server.faults.add(verb="update", drop=drop)

    with pytest.raises(urllib3.exceptions.ProtocolError):
        ask("PUT", f"{routes}/web", route | {"spec": {"hostnames": ["a.example"]}})

    assert (server.read("HTTPRoute", "shop", "web")["spec"] == {"hostnames": ["a.example"]}) is written
    assert server.requests[-1].status == 0


def test_hang_until_released(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A held request is answered after its event, and others are served meanwhile."""
    server.create(web)
    release = threading.Event()
    fault = server.faults.add(verb="get", name="web", until=release)
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(ask("GET", f"{routes}/web").status))
    thread.start()
    server.requests.wait_for(lambda request: request.name == "web")

    assert ask("GET", f"{routes}/other").status == 404
    assert (answers, fault.left) == ([], 0)

    release.set()
    thread.join(10)
    assert answers == [200]


def test_denial_has_the_real_text_and_ends(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A denied verb answers Kubernetes' 403 until the denial is lifted."""
    route = server.create(web)
    with server.deny("update", "httproutes", "shop"):
        answer = ask("PUT", f"{routes}/web", route)

    assert (answer.status, answer.json()["reason"]) == (403, "Forbidden")
    assert answer.json()["message"] == (
        'httproutes.gateway.networking.k8s.io "web" is forbidden: User '
        '"system:serviceaccount:argo-rollouts:argo-rollouts" cannot update resource "httproutes" in API group '
        '"gateway.networking.k8s.io" in the namespace "shop"'
    )
    assert ask("PUT", f"{routes}/web", route).status == 200


def test_log_tells_who_asked_what(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A logged write has its body, user agent, field manager and answer; dry runs are no writes."""
    ask("POST", f"{routes}?fieldManager=tester", web, headers={"User-Agent": "probe/1"})
    ask("POST", f"{routes}?dryRun=All", web)

    (write,) = server.requests.writes
    assert (write.verb, write.field_manager, write.user_agent, write.status) == ("create", "tester", "probe/1", 201)
    assert write.body == web


def test_foreign_write_between_read_and_write(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A before-write hook can slip a foreign write in, which makes the request's write stale."""
    route = server.create(web)
    server.before_write(
        lambda _: server.edit("HTTPRoute", "shop", "web", lambda r: r["metadata"].update(labels={"a": "b"}))
    )

    assert ask("PUT", f"{routes}/web", route | {"spec": {}}).status == 409


def test_after_write_sees_each_commit(server: ApiServer, web: dict[str, Any]) -> None:
    """The hook gets the state before and after each write, in order; its error comes out at the end."""
    seen: list[tuple[bool, int]] = []
    server.after_write(
        lambda change: seen.append((change.before is not None, len(change.stored.value["spec"]["rules"])))
    )
    server.create(web)
    server.edit("HTTPRoute", "shop", "web", lambda route: route["spec"]["rules"].append({}))

    assert seen == [(False, 1), (True, 2)]
