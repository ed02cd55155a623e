"""Echo backends tell their name and what they received."""

import http.client
import json

import pytest

from rollouts_gwapi_plugin.embedded import backends
from rollouts_gwapi_plugin.embedded.backends import ID_HEADER, MAX_BODY, Arrivals, EchoBackend, Received


def test_echo() -> None:
    """An answer names the backend and repeats the request; each request is counted and kept."""
    with EchoBackend("v1", status=503) as backend:
        client = http.client.HTTPConnection(*backend.address, timeout=10)
        client.request("POST", "/a?b", b"body", {"X-A": "1"})
        answer = client.getresponse()
        seen = json.loads(answer.read())
        client.request("GET", "/again")
        client.getresponse().read()
        client.close()

        assert (answer.status, answer.headers["x-backend"], seen["backend"]) == (503, "v1", "v1")
        assert (seen["method"], seen["path"], seen["headers"]["x-a"]) == ("POST", "/a?b", "1")
        assert (backend.count, [one.target for one in backend.received]) == (2, ["/a?b", "/again"])


def test_arrivals_by_id() -> None:
    """A request with an id is counted under it each time that it arrives; one without an id is only counted."""
    arrivals = Arrivals()
    for headers in ({ID_HEADER: "a-1"}, {ID_HEADER: "a-1"}, {ID_HEADER: "a-2"}, {}):
        arrivals.take(Received("GET", "/", headers))

    assert (arrivals.count, arrivals.times("a-1"), arrivals.times("a-2"), arrivals.times("a-3")) == (4, 2, 1, 0)


def test_ids_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit new ids are not counted; those that are there still are."""
    monkeypatch.setattr(backends, "MAX_IDS", 1)
    arrivals = Arrivals()
    for request_id in ("a", "b", "a"):
        arrivals.take(Received("GET", "/", {ID_HEADER: request_id}))

    assert (arrivals.times("a"), arrivals.times("b"), arrivals.count) == (2, 0, 3)


def test_a_huge_body_is_not_read() -> None:
    """A body over the limit is left unread, and the connection ends after the answer."""
    with EchoBackend("v1") as backend:
        client = http.client.HTTPConnection(*backend.address, timeout=10)
        client.putrequest("POST", "/")
        client.putheader("content-length", str(MAX_BODY + 1))
        client.endheaders()
        answer = client.getresponse()
        client.close()

    assert (answer.status, answer.will_close) == (200, False)
