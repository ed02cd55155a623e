"""The load generator sends at its rate whatever the answers do, and records each one."""

import socket
from collections.abc import Callable

import pytest

from rollouts_gwapi_plugin.embedded.backends import EchoBackend
from rollouts_gwapi_plugin.embedded.clients import Cohort
from rollouts_gwapi_plugin.embedded.load import Answer, Load

Until = Callable[[Callable[[], object]], None]


def urls(backend: EchoBackend) -> dict[str, str]:
    """Return the address as the only listener's."""
    return {"": "http://{}:{}".format(*backend.address)}


def test_cohorts_and_rates(until: Until) -> None:
    """Each cohort sends its own headers, host and path; after n answers about n / rate seconds have passed."""
    cohorts = [
        Cohort("plain", rate=200),
        Cohort("inside", rate=100, headers={"x-canary": "yes"}, host="shop.example", path="/in"),
    ]
    with EchoBackend("v1") as backend, Load(urls(backend), cohorts) as load:
        until(lambda: len(load.answers(cohort="inside")) >= 50)
        seconds = load.now
        counts = [len(load.answers(cohort=cohort.name)) for cohort in cohorts]
    inside = [one for one in backend.received if one.target == "/in"]

    assert counts[1] / 100 == pytest.approx(seconds, abs=0.5)
    assert counts[0] / counts[1] == pytest.approx(2, rel=0.5)
    assert {(one.headers["host"], one.headers["x-canary"]) for one in inside} == {("shop.example", "yes")}
    assert {(one.status, one.backend, one.lost) for one in load.answers()} == {(200, "v1", False)}
    assert backend.count == len(load.answers())
    assert all(backend.arrivals.times(one.request_id) == 1 for one in load.answers())


def test_spans() -> None:
    """Only requests that were sent and answered inside the span are in it."""
    load = Load({}, [])
    for sent, seconds in ((0.0, 0.5), (1.0, 0.5), (1.8, 0.5), (2.5, 0.1)):
        load.record(Answer("plain", sent, seconds, 200, "v1"))

    assert [one.sent for one in load.answers(since=1.0, until=2.0)] == [1.0]
    assert len(load.answers()) == 4
    assert load.answers(cohort="other") == []


def test_lost_requests_are_recorded(until: Until) -> None:
    """An error status is lost, and so is a request that nobody answers; the load goes on."""
    with EchoBackend("v1", status=500) as backend, Load(urls(backend), [Cohort("plain", rate=100)]) as load:
        until(lambda: len(load.answers()) >= 5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with Load({"": f"http://127.0.0.1:{port}"}, [Cohort("plain", rate=100)]) as refused:
            until(lambda: len(refused.answers()) >= 5)

    assert {(one.status, one.lost) for one in load.answers()} == {(500, True)}
    assert {(one.status, one.lost) for one in refused.answers()} == {(0, True)}
    assert "ConnectionRefusedError" in refused.answers()[0].error


def test_a_slow_answer_does_not_slow_the_others() -> None:
    """While requests wait for their answers others go out on connections of their own."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Load({"": address}, [Cohort("plain", rate=50)]) as load:
            connections = [silent.accept()[0] for _ in range(4)]
            unanswered = not load.answers()
            silent.close()
            for connection in connections:
                connection.close()

    assert unanswered
    assert {one.status for one in load.answers()} == {0}


def test_each_cohort_has_its_listener(until: Until) -> None:
    """Cohorts that name listeners reach those."""
    cohorts = [Cohort("first", rate=100, listener="a"), Cohort("second", rate=100, listener="b")]
    with EchoBackend("v1") as one, EchoBackend("v2") as other:
        addresses = {"a": urls(one)[""], "b": urls(other)[""]}
        with Load(addresses, cohorts) as load:
            until(lambda: all(load.answers(cohort=cohort.name) for cohort in cohorts))

    assert {(found.cohort, found.backend) for found in load.answers()} == {("first", "v1"), ("second", "v2")}
