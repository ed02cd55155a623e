"""When a request is sent again: the table of `kube.call`, on a clock that only sleeping moves."""

from collections import deque
from typing import Any

import pytest
import structlog

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube.answers import Answer, Operation
from rollouts_gwapi_plugin.kube.call import MAX_TRIES, Call, Line, ignore_request
from rollouts_gwapi_plugin.kube.connection import Lost
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.limiter import Limiter
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS

GET = Operation("get", CONFIG_MAPS, "shop", "ledger")
PUT = Operation("update", CONFIG_MAPS, "shop", "ledger")
OK = Answer(200, {}, b'{"ok": true}')
LOST = Lost("no answer from API server")


class Scripted:
    """A line to an API server that gives scripted outcomes and remembers what it was asked."""

    def __init__(self, fake_time: Any, *outcomes: Answer | Lost, limiter: Limiter | None = None) -> None:
        self.outcomes = deque(outcomes)
        self.limits: list[float] = []
        self.renewals = 0
        self.noted: list[tuple[str, str, int, float, float]] = []
        self.line = Line(
            self._send,
            self._renew,
            limiter or Limiter(-1, 1, timing=fake_time.timing),
            fake_time.timing,
            lambda *note: self.noted.append(note),
        )

    def _send(self, _operation: Operation, deadline: Deadline) -> Answer:
        self.limits.append(deadline.remaining())
        outcome = self.outcomes.popleft()
        if isinstance(outcome, Lost):
            raise outcome
        return outcome

    def _renew(self) -> None:
        self.renewals += 1

    def run(self, operation: Operation, deadline: Deadline) -> dict[str, Any]:
        """Run one call."""
        return Call(self.line, operation, deadline).run()


def answer(status: int, **headers: str) -> Answer:
    """Return an answer without a body."""
    return Answer(status, {key.replace("_", "-"): value for key, value in headers.items()}, b"")


@pytest.mark.parametrize("operation", [GET, PUT])
@pytest.mark.parametrize("bad", [answer(429), answer(500), answer(502), answer(503), answer(504), LOST])
def test_passing_trouble_is_sent_again(fake_time: Any, operation: Operation, bad: Answer | Lost) -> None:
    """After each kind of passing trouble the request is sent again, with growing waits."""
    scripted = Scripted(fake_time, bad, bad, OK)
    found = scripted.run(operation, fake_time.deadline(30))

    assert (found, fake_time.sleeps) == ({"ok": True}, [0.2, 0.4])


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 413, 422])
def test_refusal_is_not_sent_again(fake_time: Any, status: int) -> None:
    """What would be refused again is told at once."""
    scripted = Scripted(fake_time, answer(status), OK)
    with pytest.raises(errors.KubeError):
        scripted.run(GET, fake_time.deadline(30))

    assert (len(scripted.outcomes), fake_time.sleeps) == (1, [])


def test_tries_are_bounded(fake_time: Any) -> None:
    """After the last try the error says what was met and how often."""
    scripted = Scripted(fake_time, *[answer(503)] * (MAX_TRIES + 1))
    with pytest.raises(errors.Unavailable, match=rf"answered 503: .*\(after {MAX_TRIES} tries\)") as caught:
        scripted.run(GET, fake_time.deadline(300))

    assert (len(scripted.outcomes), caught.value.status) == (1, 503)


def test_lost_answers_are_bounded(fake_time: Any) -> None:
    """The same where no answer comes."""
    scripted = Scripted(fake_time, *[LOST] * (MAX_TRIES + 1))
    with pytest.raises(
        errors.Unavailable, match=rf"get ConfigMap shop/ledger: no answer .*\(after {MAX_TRIES} tries\)"
    ):
        scripted.run(GET, fake_time.deadline(300))

    assert len(scripted.outcomes) == 1


def test_hopeless_loss_is_told_at_once(fake_time: Any) -> None:
    """An untrusted certificate is not tried again."""
    scripted = Scripted(fake_time, Lost("the certificate is not trusted", again=False), OK)
    with pytest.raises(errors.Unavailable, match=r"not trusted$"):
        scripted.run(GET, fake_time.deadline(30))


def test_retry_after_is_obeyed(fake_time: Any) -> None:
    """The server's Retry-After is the wait."""
    scripted = Scripted(fake_time, answer(429, retry_after="7"), OK)
    scripted.run(GET, fake_time.deadline(30))

    assert fake_time.sleeps == [7.0]


def test_retry_after_beyond_the_deadline_ends_the_call_at_once(fake_time: Any) -> None:
    """A wait that the deadline has no room for is not begun."""
    scripted = Scripted(fake_time, answer(429, retry_after="60"), OK)
    with pytest.raises(errors.Unavailable, match=r"429: .*; the next try would be in 60\.0 s, 30\.0 s are left"):
        scripted.run(GET, fake_time.deadline(30))

    assert fake_time.sleeps == []


def test_nothing_is_sent_past_the_deadline(fake_time: Any) -> None:
    """A call that begins too late sends nothing."""
    scripted = Scripted(fake_time, OK)
    with pytest.raises(errors.Unavailable, match="no time left of the 0 s"):
        scripted.run(GET, fake_time.deadline(0))

    assert len(scripted.outcomes) == 1


def test_one_request_never_takes_the_whole_deadline(fake_time: Any) -> None:
    """Each request has the named limit or what remains, whichever is less."""
    scripted = Scripted(fake_time, LOST, OK)
    scripted.run(GET, fake_time.deadline(60))
    short = Scripted(fake_time, OK)
    short.run(GET, fake_time.deadline(3))

    assert (scripted.limits, short.limits) == ([10.0, 10.0], [3.0])


def test_credentials_are_renewed_once(fake_time: Any) -> None:
    """A 401 renews and is sent again without a wait; the second is the answer."""
    scripted = Scripted(fake_time, answer(401), answer(401), OK)
    with pytest.raises(errors.Forbidden):
        scripted.run(GET, fake_time.deadline(30))

    assert (scripted.renewals, len(scripted.outcomes), fake_time.sleeps) == (1, 1, [])


@pytest.mark.parametrize(("first", "lost"), [(LOST, True), (answer(502), True), (answer(429), False), (OK, None)])
def test_conflict_says_whether_an_answer_was_lost(fake_time: Any, first: Answer | Lost, *, lost: bool | None) -> None:
    """A Conflict is marked only where an earlier try may have been done: a 429 never was."""
    scripted = Scripted(fake_time, *([] if lost is None else [first]), answer(409))
    with pytest.raises(errors.Conflict) as caught:
        scripted.run(PUT, fake_time.deadline(30))

    assert caught.value.answer_lost is bool(lost)


def test_delete_found_nothing_on_the_second_try(fake_time: Any) -> None:
    """A DELETE is done if its second try finds nothing, and is not if its first does."""
    operation = Operation("delete", CONFIG_MAPS, "shop", "ledger")
    done = Scripted(fake_time, LOST, answer(404)).run(operation, fake_time.deadline(30))
    with pytest.raises(errors.NotFound):
        Scripted(fake_time, answer(404)).run(operation, fake_time.deadline(30))

    assert done == {}


def test_each_request_is_noted(fake_time: Any) -> None:
    """The hook hears of every request with verb, plural, status (0 without an answer), time and wait."""
    limiter = Limiter(2, 1, timing=fake_time.timing)
    scripted = Scripted(fake_time, LOST, answer(503), OK, limiter=limiter)
    scripted.run(GET, fake_time.deadline(30))

    assert [note[:3] for note in scripted.noted] == [
        ("get", "configmaps", 0),
        ("get", "configmaps", 503),
        ("get", "configmaps", 200),
    ]
    assert [note[4] for note in scripted.noted] == [0, pytest.approx(0.3), pytest.approx(0.1)]


def test_long_wait_for_the_limit_is_logged_once(fake_time: Any) -> None:
    """A call that waits over a second for the request limit says so once, with the flags to raise."""
    limiter = Limiter(0.5, 1, timing=fake_time.timing)
    scripted = Scripted(fake_time, OK, LOST, OK, limiter=limiter)
    with structlog.testing.capture_logs() as logs:
        scripted.run(GET, fake_time.deadline(60))
        quiet = list(logs)
        scripted.run(GET, fake_time.deadline(60))

    assert quiet == []
    assert [(entry["log_level"], entry["seconds"], entry["limit"]) for entry in logs] == [
        ("info", 2.0, "kubeClientQPS=0.5, kubeClientBurst=1")
    ]


def test_default_hook_takes_no_note() -> None:
    """Without a hook nothing happens."""
    ignore_request("get", "configmaps", 200, 0.1, 0.0)
