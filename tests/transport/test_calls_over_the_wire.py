"""The eight calls as a host sees them, over both transports, against the plugin as a process.

Matrix: method x transport x TLS; failing, crashing and overlapping calls x transport.
"""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from rollouts_gwapi_plugin.model.calls import Verification
from rollouts_gwapi_plugin.transport.calls import Answer

if TYPE_CHECKING:
    from tests.conftest import StartPlugin
    from tests.transport.conftest import Connect, Served
    from tests.transport.hosts import Call

MakeCall = Callable[..., "Call"]


def test_every_method_is_answered(served_both: "Served", call: MakeCall) -> None:
    """All eight methods reach the service and are answered, with and without TLS."""
    answers = {
        name: served_both.perform(call(name, weight=7, route="beta", canary_hash="c", stable_hash="s"))
        for name in (
            "InitPlugin",
            "Type",
            "UpdateHash",
            "SetWeight",
            "VerifyWeight",
            "SetHeaderRoute",
            "SetMirrorRoute",
            "RemoveManagedRoutes",
        )
    }

    assert answers.pop("Type") == Answer(text="GatewayAPI")
    assert answers.pop("VerifyWeight") == Answer(verified=Verification.VERIFIED)
    assert set(answers.values()) == {Answer()}
    calls: dict[str, Any] = {entry["event"]: entry.get("call") for entry in served_both.plugin.calls()}
    assert calls["set_weight"]["desired_weight"] == 7
    assert calls["set_weight"]["rollout"]["metadata"]["namespace"] == "shop"
    assert calls["update_hash"]["canary_hash"] == "c"
    assert calls["set_header_route"]["header_route"]["name"] == "beta"
    assert calls["set_mirror_route"]["mirror_route"] == {"name": "beta", "match": [], "percentage": None}
    assert "init_plugin" in calls


@pytest.mark.parametrize("weight", [0, 1, 2])
def test_verification_keeps_its_number(served: "Served", call: MakeCall, weight: int) -> None:
    """Each of the three answers of VerifyWeight arrives as itself, the zero one, too."""
    assert served.perform(call("VerifyWeight", weight=weight)) == Answer(verified=Verification(weight))


def test_both_transports_give_the_service_the_same_call(
    start_plugin: "StartPlugin", connect: "Connect", call: MakeCall
) -> None:
    """A call means the same over both transports, zeros included: only mirror percentage 0 can't be told from none."""
    sent = [
        call("SetWeight", weight=0),
        call("SetWeight", weight=35, annotations={"a": "b"}),
        call("UpdateHash", canary_hash="", stable_hash="s"),
        call("SetHeaderRoute", route="beta"),
        call("SetMirrorRoute", route="beta", percentage=20),
        call("SetMirrorRoute", route="beta", percentage=0),
        call("RemoveManagedRoutes"),
    ]
    got: dict[str, list[Any]] = {}
    for transport in ("netrpc", "grpc"):
        plugin = start_plugin("--transport", transport)
        host = connect(plugin.handshake())
        for each in sent:
            assert host.result(host.start(each)) == Answer()
        got[transport] = [entry["call"] for entry in plugin.calls() if "call" in entry]

    assert got["grpc"][5]["mirror_route"].pop("percentage") == 0
    assert got["netrpc"][5]["mirror_route"].pop("percentage") is None
    assert got["netrpc"] == got["grpc"]


def test_an_error_reaches_the_host_as_it_is(served: "Served", call: MakeCall) -> None:
    """The text of an error of ours is the answer, letter by letter."""
    text = "HTTPRoute shop/web has no rule for Services stable and canary ✗"

    assert served.perform(call("SetWeight", annotations={"fail": text})) == Answer(error=text)
    assert served.perform(call("SetWeight")) == Answer()


def test_a_bug_is_told_and_logged_and_the_process_lives(served: "Served", call: MakeCall) -> None:
    """A bug answers `internal error`, leaves its traceback in the log, and disturbs nobody else."""
    answer = served.perform(call("SetWeight", annotations={"crash": "by zero"}))

    assert answer == Answer(error="internal error: ZeroDivisionError: by zero")
    assert "Traceback" in served.plugin.wait_log("failed by a bug")["exception"]
    assert served.perform(call("SetWeight")) == Answer()
    served.host.ping()


@pytest.mark.parametrize("what", ["fail", "crash"])
def test_verify_weight_never_answers_an_error(served: "Served", call: MakeCall, what: str) -> None:
    """The controller would promote on an error of VerifyWeight, so it is NotVerified, and the log says why."""
    answer = served.perform(call("VerifyWeight", weight=1, annotations={what: "no route"}))

    assert answer == Answer(verified=Verification.NOT_VERIFIED)
    assert "no route" in served.plugin.wait_log("NotVerified")["reason"]


def test_pings_are_answered_while_calls_are_slow(served: "Served", call: MakeCall, tmp_path: Path) -> None:
    """A ping does not wait for the calls that run, and neither does another call."""
    gate = tmp_path / "gate"
    slow = [served.host.start(call("SetWeight", annotations={"wait": str(gate)})) for _ in range(20)]
    served.plugin.wait_calls("set_weight", 20)

    served.host.ping()
    assert served.perform(call("UpdateHash")) == Answer()
    assert served.plugin.calls("set_weight done") == []

    gate.touch()
    assert [served.host.result(handle) for handle in slow] == [Answer()] * 20


def test_64_calls_at_once_get_their_own_answers(served: "Served", call: MakeCall, tmp_path: Path) -> None:
    """Of 64 calls that run at the same time each gets its own answer."""
    gate = tmp_path / "gate"
    handles = [
        served.host.start(call("SetWeight", annotations={"wait": str(gate), "fail": f"call {number}"}))
        for number in range(64)
    ]
    served.plugin.wait_calls("set_weight", 64)
    gate.touch()

    assert [served.host.result(handle).error for handle in handles] == [f"call {number}" for number in range(64)]


def test_more_calls_than_the_limit_are_refused(
    served: "Served", call: MakeCall, tmp_path: Path, plugin_process: ModuleType
) -> None:
    """The 129th call at once is refused with an error that says so, and the 128 before it are answered."""
    gate = tmp_path / "gate"
    handles = [served.host.start(call("SetWeight", annotations={"wait": str(gate)})) for _ in range(128)]
    served.plugin.wait_calls("set_weight", 128)

    refused = served.perform(call("SetWeight"))
    not_verified = served.perform(call("VerifyWeight", weight=1))
    gate.touch()

    assert "128 calls are running already" in refused.error
    assert not_verified == Answer(verified=Verification.NOT_VERIFIED)
    assert [served.host.result(handle) for handle in handles] == [Answer()] * 128
    plugin_process.wait_until(lambda: served.perform(call("SetWeight")) == Answer(), "calls are taken in again")


def test_what_keeps_the_service_from_being_built_is_told_by_each_call(
    transport: str, start_plugin: "StartPlugin", connect: "Connect", call: MakeCall, tmp_path: Path
) -> None:
    """The handshake does not depend on the service; each call tells the cause until it is gone, then works."""
    broken = tmp_path / "broken"
    broken.touch()
    plugin = start_plugin("--transport", transport, environ={"STUB_BUILD_FAILS": str(broken)})
    host = connect(plugin.handshake())

    for method in ("InitPlugin", "SetWeight"):
        assert host.result(host.start(call(method))) == Answer(error="no cluster is configured")
    assert host.result(host.start(call("Type"))) == Answer(text="GatewayAPI")
    assert host.result(host.start(call("VerifyWeight", weight=1))) == Answer(verified=Verification.NOT_VERIFIED)

    broken.unlink()
    assert host.result(host.start(call("SetWeight"))) == Answer()


def test_stray_prints_never_reach_the_host(served: "Served", call: MakeCall) -> None:
    """Standard output carries the handshake line and nothing else, whatever a library prints."""
    assert served.perform(call("SetWeight", annotations={"print": "a stray print"})) == Answer()
    served.host.quit()

    assert served.plugin.rest_of_stdout() == b""
    assert served.plugin.wait() == 0
    assert "a stray print" in served.plugin.stderr
    assert "written to descriptor 1" in served.plugin.stderr


def test_only_the_chosen_transport_is_imported(served: "Served", call: MakeCall) -> None:
    """On the net/rpc path neither gRPC nor protobuf nor cryptography is imported."""
    served.perform(call("SetWeight"))

    modules = served.plugin.calls("set_weight")[0]["modules"]
    assert modules == ([] if served.line.protocol == "netrpc" else ["grpc", "google.protobuf"])
