"""The host of `embedded.host` against Go's own plugin server: the Go types read what it sends."""

import json
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.controller import Reply
from rollouts_gwapi_plugin.embedded.host.process import ChildPlugin

pytestmark = pytest.mark.go
GOLDEN = Path(__file__).parents[1] / "wire" / "golden" / "rpc" / "rich-SetWeight.request.json"


def test_every_call(host_binary: Path) -> None:
    """Each call of the interface reaches Go's plugin with all that was sent, for a small and for a rich Rollout."""
    rich: dict[str, Any] = json.loads(GOLDEN.read_text())["calls"][0]["args"]["Rollout"]
    small = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"strategy": {"canary": {}}}}
    destinations = [{"serviceName": "x", "podTemplateHash": "h", "weight": 5}]
    header = {"name": "h", "match": [{"headerName": "a", "headerValue": {"exact": "1"}}]}
    with ChildPlugin([str(host_binary), "reference"]) as plugin:
        answers = [
            plugin.call(Call(method, {"rollout": rollout, **arguments}))
            for rollout in (small, rich, small)
            for method, arguments in (
                ("SetWeight", {"desiredWeight": 30, "additionalDestinations": destinations}),
                ("UpdateHash", {"canaryHash": "a", "stableHash": "b", "additionalDestinations": []}),
                ("SetHeaderRoute", {"setHeaderRoute": header}),
                ("SetMirrorRoute", {"setMirrorRoute": {"name": "m", "percentage": 0, "match": [{}]}}),
                ("RemoveManagedRoutes", {}),
            )
        ]
        verified = plugin.call(Call("VerifyWeight", {"rollout": small, "desiredWeight": 20}))
        wrong = plugin.call(Call("VerifyWeight", {"rollout": small, "desiredWeight": 0}))
        type_name = plugin.call(Call("Type", {}))
        plugin.ping()

    expected = ["weight 30 1", "hash a b 0", "header h 1", "mirror m 1"]
    assert [answer.error for answer in answers[:5]] == ["shop/web " + expected[0], *expected[1:], "remove web"]
    assert [answer.error for answer in answers[5:10]] == [
        "shop-prod/checkout " + expected[0],
        *expected[1:],
        "remove checkout",
    ]
    assert answers[10:] == answers[:5]
    assert (verified, wrong) == (Reply(verified=True), Reply(error="weight is not 0", verified=False))
    assert type_name.text == "Reference"
    assert plugin.process.exit_code is not None
