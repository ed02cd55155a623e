"""The way of a call that both transports share: who is let in, what fails how, when it is idle."""

import threading
from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.calls import TrafficRouterService, Verification
from rollouts_gwapi_plugin.transport.calls import ERROR_END, MAX_ERROR, METHODS, Answer, Calls


class Service:
    """Raises what it was given; answers otherwise."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def act(self, _call: Any = None) -> None:
        """Raise or not."""
        if self.error is not None:
            raise self.error

    init_plugin = update_hash = set_weight = set_header_route = set_mirror_route = remove_managed_routes = act

    def type_name(self) -> str:
        """Name a type."""
        return "Stub"

    def verify_weight(self, _call: Any) -> Verification:
        """Raise, or be at the weight."""
        self.act()
        return Verification.VERIFIED


def _calls(error: Exception | None = None, **options: int) -> Calls:
    service: TrafficRouterService = Service(error)
    return Calls(service, **options)


@pytest.mark.parametrize("name", METHODS)
def test_a_call_that_works(name: str) -> None:
    """Every method answers without an error."""
    answer = _calls().perform(METHODS[name], dict)

    wanted = {"Type": Answer(text="Stub"), "VerifyWeight": Answer(verified=Verification.VERIFIED)}
    assert answer == wanted.get(name, Answer())


@pytest.mark.parametrize("name", [name for name in METHODS if name != "Type"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RouteError("no such rule"), "no such rule"),
        (KeyError("gone"), "internal error: KeyError: 'gone'"),
        (RecursionError("too deep"), "internal error: RecursionError: too deep"),
    ],
)
def test_a_call_that_fails(name: str, error: Exception, text: str) -> None:
    """An error of ours is its text, a bug is an internal error; VerifyWeight is NotVerified on both."""
    answer = _calls(error).perform(METHODS[name], dict)

    assert answer == (Answer() if name == "VerifyWeight" else Answer(error=text))


def test_a_reader_that_fails() -> None:
    """Arguments that can't be read are an answer like any other failure."""

    def read() -> Any:
        raise RouteError("unreadable")

    assert _calls().perform(METHODS["SetWeight"], read) == Answer(error="unreadable")


def test_wrong_fields_are_told_with_place_and_value() -> None:
    """At most three places are named, each with what was found, cut short."""
    steps = [{"setWeight": "x" * 500}] * 5
    fields = {"rollout": {"spec": {"strategy": {"canary": {"steps": steps}}}}}
    error = _calls().perform(METHODS["SetWeight"], lambda: fields).error

    assert error.startswith(
        "the arguments of SetWeight can't be read: rollout.spec.strategy.canary.steps.0.setWeight: "
    )
    assert error.count("found 'xxx") == 3
    assert len(error) < 1_000


def test_errors_have_an_end_and_can_be_encoded() -> None:
    """A long error is cut in the middle, and half a surrogate pair is replaced."""
    answer = _calls(RouteError("\ud800" + "e" * 10_000)).perform(METHODS["SetWeight"], dict)

    assert answer.error == f"?{'e' * (MAX_ERROR - ERROR_END - 4)} … {'e' * ERROR_END}"


def test_the_limit_counts_what_runs() -> None:
    """Calls beyond the limit are refused until one that runs is finished."""
    calls = _calls(limit=2)
    weight, verify = METHODS["SetWeight"], METHODS["VerifyWeight"]
    assert calls.begin(weight) is None
    assert calls.begin(weight) is None
    refused = calls.begin(weight)
    assert refused is not None
    assert refused.error.startswith("2 calls are running already")
    assert calls.begin(verify) == Answer(verified=Verification.NOT_VERIFIED)

    calls.finish()
    assert calls.begin(weight) is None


def test_closed_calls_are_refused() -> None:
    """Once the plugin ends no call is taken in, and those that run still count."""
    calls = _calls()
    assert calls.begin(METHODS["SetWeight"]) is None
    calls.close()
    refused = calls.begin(METHODS["SetWeight"])

    assert refused is not None
    assert "the plugin is ending" in refused.error
    assert calls.wait_idle(0.0) is False
    calls.finish()
    assert calls.wait_idle(0.0) is True


def test_waiting_for_idle_ends_with_the_last_call() -> None:
    """The wait is over when the last call is finished, not only at its deadline."""
    calls = _calls()
    assert calls.begin(METHODS["SetWeight"]) is None
    idle: list[bool] = []
    waiter = threading.Thread(target=lambda: idle.append(calls.wait_idle(60.0)))
    waiter.start()
    calls.finish()
    waiter.join(10.0)

    assert idle == [True]


def test_waiting_for_idle_has_a_deadline() -> None:
    """A call that does not end is not waited for any longer than asked."""
    calls = _calls()
    assert calls.begin(METHODS["SetWeight"]) is None

    assert calls.wait_idle(0.05) is False
