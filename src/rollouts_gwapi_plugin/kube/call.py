"""One call of the client: send, and send again where that is safe and can help, within one deadline.

What may be sent again, and why nothing is written twice:

* GET and LIST: always.
* PUT: it carries the resourceVersion that was read. If the first try was done and only its answer was lost, the second
  finds a newer version and is a `Conflict` with `answer_lost`: the caller reads again and finds its own write.
* POST: it carries the name. The second try then is `AlreadyExists`, also with `answer_lost`.
* DELETE: the second try may find nothing, which is what was wanted.

Sent again after: 429 and 5xx (after Retry-After where given), a lost connection, no answer in time; and once after a
401, with credentials read anew. Not sent again: what would be refused again, and what the deadline leaves no time for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from rollouts_gwapi_plugin.errors import Conflict, Unavailable
from rollouts_gwapi_plugin.kube.answers import Answer, Operation, error_from, object_from
from rollouts_gwapi_plugin.kube.connection import Lost
from rollouts_gwapi_plugin.kube.deadline import Deadline, Timing
from rollouts_gwapi_plugin.kube.limiter import Limiter
from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.model.base import JsonObject

# The host reconciles again anyway; more tries inside one call only hide an outage from its log.
MAX_TRIES = 4
# The first wait is longer than an API server's hiccup (a leader change of etcd is 0.1-1 s), the sum 1.4 s at most.
FIRST_BACKOFF = 0.2
# One request; the API server itself gives up on a write after 34 s, but the host's worker is ours while we wait.
REQUEST_TIMEOUT = 10.0
# A wait that a user should hear of: it delays the rollout, and a flag is the remedy.
NOTABLE_WAIT = 1.0
AGAIN = frozenset({429, 500, 502, 503, 504})
UNAUTHORIZED = 401
NOT_FOUND = 404

log = get_logger()


class OnRequest(Protocol):
    """Is told of every request: its verb, plural, status (0: no answer), seconds, and seconds waited for the limit."""

    def __call__(self, verb: str, resource: str, status: int, seconds: float, waited: float) -> None:
        """Take note of one request."""


def ignore_request(verb: str, resource: str, status: int, seconds: float, waited: float) -> None:
    """Take no note."""


@dataclass(frozen=True)
class Line:
    """What every call of a client goes through."""

    send: Callable[[Operation, Deadline], Answer]
    renew: Callable[[], None]
    limiter: Limiter
    timing: Timing
    on_request: OnRequest


@dataclass
class Call:
    """The state of one call between its tries; used once."""

    line: Line
    operation: Operation
    deadline: Deadline
    tries: int = 0
    waited: float = 0.0
    renewed: bool = False
    answer_lost: bool = False
    found: str = field(default="")

    def run(self) -> JsonObject:
        """Return the object that the API server answers, {} for a DELETE that found nothing on a second try.

        Raises:
            KubeError: It was refused, or there was no answer in the tries and the time.
        """
        while True:
            self.deadline.check(str(self.operation), self.found)
            pause = self._again_after(self._try())
            if isinstance(pause, Answer):
                return self._finish(pause)
            self._wait(pause)

    def _try(self) -> Answer | Lost:
        self.tries += 1
        waited = self.line.limiter.wait(str(self.operation), self.deadline)
        self._note_wait(waited)
        started = self.line.timing.clock()
        outcome: Answer | Lost
        try:
            outcome = self.line.send(self.operation, self.deadline.within(REQUEST_TIMEOUT))
        except Lost as lost:
            outcome = lost
        resource = self.operation.resource.plural if self.operation.resource else "-"
        status = outcome.status if isinstance(outcome, Answer) else 0
        self.line.on_request(self.operation.verb, resource, status, self.line.timing.clock() - started, waited)
        return outcome

    def _note_wait(self, waited: float) -> None:
        before, self.waited = self.waited, self.waited + waited
        if before <= NOTABLE_WAIT < self.waited:
            log.info(
                "waited for the client's own request limit",
                request=str(self.operation),
                seconds=round(self.waited, 1),
                limit=self.line.limiter.setting,
            )

    def _again_after(self, outcome: Answer | Lost) -> Answer | float:
        """Return the answer if it is the last word, else the seconds to wait before the next try."""
        if isinstance(outcome, Lost):
            self.answer_lost = True
            self.found = str(outcome)
            if not outcome.again or self.tries >= MAX_TRIES:
                raise Unavailable(f"{self.operation}: {self.found}{self._after_tries()}") from outcome
            return self._backoff()
        if outcome.status == UNAUTHORIZED and not self.renewed:
            self.renewed = True
            self.found = f"{outcome.status}: {outcome.text}"
            self.line.renew()
            return 0.0
        if outcome.status not in AGAIN or self.tries >= MAX_TRIES:
            return outcome
        # A 429 and a 503 of the API server mean that nothing was done; a proxy's 5xx may hide a write that was.
        self.answer_lost = self.answer_lost or outcome.status != 429  # noqa: PLR2004 - an HTTP status
        self.found = f"{outcome.status}: {outcome.text}"
        return self._backoff() if outcome.retry_after is None else outcome.retry_after

    def _backoff(self) -> float:
        return self.line.timing.spread(FIRST_BACKOFF * 2 ** (self.tries - 1))

    def _wait(self, seconds: float) -> None:
        if seconds > 0 and seconds >= self.deadline.remaining():
            raise Unavailable(
                f"{self.operation}: {self.found}{self._after_tries()}; the next try would be in {seconds:.1f} s, "
                f"{self.deadline.remaining():.1f} s are left"
            )
        if seconds > 0:
            self.line.timing.sleep(seconds)

    def _finish(self, answer: Answer) -> JsonObject:
        if self.operation.verb == "delete" and answer.status == NOT_FOUND and self.answer_lost:
            return {}
        if answer.status in AGAIN:
            error = error_from(self.operation, answer)
            raise Unavailable(f"{error}{self._after_tries()}", status=answer.status)
        try:
            return object_from(self.operation, answer)
        except Conflict as conflict:
            conflict.answer_lost = self.answer_lost
            raise

    def _after_tries(self) -> str:
        return f" (after {self.tries} tries)" if self.tries > 1 else ""
