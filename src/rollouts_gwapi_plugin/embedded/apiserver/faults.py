"""Faults on demand: errors, delays, hangs and dropped connections for the requests that a predicate chooses."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from http import HTTPStatus

from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError, conflict_for

# A hang that nobody ends ends by itself, so that a failed test does not leave threads behind.
MAX_HANG = 60.0


class Drop(Enum):
    """When the connection is closed without an answer."""

    NEVER = auto()
    BEFORE = auto()  # nothing was done
    AFTER = auto()  # the write was done, only the answer is lost


@dataclass(eq=False)
class Fault:
    """One rule. `left` counts down; None means every time. `hits` are the requests that met it.

    Of the effects, waiting (`delay`, `until`) comes first, then `status` or `drop`.
    """

    matches: Callable[[Request], bool]
    status: int = 0
    message: str = ""
    retry_after: int | None = None
    delay: float = 0.0
    until: threading.Event | None = None
    drop: Drop = Drop.NEVER
    left: int | None = 1
    hits: list[Request] = field(default_factory=list)

    def error(self, request: Request) -> StatusError | None:
        """Make the answer that replaces the real one."""
        if not self.status:
            return None
        if self.status == HTTPStatus.CONFLICT and not self.message:
            return conflict_for(request.plural, request.group, request.name)
        reason, text = _REASONS.get(self.status, ("", ""))
        error = StatusError(self.status, reason, self.message or text or f"the server answers {self.status}")
        error.retry_after = self.retry_after or 0
        return error


_REASONS = {
    400: ("BadRequest", "injected fault"),
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "injected fault: forbidden"),
    404: ("NotFound", "the server could not find the requested resource"),
    422: ("Invalid", "injected fault: invalid"),
    429: ("TooManyRequests", "Too many requests, please try again later."),
    500: ("InternalError", "Internal error occurred: injected fault"),
    502: ("", "bad gateway"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}


class Faults:
    """The rules in force, first match wins; safe to change while requests run."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def add(  # noqa: PLR0913 - one keyword an effect
        self,
        matches: Callable[[Request], bool] | None = None,
        *,
        status: int = 0,
        retry_after: int | None = None,
        delay: float = 0.0,
        until: threading.Event | None = None,
        drop: Drop = Drop.NEVER,
        times: int | None = 1,
        **wanted: str,
    ) -> Fault:
        """Add a rule for requests with these attributes (`verb="update", plural="httproutes"`) or a predicate.

        `until` holds a request until the event is set; `times=None` means always, until `remove`.
        """

        def chosen(request: Request) -> bool:
            return (matches is None or matches(request)) and all(getattr(request, k) == v for k, v in wanted.items())

        fault = Fault(chosen, status=status, retry_after=retry_after, delay=delay, until=until, drop=drop, left=times)
        with self._lock:
            self._rules = [*self._rules, fault]
        return fault

    def remove(self, fault: Fault) -> None:
        """End a rule."""
        with self._lock:
            self._rules = [rule for rule in self._rules if rule is not fault]

    def clear(self) -> None:
        """End all rules."""
        with self._lock:
            self._rules = []

    def stop(self) -> None:
        """Let go of every request that is held."""
        self._stopped.set()

    def take(self, request: Request) -> Fault | None:
        """Find the rule for a request, count it, and wait as it says."""
        if not self._rules:
            return None
        fault = self._claim(request)
        if fault is not None:
            if fault.delay:
                self._stopped.wait(fault.delay)
            if fault.until is not None:
                self._hold(fault.until)
        return fault

    def _claim(self, request: Request) -> Fault | None:
        with self._lock:
            for fault in self._rules:
                if fault.left != 0 and fault.matches(request):
                    fault.hits.append(request)
                    if fault.left is not None:
                        fault.left -= 1
                    return fault
        return None

    def _hold(self, until: threading.Event) -> None:
        end = time.monotonic() + MAX_HANG
        while not until.wait(0.02) and not self._stopped.is_set() and time.monotonic() < end:
            pass
