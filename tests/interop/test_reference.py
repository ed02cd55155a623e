"""The judge judged: against Go's own plugin the host gets what Go's plugin says, so a failure elsewhere is ours."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.interop.conftest import Host

# A call, its arguments, and what Go's plugin answers.
CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "SetWeight",
        {"weight": 20, "destinations": [{"serviceName": "x", "weight": 5}]},
        {"error": "default/web weight 20 1"},
    ),
    ("VerifyWeight", {"weight": 20}, {"error": "", "verified": 1}),
    ("VerifyWeight", {"weight": 21}, {"error": "weight is not 21", "verified": 0}),
    ("UpdateHash", {"canary_hash": "a", "stable_hash": "b"}, {"error": "hash a b 0"}),
    ("SetHeaderRoute", {"header_route": {"name": "h", "match": [{"headerName": "x"}]}}, {"error": "header h 1"}),
    ("SetMirrorRoute", {"mirror_route": {"name": "m"}}, {"error": "mirror m 0"}),
    ("RemoveManagedRoutes", {}, {"error": "remove web"}),
    ("Type", {}, {"error": "", "type": "Reference"}),
]


@pytest.fixture
def reference(go_host: "Host") -> Iterator["Host"]:
    """Run a host with Go's plugin, which does not end with its host by itself."""
    yield go_host.started(path=str(go_host.binary), args=["reference"])
    go_host.do("kill")


def test_every_call(reference: "Host", rollout: dict[str, Any]) -> None:
    """Arguments and answers of every call pass the host unchanged."""
    answers = [reference.call(method, rollout=rollout, **call) for method, call, _ in CALLS]

    for (_, _, expected), answer in zip(CALLS, answers, strict=True):
        answer.pop("seconds")
        assert expected == answer


def test_other_commands(reference: "Host", rollout: dict[str, Any]) -> None:
    """Ping, parallel and background calls, raw calls, a second Dispense, and the end work."""
    assert reference.do("ping")["error"] == ""
    reference.background("slow", "SetWeight", rollout=rollout, weight=-300)
    assert reference.do("ping")["seconds"] < 0.3
    assert reference.do("await", id="slow")["seconds"] >= 0.3
    answers = reference.do("parallel", count=8, call={"method": "SetWeight", "rollout": rollout, "weight": 1})[
        "answers"
    ]
    assert [answer["error"] for answer in answers] == ["default/web weight 1 0"] * 8
    assert reference.do("dispense", name="RpcStepPlugin")["error"] == "unknown plugin type: RpcStepPlugin"
    assert reference.do("dispense", name="RpcTrafficRouterPlugin")["error"] == ""
    assert reference.call("Type")["type"] == "Reference"
    killed = reference.do("kill")
    assert killed["exited"]
    assert reference.plugin_ended()
