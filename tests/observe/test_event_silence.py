"""A 403 silences the Events of its namespace only, and not too many namespaces are remembered."""

from collections.abc import Iterator

import pytest

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import parse_rollout
from rollouts_gwapi_plugin.observe import events
from rollouts_gwapi_plugin.observe.events import EventRecorder


class Refusing:
    """Takes the Events of all namespaces but some, and notes who asked."""

    def __init__(self) -> None:
        self.forbidden = {"preview", "staging"}
        self.asked: list[str] = []
        self.now = 1000.0

    def __call__(self, namespace: str, _body: JsonObject) -> None:
        """Take one post."""
        self.asked.append(namespace)
        if namespace in self.forbidden:
            raise errors.Forbidden("may not create events", status=403)


@pytest.fixture
def posts() -> Refusing:
    """Take the posts."""
    return Refusing()


@pytest.fixture
def recorder(posts: Refusing) -> Iterator[EventRecorder]:
    """Make a recorder on a clock that the test turns."""
    made = EventRecorder(posts, instance="pod-1", clock=lambda: posts.now)
    yield made
    made.close()


def say(recorder: EventRecorder, namespace: str, reason: str) -> None:
    """Record a warning of a namespace's Rollout and wait until it is posted or dropped."""
    rollout = parse_rollout({"metadata": {"namespace": namespace, "name": "web", "uid": namespace}})
    recorder.record(rollout, "verify", "Warning", reason, "message")
    assert recorder.flush(10)


def test_only_the_namespace_that_refused_is_silent(recorder: EventRecorder, posts: Refusing) -> None:
    """Others make all their Events meanwhile, and the one that refused is asked again after a while."""
    for reason in ("A", "B"):
        say(recorder, "preview", reason)
        say(recorder, "prod", reason)
    posts.now += events.SILENCE_SECONDS
    say(recorder, "preview", "C")

    assert posts.asked == ["preview", "prod", "prod", "preview"]


def test_the_oldest_refusal_is_forgotten_first(
    recorder: EventRecorder, posts: Refusing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the namespace that refused first is asked again, and the last one is not."""
    monkeypatch.setattr(events, "MAX_SILENT", 1)
    for namespace in ("preview", "staging", "staging", "preview"):
        say(recorder, namespace, "A")

    assert posts.asked == ["preview", "staging", "preview"]
