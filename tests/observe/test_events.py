"""Events once a state, out of the caller's way.

Matrix: first, same, changed, cleared state; other key, Rollout, uid; 403, other errors, a fault; full queue; memory.
"""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import Rollout, parse_rollout
from rollouts_gwapi_plugin.observe import events
from rollouts_gwapi_plugin.observe.events import EventRecorder


def rollout(name: str = "web", uid: str = "u-1") -> Rollout:
    """Return a Rollout that has only an identity."""
    return parse_rollout({"metadata": {"namespace": "shop", "name": name, "uid": uid, "resourceVersion": "7"}})


class Posts:
    """Takes posts, or raises what a test says."""

    def __init__(self) -> None:
        self.bodies: list[JsonObject] = []
        self.error: Exception | None = None
        self.tried = 0
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.now = 1000.0

    def __call__(self, namespace: str, body: JsonObject) -> None:
        """Take one post."""
        self.tried += 1
        self.entered.set()
        assert self.gate.wait(10)
        if self.error:
            raise self.error
        assert namespace == body["metadata"]["namespace"]
        self.bodies.append(body)

    @property
    def reasons(self) -> list[str]:
        """The reasons of the Events made."""
        return [body["reason"] for body in self.bodies]


@pytest.fixture
def posts() -> Posts:
    """Take the posts."""
    return Posts()


@pytest.fixture
def dropped() -> list[int]:
    """Count the Events that were not made."""
    return []


@pytest.fixture
def recorder(posts: Posts, dropped: list[int]) -> Iterator[EventRecorder]:
    """Make a recorder on a clock that the test turns."""
    made = EventRecorder(
        posts,
        on_drop=lambda: dropped.append(1),
        instance="pod-1",
        clock=lambda: posts.now,
        wall_clock=lambda: 1_700_000_000.5,
    )
    yield made
    posts.gate.set()
    made.close()


def say(recorder: EventRecorder, reason: str, key: str = "verify", about: Rollout | None = None, **extra: Any) -> None:
    """Record a warning and wait until it is posted or dropped."""
    recorder.record(about or rollout(), key, "Warning", reason, "message", **extra)
    assert recorder.flush(10)


def test_event_is_what_kubectl_shows(recorder: EventRecorder, posts: Posts) -> None:
    """The Event names the Rollout with uid and version, type, reason, message, component, time."""
    recorder.record(rollout(), "verify", "Warning", "RouteNotAccepted", "HTTPRoute shop/web is not accepted")
    assert recorder.flush(10)
    body = posts.bodies[0]

    assert body["involvedObject"] == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "namespace": "shop",
        "name": "web",
        "uid": "u-1",
        "resourceVersion": "7",
    }
    assert (body["type"], body["reason"], body["message"], body["count"]) == (
        "Warning",
        "RouteNotAccepted",
        "HTTPRoute shop/web is not accepted",
        1,
    )
    assert (body["source"]["component"], body["reportingInstance"]) == ("rollouts-gwapi-plugin", "pod-1")
    assert body["firstTimestamp"] == body["lastTimestamp"] == "2023-11-14T22:13:20Z"
    assert body["metadata"]["name"].startswith("web.")


def test_state_is_said_once(recorder: EventRecorder, posts: Posts) -> None:
    """A hundred reconciles in one state make one Event; a change makes one more, also back."""
    for reason in ["A"] * 100 + ["B", "B", "A"]:
        say(recorder, reason)

    assert posts.reasons == ["A", "B", "A"]


def test_keys_and_rollouts_are_apart(recorder: EventRecorder, posts: Posts) -> None:
    """Another key, another Rollout, and a Rollout made anew under the name each have a state of their own."""
    for _ in range(2):
        say(recorder, "A")
        say(recorder, "B", key="ledger")
        say(recorder, "C", about=rollout("api"))
        say(recorder, "D", about=rollout(uid="u-2"))

    assert posts.reasons == ["A", "B", "C", "D"]


def test_given_state_decides(recorder: EventRecorder, posts: Posts) -> None:
    """Where a state is given, a message that changes each time makes no new Event."""
    for number in range(3):
        recorder.record(rollout(), "verify", "Normal", "A", f"after {number} s", state="waiting")
    assert recorder.flush(10)

    assert [body["message"] for body in posts.bodies] == ["after 0 s"]


def test_cleared_state_is_said_again(recorder: EventRecorder, posts: Posts) -> None:
    """After a state is over, the same one makes an Event again."""
    say(recorder, "A")
    recorder.clear(rollout(), "verify")
    say(recorder, "A")

    assert posts.reasons == ["A", "A"]


def test_caller_never_waits(recorder: EventRecorder, posts: Posts) -> None:
    """While the API server does not answer, recording returns, and all is posted in order later."""
    posts.gate.clear()
    for number in range(20):
        recorder.record(rollout(), str(number), "Normal", f"R{number}", "m")
    waiting = list(posts.bodies)
    posts.gate.set()
    assert recorder.flush(10)

    assert (waiting, posts.reasons) == ([], [f"R{number}" for number in range(20)])


def test_full_queue_drops_and_says_it_later(
    recorder: EventRecorder, posts: Posts, dropped: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound Events are dropped and counted; the state is told at the next reconcile."""
    monkeypatch.setattr(events, "MAX_WAITING", 2)
    posts.gate.clear()
    for number in range(6):
        recorder.record(rollout(), str(number), "Normal", f"R{number}", "m")
    posts.gate.set()
    assert recorder.flush(10)
    lost = len(dropped)
    recorder.record(rollout(), "5", "Normal", "R5", "m")
    assert recorder.flush(10)

    assert 3 <= lost <= 4
    assert posts.reasons[-1] == "R5"


def test_forbidden_silences_for_a_while(recorder: EventRecorder, posts: Posts, dropped: list[int]) -> None:
    """A 403 is logged once and asked again only later, when the role may be there; nothing is lost for ever."""
    posts.error = errors.Forbidden("may not create events", status=403)
    with structlog.testing.capture_logs() as logs:
        for _ in range(5):
            say(recorder, "A")
    asked = posts.tried
    posts.error = None
    posts.now += events.SILENCE_SECONDS
    say(recorder, "A")

    assert (asked, len(dropped), posts.reasons) == (1, 5, ["A"])
    assert [entry["event"] for entry in logs] == ["no Events are made for a while"]
    assert "may not create events" in logs[0]["reason"]


@pytest.mark.parametrize("error", [errors.Unavailable("down"), ValueError("a fault")])
def test_failed_event_is_tried_at_the_next_reconcile(recorder: EventRecorder, posts: Posts, error: Exception) -> None:
    """Any failure is swallowed and logged, and the same state makes an Event the next time."""
    posts.error = error
    with structlog.testing.capture_logs() as logs:
        say(recorder, "A")
    posts.error = None
    say(recorder, "A")

    assert (posts.reasons, len(logs)) == (["A"], 1)


def test_newer_state_survives_the_failure_of_an_older(recorder: EventRecorder, posts: Posts) -> None:
    """What fails forgets only its own state: the one said meanwhile stays said once."""
    posts.gate.clear()
    posts.error = errors.Unavailable("down")
    recorder.record(rollout(), "verify", "Normal", "A", "m")
    assert posts.entered.wait(10)
    recorder.record(rollout(), "verify", "Normal", "B", "m")
    tried = threading.Event()

    def only_b(_namespace: str, body: JsonObject) -> None:
        posts.bodies.append(body)
        tried.set()

    recorder._post = only_b
    posts.gate.set()
    assert tried.wait(10)
    assert recorder.flush(10)
    say(recorder, "B", state="Normal B m")

    assert posts.reasons == ["B"]


def test_memory_is_bounded(recorder: EventRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest states are forgotten first."""
    monkeypatch.setattr(events, "MAX_STATES", 3)
    for number in range(10):
        say(recorder, "A", about=rollout(f"web{number}"))

    assert [key[1] for key in recorder._states] == ["web7", "web8", "web9"]


def test_long_texts_are_cut(recorder: EventRecorder, posts: Posts) -> None:
    """Name, reason and message stay inside what the API server takes."""
    recorder.record(rollout("a" * 235 + ".bcd"), "k", "Normal", "R" * 500, "m" * 5000)
    assert recorder.flush(10)
    body = posts.bodies[0]

    assert (len(body["reason"]), len(body["message"])) == (128, 1000)
    assert body["metadata"]["name"].startswith("a" * 235 + ".1")
    assert len(body["metadata"]["name"]) <= 253


def test_rollout_without_identity_makes_no_event(recorder: EventRecorder, posts: Posts) -> None:
    """A Rollout without a name or namespace (a host's broken call) makes none and is no error."""
    say(recorder, "A", about=Rollout())

    assert posts.tried == 0


def test_closed_recorder_is_silent(posts: Posts) -> None:
    """Closing posts what waits and ends the thread; later records do nothing."""
    recorder = EventRecorder(posts)
    recorder.record(rollout(), "a", "Normal", "A", "m")
    recorder.close(10)
    recorder.record(rollout(), "a", "Normal", "B", "m")
    thread = recorder._thread
    assert thread is not None
    thread.join(10)

    assert (posts.reasons, thread.is_alive()) == (["A"], False)


def test_recorder_that_was_never_used_has_no_thread(posts: Posts) -> None:
    """Without an Event there is no thread, and closing is immediate."""
    recorder = EventRecorder(posts)
    recorder.close()

    assert recorder._thread is None
