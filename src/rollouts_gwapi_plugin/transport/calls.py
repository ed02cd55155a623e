"""From a method's name and its raw arguments to an answer: the part of a call that both transports share.

A transport asks `Calls.begin`, reads the arguments its own way, and turns the `Answer` into its own reply. What must
always hold: a call never raises and never ends the process (decision D4); an error becomes text at this one place;
VerifyWeight never answers an error, since the controller would promote on one (decision D19).
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from rollouts_gwapi_plugin.errors import ConfigError, PluginError, cut
from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.calls import (
    HeaderRouteCall,
    MirrorRouteCall,
    RemoveManagedRoutesCall,
    RolloutCall,
    TrafficRouterService,
    UpdateHashCall,
    Verification,
    WeightCall,
)

# The controller calls from 10 workers (its --rollout-threads); each running call holds a thread and a decoded Rollout,
# up to some MB. Beyond this a call is refused with an error, which the controller tries again.
MAX_CALLS = 128
# An error becomes a condition of the Rollout and a line of the log: longer ones help nobody.
MAX_ERROR = 4_096
# Of a longer one so much of the end is kept: there our errors say what to do.
ERROR_END = 1_024
_CUT = " … "
# A Rollout that is wrong everywhere would fill the log; the first few places are enough to see why.
MAX_REPORTED_FIELDS = 3

Call = TypeVar("Call", bound=RolloutCall)
ArgumentReader = Callable[[], JsonObject]


@dataclass(frozen=True)
class Answer:
    """How a call went; `text` is of Type, `verified` of VerifyWeight."""

    error: str = ""
    text: str = ""
    verified: Verification = Verification.NOT_VERIFIED


@dataclass(frozen=True)
class Method:
    """One of the eight methods: what it takes and what it does."""

    name: str
    arguments: type[RolloutCall] | None
    run: Callable[[TrafficRouterService, Any], Answer]
    never_fails: bool = False


def _action(name: str, arguments: type[Call], run: Callable[[TrafficRouterService, Call], None]) -> Method:
    def answer(service: TrafficRouterService, call: Call) -> Answer:
        run(service, call)
        return Answer()

    return Method(name, arguments, answer)


def _init_plugin(service: TrafficRouterService, _: None) -> Answer:
    service.init_plugin()
    return Answer()


def _type(service: TrafficRouterService, _: None) -> Answer:
    return Answer(text=service.type_name())


def _verify_weight(service: TrafficRouterService, call: WeightCall) -> Answer:
    return Answer(verified=service.verify_weight(call))


METHODS = {
    method.name: method
    for method in (
        Method("InitPlugin", None, _init_plugin),
        Method("Type", None, _type),
        _action("UpdateHash", UpdateHashCall, lambda service, call: service.update_hash(call)),
        _action("SetWeight", WeightCall, lambda service, call: service.set_weight(call)),
        _action("SetHeaderRoute", HeaderRouteCall, lambda service, call: service.set_header_route(call)),
        _action("SetMirrorRoute", MirrorRouteCall, lambda service, call: service.set_mirror_route(call)),
        _action(
            "RemoveManagedRoutes", RemoveManagedRoutesCall, lambda service, call: service.remove_managed_routes(call)
        ),
        Method("VerifyWeight", WeightCall, _verify_weight, never_fails=True),
    )
}


class Calls:
    """The calls that run now, and the way each of them goes."""

    def __init__(self, service: TrafficRouterService, limit: int = MAX_CALLS) -> None:
        self._service = service
        self._limit = limit
        self._running = 0
        self._closed = False
        self._changed = threading.Condition()

    def begin(self, method: Method) -> Answer | None:
        """Take the call in: None means that it may run, and that `finish` must follow its reply."""
        with self._changed:
            if self._closed:
                refusal = "the plugin is ending; the controller starts it anew and calls again"
            elif self._running >= self._limit:
                refusal = f"{self._running} calls are running already, which is the limit; call again later"
            else:
                self._running += 1
                return None
        return _failure(method, refusal)

    def finish(self) -> None:
        """Note that a call which had begun was answered."""
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Refuse all calls from now on."""
        with self._changed:
            self._closed = True

    def wait_idle(self, seconds: float) -> bool:
        """Wait until no call runs; False where some still run after that time."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while self._running:
                if not self._changed.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    return False
        return True

    def perform(self, method: Method, read: ArgumentReader) -> Answer:
        """Read the arguments and run the method, in the caller's thread."""
        try:
            call = None if method.arguments is None else _parse(method, method.arguments, read())
            return method.run(self._service, call)
        except PluginError as error:
            return _failure(method, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a call does, others and the process go on (D4)
            get_logger(call=method.name).error("a call failed by a bug", exc_info=error)
            return _failure(method, f"internal error: {type(error).__name__}: {error}")


def _failure(method: Method, text: str) -> Answer:
    # Neither transport can carry half a surrogate pair, and an error that can't be told would be lost.
    if len(text) > MAX_ERROR:
        text = f"{text[: MAX_ERROR - ERROR_END - len(_CUT)]}{_CUT}{text[-ERROR_END:]}"
    text = text.encode("utf-8", "replace").decode("utf-8")
    if not method.never_fails:
        return Answer(error=text)
    get_logger(call=method.name).warning("answered NotVerified", reason=text)
    return Answer(verified=Verification.NOT_VERIFIED)


def _parse(method: Method, arguments: type[RolloutCall], fields: JsonObject) -> RolloutCall:
    try:
        return arguments.model_validate(fields)
    except ValidationError as error:
        places = "; ".join(
            f"{'.'.join(str(part) for part in place['loc'])}: {place['msg']}, found {cut(repr(place['input']))}"
            for place in error.errors(include_url=False)[:MAX_REPORTED_FIELDS]
        )
        raise ConfigError(f"the arguments of {method.name} can't be read: {places}") from error
