"""Read, apply, compare, write; after a conflict again, within bounds.

Matrix: same object, equal object, changed; 409 twice, 409 to the end, lost answer; errors of the function; deadline.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.edit import MAX_TRIES, edit, retry_on_conflict, under_version_of
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ObjectRef, ResourceType

Connect = Callable[..., KubeClient]
WEB = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/web"
REF = ObjectRef("HTTPRoute", "shop", "web")


def with_weight(weight: int) -> Callable[[JsonObject], JsonObject]:
    """Return a change that sets one field and leaves all else."""
    return lambda route: {**route, "spec": {**route["spec"], "weight": weight}}


@pytest.fixture
def web(api: Any) -> Any:
    """Put a route into the server."""
    api.add(WEB, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"weight": 1, "future": None}})
    return api


def methods(api: Any) -> list[str]:
    """Return the methods of all requests."""
    return [request.method for request in api.requests]


def test_change_is_one_read_and_one_write(web: Any, connect: Connect, routes: ResourceType) -> None:
    """A change is written once, under the version read, with all other fields kept."""
    done = edit(connect(web), routes, "shop", "web", with_weight(5), deadline=Deadline.after(10))

    assert (done.written, done.tries, methods(web)) == (True, 1, ["GET", "PUT"])
    assert (done.before["spec"], done.after["spec"]) == (
        {"weight": 1, "future": None},
        {"weight": 5, "future": None},
    )
    assert done.after["metadata"]["resourceVersion"] > done.before["metadata"]["resourceVersion"]


@pytest.mark.parametrize("change", [lambda route: route, with_weight(1)])
def test_no_change_is_no_write(web: Any, connect: Connect, routes: ResourceType, change: Any) -> None:
    """The same object, or an equal one, is not written (W4)."""
    done = edit(connect(web), routes, "shop", "web", change, deadline=Deadline.after(10))

    assert (done.written, done.after, methods(web)) == (False, done.before, ["GET"])


def test_conflicts_are_computed_again(
    web: Any, connect: Connect, routes: ResourceType, reply: Any, status: Any, fake_time: Any
) -> None:
    """After two conflicts the third write carries the change on top of what others wrote (C85, C96)."""
    conflict = reply(409, status(409, "Conflict", "modified"))
    web.script.extend([None, conflict, None, conflict, None, None])
    seen: list[int] = []

    def double(route: JsonObject) -> JsonObject:
        seen.append(route["spec"]["weight"])
        web.add(WEB, {**web.objects[WEB], "spec": {"weight": len(seen) * 10}} if len(seen) < 3 else route)
        web.objects[WEB]["metadata"]["resourceVersion"] = route["metadata"]["resourceVersion"]
        return {**route, "spec": {"weight": route["spec"]["weight"] * 2}}

    done = edit(connect(web), routes, "shop", "web", double, deadline=Deadline.after(10), timing=fake_time.timing)

    assert (seen, done.tries, done.written) == ([1, 10, 20], 3, True)
    assert (web.objects[WEB]["spec"], fake_time.sleeps) == ({"weight": 40}, [0.02, 0.04])


def test_conflicts_to_the_end_name_object_and_tries(
    web: Any, connect: Connect, routes: ResourceType, reply: Any, status: Any, fake_time: Any
) -> None:
    """After the bounded tries the error names the object, how often, and the last answer."""
    web.responder = lambda request: reply(409, status(409, "Conflict", "newer")) if request.method == "PUT" else None
    deadline = fake_time.deadline(60)
    client = connect(web, timing=fake_time.timing)
    with pytest.raises(errors.Conflict, match=rf"HTTPRoute shop/web: .* each of {MAX_TRIES} tries .*newer"):
        edit(client, routes, "shop", "web", with_weight(5), deadline=deadline, timing=fake_time.timing)

    assert methods(web).count("PUT") == MAX_TRIES
    assert max(fake_time.sleeps) == 1.0


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
    """A write that was done but not answered is found on the re-read, not repeated, and reported as written."""
    web.script.extend([None, reply(drop=True, apply_first=True)])
    done = edit(connect(web), routes, "shop", "web", with_weight(5), deadline=Deadline.after(10))

    assert (done.written, done.tries, done.after["spec"]["weight"]) == (True, 2, 5)
    assert methods(web) == ["GET", "PUT", "PUT", "GET"]


def test_conflict_with_an_equal_foreign_write_is_not_ours(
    web: Any, connect: Connect, routes: ResourceType, reply: Any, status: Any, fake_time: Any
) -> None:
    """If another process wrote the same meanwhile, nothing is written and nothing is said to be."""
    web.script.extend([None, reply(409, status(409, "Conflict", "modified"))])
    weights = iter([5, 1])

    def sometimes(route: JsonObject) -> JsonObject:
        return with_weight(next(weights))(route)

    done = edit(
        connect(web),
        routes,
        "shop",
        "web",
        sometimes,
        deadline=Deadline.after(10),
        timing=fake_time.timing,
    )

    assert (done.written, done.tries) == (False, 2)


def test_error_of_the_change_writes_nothing(web: Any, connect: Connect, routes: ResourceType) -> None:
    """What the function raises goes to the caller, and nothing is written."""

    def refuse(_route: JsonObject) -> JsonObject:
        raise errors.RouteError("no rule has the pair")

    with pytest.raises(errors.RouteError):
        edit(connect(web), routes, "shop", "web", refuse, deadline=Deadline.after(10))

    assert methods(web) == ["GET"]


def test_missing_object_is_told(api: Any, connect: Connect, routes: ResourceType) -> None:
    """An edit of what is not there is NotFound."""
    with pytest.raises(errors.NotFound, match="HTTPRoute shop/web does not exist"):
        edit(connect(api), routes, "shop", "web", with_weight(5), deadline=Deadline.after(10))


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

    def write(number: int) -> bool:
        start.wait(10)
        change = edit(
            client,
            routes,
            "shop",
            "web",
            lambda route: {**route, "spec": {**route["spec"], f"field{number}": number}},
            deadline=Deadline.after(20),
        )
        return change.written

    with ThreadPoolExecutor(10) as pool:
        written = list(pool.map(write, range(10)))

    assert written == [True] * 10
    assert {f"field{number}" for number in range(10)} <= web.objects[WEB]["spec"].keys()
