"""The client's verbs as requests, and its behaviour on a bad day, against a scripted server over real sockets.

Matrix: each verb's method, path, query, body, headers; names that are no path; 401, dropped, hanging, stalled,
dripping and endless answers; many threads.
"""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube import call, connection
from rollouts_gwapi_plugin.kube.auth import ClusterConfig
from rollouts_gwapi_plugin.kube.client import USER_AGENT, KubeClient
from rollouts_gwapi_plugin.kube.credentials import TokenFile
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS, ResourceType

Connect = Callable[..., KubeClient]
WEB = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/web"
ROUTE = {"kind": "HTTPRoute", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"future": {"x": None}}}


def soon(seconds: float = 10.0) -> Deadline:
    """Return a deadline that a healthy call never meets."""
    return Deadline.after(seconds)


def test_get_returns_the_whole_object(api: Any, connect: Connect, routes: ResourceType) -> None:
    """A read is one GET, and gives unknown fields and nulls back."""
    api.add(WEB, ROUTE)
    found = connect(api).get(routes, "shop", "web", deadline=soon())

    assert found["spec"] == {"future": {"x": None}}
    assert [(request.method, request.path, request.query) for request in api.requests] == [("GET", WEB, {})]
    assert api.requests[0].headers["user-agent"] == USER_AGENT


def test_list_passes_the_selector_and_names_kinds(api: Any, connect: Connect, routes: ResourceType, reply: Any) -> None:
    """A list sends the selector, and its items say their kind even where the server leaves it out."""
    api.script.append(reply(200, {"items": [{"metadata": {"name": "a"}}, {"kind": "HTTPRoute", "x": 1}]}))
    found = connect(api).list(routes, "shop", label_selector="app in (a,b),!c", deadline=soon())

    assert [item["kind"] for item in found] == ["HTTPRoute", "HTTPRoute"]
    assert found[0]["apiVersion"] == "gateway.networking.k8s.io/v1"
    assert api.requests[0].query == {"labelSelector": ["app in (a,b),!c"]}
    assert api.requests[0].path == WEB.removesuffix("/web")


def test_list_of_nothing(api: Any, connect: Connect, routes: ResourceType, reply: Any) -> None:
    """A list without items, which Go may send as null, is empty."""
    api.script.append(reply(200, {"items": None}))

    assert connect(api).list(routes, "shop", deadline=soon()) == []


@pytest.mark.parametrize("items", [5, {"a": 1}, "ab", [{}, None], [["a", "b"]]])
def test_list_of_what_is_no_object(api: Any, connect: Connect, routes: ResourceType, reply: Any, items: Any) -> None:
    """What is no list of objects is not the API server's answer, and told as such."""
    api.script.append(reply(200, {"items": items}))
    with pytest.raises(errors.Unavailable, match="items are not a list of objects"):
        connect(api).list(routes, "shop", deadline=soon())


def test_what_no_address_can_hold_is_not_sent(api: Any, connect: Connect, routes: ResourceType) -> None:
    """Half a surrogate pair, which a configuration's JSON can spell, ends the call with a reason."""
    client = connect(api)
    with pytest.raises(errors.Invalid, match="half a surrogate pair"):
        client.get(routes, "shop", "web\ud800", deadline=soon())
    with pytest.raises(errors.Invalid, match="half a surrogate pair"):
        client.list(routes, "shop", label_selector="a=\ud800", deadline=soon())

    assert api.requests == []


@pytest.mark.parametrize("dry_run", [False, True])
def test_put_is_conditional_and_owned(api: Any, connect: Connect, routes: ResourceType, *, dry_run: bool) -> None:
    """A write is one PUT of the whole object under its resourceVersion and our field manager."""
    api.add(WEB, ROUTE)
    client = connect(api)
    read = client.get(routes, "shop", "web", deadline=soon())
    written = client.put(routes, {**read, "spec": {"y": 1}}, dry_run=dry_run, deadline=soon())
    request = api.requests[1]

    assert (written["spec"], request.method, request.path) == ({"y": 1}, "PUT", WEB)
    assert request.body["metadata"]["resourceVersion"] == read["metadata"]["resourceVersion"]
    assert request.query == {"fieldManager": ["rollouts-gwapi-plugin"]} | ({"dryRun": ["All"]} if dry_run else {})


def test_put_under_an_old_version_is_a_conflict(api: Any, connect: Connect, routes: ResourceType) -> None:
    """A write of an object that was changed since is a Conflict and changes nothing."""
    api.add(WEB, ROUTE)
    client = connect(api)
    read = client.get(routes, "shop", "web", deadline=soon())
    api.add(WEB, {**ROUTE, "spec": {"theirs": 1}})
    with pytest.raises(errors.Conflict, match="update HTTPRoute shop/web: changed by somebody else") as caught:
        client.put(routes, read, deadline=soon())

    assert (caught.value.answer_lost, api.objects[WEB]["spec"]) == (False, {"theirs": 1})


def test_post_creates_once(api: Any, connect: Connect) -> None:
    """A create is one POST to the list; a second one is AlreadyExists."""
    client = connect(api)
    body = {"kind": "ConfigMap", "metadata": {"name": "ledger", "namespace": "shop"}, "data": {"a": "ü\udcff"}}
    made = client.post(CONFIG_MAPS, "shop", body, deadline=soon())
    with pytest.raises(errors.AlreadyExists):
        client.post(CONFIG_MAPS, "shop", body, deadline=soon())

    assert made["metadata"]["resourceVersion"]
    assert api.requests[0].path == "/api/v1/namespaces/shop/configmaps"


def test_delete_carries_its_precondition(api: Any, connect: Connect) -> None:
    """A delete is conditional where a version is given; of what is not there it is NotFound."""
    path = "/api/v1/namespaces/shop/configmaps/ledger"
    api.add(path, {"metadata": {"name": "ledger"}})
    client = connect(api)
    client.delete(CONFIG_MAPS, "shop", "ledger", resource_version="7", deadline=soon())
    with pytest.raises(errors.NotFound):
        client.delete(CONFIG_MAPS, "shop", "ledger", deadline=soon())

    assert api.requests[0].body["preconditions"] == {"resourceVersion": "7"}
    assert "preconditions" not in api.requests[1].body


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "a%2fb"])
def test_name_that_is_no_path_segment_is_not_sent(api: Any, connect: Connect, routes: ResourceType, name: str) -> None:
    """A name from a user's configuration can't make us ask for another object."""
    with pytest.raises(errors.Invalid, match="not sent"):
        connect(api).get(routes, "shop", name, deadline=soon())
    with pytest.raises(errors.Invalid, match="not sent"):
        connect(api).get(routes, name, "web", deadline=soon())

    assert api.requests == []


def test_odd_name_is_escaped(api: Any, connect: Connect, routes: ResourceType) -> None:
    """A name with a question mark or a blank stays one path segment."""
    with pytest.raises(errors.KubeError):
        connect(api).get(routes, "shop", "a b?c#d", deadline=soon())

    assert api.requests[0].path.endswith("/httproutes/a%20b%3Fc%23d")


def test_writes_without_their_condition_are_not_sent(api: Any, connect: Connect, routes: ResourceType) -> None:
    """A PUT without a resourceVersion and a POST without a name are refused before they are sent."""
    client = connect(api)
    with pytest.raises(errors.Invalid, match=r"no metadata\.resourceVersion"):
        client.put(routes, ROUTE, deadline=soon())
    with pytest.raises(errors.Invalid, match=r"no metadata\.name"):
        client.post(CONFIG_MAPS, "shop", {"metadata": {"generateName": "x-"}}, deadline=soon())

    assert api.requests == []


def test_base_path_of_the_server_is_kept(api: Any, connect: Connect, reply: Any) -> None:
    """An API server behind a path (Rancher) is asked under that path."""
    api.script.append(reply(200, {"kind": "APIGroupList"}))
    connect(ClusterConfig(f"{api.url}/k8s/clusters/c-1/")).raw_get("/apis", deadline=soon())

    assert api.requests[0].path == "/k8s/clusters/c-1/apis"


def test_connection_is_kept(api: Any, connect: Connect, routes: ResourceType) -> None:
    """Calls one after the other share one connection."""
    api.add(WEB, ROUTE)
    client = connect(api)
    for _ in range(5):
        client.get(routes, "shop", "web", deadline=soon())

    assert len({request.connection for request in api.requests}) == 1


def test_refused_token_is_renewed_once(api: Any, connect: Connect, tmp_path: Path, reply: Any, status: Any) -> None:
    """A 401 makes the client read the token anew and ask once more; a second 401 is the answer."""
    token = tmp_path / "token"
    token.write_text("old")
    client = connect(ClusterConfig(api.url, TokenFile(token)))
    api.responder = lambda request: (
        None if request.headers["authorization"] == "Bearer new" else reply(401, status(401, "Unauthorized", "no"))
    )
    api.add("/api/v1/namespaces/a/configmaps/b", {"metadata": {"name": "b"}})
    with pytest.raises(errors.Forbidden, match="does not know us"):
        client.get(CONFIG_MAPS, "a", "b", deadline=soon())
    token.write_text("new")
    client.get(CONFIG_MAPS, "a", "b", deadline=soon())
    sent = [request.headers["authorization"] for request in api.requests]

    assert sent == ["Bearer old", "Bearer old", "Bearer old", "Bearer new"]


def test_hanging_server_ends_with_the_deadline(api: Any, connect: Connect, routes: ResourceType, reply: Any) -> None:
    """A server that accepts and never answers costs the deadline and not more (C137)."""
    api.responder = lambda _request: reply(hang=True)
    started = time.monotonic()
    with pytest.raises(errors.Unavailable, match=r"get HTTPRoute shop/web: no answer from API server .* in 0\.4\d* s"):
        connect(api).get(routes, "shop", "web", deadline=soon(0.4))

    assert time.monotonic() - started < 2


@pytest.mark.parametrize("bad", [{"stall": True}, {"drip": 0.05}, {"head_drip": 0.05}])
@pytest.mark.parametrize("kept", [False, True])
def test_slow_answer_ends_with_the_deadline(
    api: Any, connect: Connect, routes: ResourceType, reply: Any, bad: dict[str, Any], *, kept: bool
) -> None:
    """A body that stops half way, a body or a head that comes a byte at a time cost the deadline and not more."""
    api.add(WEB, ROUTE)
    client = connect(api)
    if kept:
        client.get(routes, "shop", "web", deadline=soon())
    api.responder = lambda _request: reply(200, {"x": "y" * 200}, **bad)
    started = time.monotonic()
    with pytest.raises(errors.Unavailable, match=r"no answer from API server .* in 0\.4\d* s"):
        client.get(routes, "shop", "web", deadline=soon(0.4))

    assert time.monotonic() - started < 2


def test_kept_connection_has_the_time_of_each_call(api: Any, connect: Connect, routes: ResourceType) -> None:
    """What was left at the end of one call is no limit for the next on the same connection."""
    api.add(WEB, ROUTE)
    client = connect(api)
    route = client.get(routes, "shop", "web", deadline=soon())
    pool = client._connections._manager.connection_from_url(api.url).pool
    assert pool is not None
    pool.queue[-1].sock.settimeout(1e-6)
    written = client.put(routes, {**route, "spec": {"text": "x" * 9_000_000}}, deadline=soon())

    assert len(written["spec"]["text"]) == 9_000_000
    assert len({request.connection for request in api.requests}) == 1


def test_dropped_connection_is_asked_again(api: Any, connect: Connect, routes: ResourceType, reply: Any) -> None:
    """A connection that breaks before the answer is no error to the caller (C138)."""
    api.add(WEB, ROUTE)
    api.script.extend(
        [reply(drop=True), reply(200, b'{"kind": "HTTPR', {"Content-Length": "500", "Connection": "close"}), None]
    )
    found = connect(api).get(routes, "shop", "web", deadline=soon())

    assert (found["kind"], len(api.requests)) == ("HTTPRoute", 3)


def test_neighbours_of_a_dead_connection_are_not_waited_for(
    api: Any, connect: Connect, routes: ResourceType, reply: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept connections that all went dead without a word cost one time-out, not one each in later calls."""
    api.add(WEB, ROUTE)
    client = connect(api)
    together = threading.Barrier(3)

    def all_at_once(_request: Any) -> None:
        together.wait(5)

    api.responder = all_at_once
    three_calls = partial(_three_at_once, client, routes)
    three_calls()
    dead = {request.connection for request in api.requests}
    api.requests.clear()
    api.responder = lambda request: reply(hang=True) if request.connection in dead else None
    monkeypatch.setattr(call, "REQUEST_TIMEOUT", 1.0)
    client.get(routes, "shop", "web", deadline=soon())
    api.responder = lambda request: reply(hang=True) if request.connection in dead else all_at_once(request)
    three_calls()

    assert (len(dead), len(api.requests)) == (3, 2 + 3)


def _three_at_once(client: KubeClient, routes: ResourceType) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: client.get(routes, "shop", "web", deadline=soon()), range(3)))


def test_write_whose_answer_was_lost_is_a_marked_conflict(
    api: Any, connect: Connect, routes: ResourceType, reply: Any
) -> None:
    """A PUT that was done but not answered comes back as a Conflict that says so, and was done once."""
    api.add(WEB, ROUTE)
    client = connect(api)
    read = client.get(routes, "shop", "web", deadline=soon())
    api.script.append(reply(drop=True, apply_first=True))
    with pytest.raises(errors.Conflict) as caught:
        client.put(routes, {**read, "spec": {"y": 1}}, deadline=soon())

    assert (caught.value.answer_lost, api.objects[WEB]["spec"]) == (True, {"y": 1})


def test_delete_whose_answer_was_lost_is_done(api: Any, connect: Connect, reply: Any) -> None:
    """A DELETE that was done but not answered is a success."""
    path = "/api/v1/namespaces/shop/configmaps/ledger"
    api.add(path, {"metadata": {"name": "ledger"}})
    api.script.append(reply(drop=True, apply_first=True))
    connect(api).delete(CONFIG_MAPS, "shop", "ledger", deadline=soon())

    assert (path in api.objects, len(api.requests)) == (False, 2)


def test_refused_connection_says_where(connect: Connect, start_api: Any, routes: ResourceType) -> None:
    """With no server at the address the error names address and cause, after the bounded tries."""
    server = start_api()
    url = server.url
    server.close()
    with pytest.raises(errors.Unavailable, match=rf"{url} .*can't be reached: Connection refused \(after 4 tries\)"):
        connect(ClusterConfig(url)).get(routes, "shop", "web", deadline=soon())


def test_connection_that_is_never_accepted_ends(
    connect: Connect, routes: ResourceType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that swallows every packet costs the connect limit each try, and says so."""
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.1)
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        client = connect(ClusterConfig(f"http://127.0.0.1:{full.getsockname()[1]}"))
        with pytest.raises(errors.Unavailable, match=r"no connection to API server .* in 0\.1 s \(after 4 tries\)"):
            client.get(routes, "shop", "web", deadline=soon())


def test_answer_without_end_is_cut_off(api: Any, connect: Connect, reply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer beyond the size limit is an error, asked for no second time."""
    monkeypatch.setattr(connection, "MAX_RESPONSE_BYTES", 1000)
    api.script.append(reply(200, {"x": "y" * 2000}))
    with pytest.raises(errors.Unavailable, match="longer than 1000 bytes"):
        connect(api).raw_get("/apis", deadline=soon())

    assert len(api.requests) == 1


def test_redirect_is_not_followed(api: Any, connect: Connect, reply: Any) -> None:
    """A redirect (a login page in front) is an error: the token must not go to another place."""
    api.script.append(reply(302, b"", {"Location": "http://127.0.0.1:1/login"}))
    with pytest.raises(errors.Unavailable, match="answered 302, a redirect"):
        connect(api).raw_get("/apis", deadline=soon())

    assert len(api.requests) == 1


def test_ten_threads_get_their_own_answers(api: Any, connect: Connect, routes: ResourceType) -> None:
    """Ten threads on one client never see each other's objects, and share few connections."""
    for number in range(20):
        api.add(WEB + str(number), {"metadata": {"name": f"web{number}"}})
    client = connect(api)

    def read(number: int) -> bool:
        name = f"web{number % 20}"
        return bool(client.get(routes, "shop", name, deadline=soon())["metadata"]["name"] == name)

    with ThreadPoolExecutor(10) as pool:
        right = list(pool.map(read, range(1000)))

    assert right == [True] * 1000
    assert len({request.connection for request in api.requests}) <= 10


def test_import_loads_no_heavy_library() -> None:
    """The client's import, which every start pays, loads neither the official client nor YAML nor requests."""
    program = (
        "import sys, rollouts_gwapi_plugin.kube.client, rollouts_gwapi_plugin.kube.conflicts, "
        "rollouts_gwapi_plugin.kube.discovery\n"
        "print(sorted({'kubernetes', 'yaml', 'requests', 'grpc', 'cryptography', 'prometheus_client'} "
        "& {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
