"""What is refused since others wrote in between is computed and written again, within bounds.

Matrix: 409 twice, 409 to the end, lost answer; other errors; deadline; many writers.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.conflicts import MAX_TRIES, retry_on_conflict, under_version_of
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ObjectRef, ResourceType

Connect = Callable[..., KubeClient]
WEB = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/web"
REF = ObjectRef("HTTPRoute", "shop", "web")


@pytest.fixture
def web(api: Any) -> Any:
    """Put a route into the server."""
    api.add(WEB, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"weight": 1}})
    return api


def methods(api: Any) -> list[str]:
    """Return the methods of all requests."""
    return [request.method for request in api.requests]


def written(
    client: KubeClient, routes: ResourceType, change: Callable[[JsonObject], JsonObject], **options: Any
) -> tuple[JsonObject, int]:
    """Read the route, change its spec and write it where that makes a difference; return it and the number of tries."""
    deadline = options.setdefault("deadline", Deadline.after(20))

    def attempt(tries: int) -> tuple[JsonObject, int]:
        before = client.get(routes, "shop", "web", deadline=deadline)
        wanted = {**before, "spec": change(before["spec"])}
        if wanted == before:
            return before, tries
        return client.put(routes, under_version_of(before, wanted), deadline=deadline), tries

    return retry_on_conflict(attempt, REF, **options)


def test_conflicts_are_computed_again(
    web: Any, connect: Connect, routes: ResourceType, reply: Any, status: Any, fake_time: Any
) -> None:
    """After two conflicts the third write carries the change on top of what others wrote (C85, C96)."""
    conflict = reply(409, status(409, "Conflict", "modified"))
    web.script.extend([None, conflict, None, conflict, None, None])
    seen: list[int] = []

    def double(spec: JsonObject) -> JsonObject:
        seen.append(spec["weight"])
        if len(seen) < 3:
            web.add(WEB, {**web.objects[WEB], "spec": {"weight": len(seen) * 10}})
        return {"weight": spec["weight"] * 2}

    _, tries = written(connect(web), routes, double, timing=fake_time.timing)

    assert (seen, tries, web.objects[WEB]["spec"]) == ([1, 10, 20], 3, {"weight": 40})
    assert fake_time.sleeps == [0.02, 0.04]


def test_conflicts_to_the_end_name_object_and_tries(fake_time: Any) -> None:
    """After the bounded tries the error names the object, how often, and the last answer."""
    calls: list[int] = []

    def attempt(tries: int) -> None:
        calls.append(tries)
        raise errors.Conflict("newer", answer_lost=True)

    with pytest.raises(errors.Conflict, match=rf"HTTPRoute shop/web: .* each of {MAX_TRIES} tries .*newer") as caught:
        retry_on_conflict(attempt, REF, deadline=fake_time.deadline(60), timing=fake_time.timing)

    assert calls == list(range(1, MAX_TRIES + 1))
    assert max(fake_time.sleeps) == 1.0
    assert caught.value.answer_lost


def test_conflicts_end_with_the_deadline(fake_time: Any) -> None:
    """No try is begun that the deadline has no room for."""
    calls: list[int] = []

    def attempt(tries: int) -> None:
        calls.append(tries)
        raise errors.Conflict("newer")

    with pytest.raises(errors.Conflict, match=r"each of 3 tries in 0\.1 s"):
        retry_on_conflict(attempt, REF, deadline=fake_time.deadline(0.1), timing=fake_time.timing)

    assert calls == [1, 2, 3]


def test_lost_answer_is_found_written(web: Any, connect: Connect, routes: ResourceType, reply: Any) -> None:
    """A write that was done but not answered is found by the next try, and not repeated."""
    web.script.extend([None, reply(drop=True, apply_first=True)])
    after, tries = written(connect(web), routes, lambda _: {"weight": 5})

    assert (after["spec"], tries) == ({"weight": 5}, 2)
    assert methods(web) == ["GET", "PUT", "PUT", "GET"]


def test_other_errors_are_not_tried_again(fake_time: Any) -> None:
    """What is no conflict goes to the caller."""
    calls: list[int] = []

    def attempt(tries: int) -> None:
        calls.append(tries)
        raise errors.RouteError("no rule has the pair")

    with pytest.raises(errors.RouteError):
        retry_on_conflict(attempt, REF, deadline=fake_time.deadline(60), timing=fake_time.timing)

    assert (calls, fake_time.sleeps) == ([1], [])


def test_write_is_under_the_version_that_was_read() -> None:
    """A change that lost the resourceVersion is written under the read one all the same, its input untouched."""
    before = {"metadata": {"name": "web", "resourceVersion": "7"}}
    wanted = {"metadata": {"name": "web"}, "spec": 1}

    assert under_version_of(before, wanted) == {"metadata": {"name": "web", "resourceVersion": "7"}, "spec": 1}
    assert wanted == {"metadata": {"name": "web"}, "spec": 1}
    assert under_version_of(before, before) is before


def test_ten_writers_lose_no_update(web: Any, connect: Connect, routes: ResourceType) -> None:
    """Ten threads that each write their own field on one route end with all ten there (C2)."""
    client = connect(web)
    start = threading.Barrier(10)

    def write(number: int) -> None:
        start.wait(10)
        written(client, routes, lambda spec: {**spec, f"field{number}": number})

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(write, range(10)))

    assert {"weight": 1, **{f"field{number}": number for number in range(10)}} == web.objects[WEB]["spec"]
