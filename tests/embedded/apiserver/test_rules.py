"""Every rule of the Gateway API's route kinds has its check, in every release and channel that is tested."""

from collections.abc import Iterator
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver.rules import broken_rules, check_for

_RELEASES = ("1.2.1", "1.3.0", "1.4.1", "1.5.1", "1.6.3")
_CHANNELS = ("standard", "experimental")
# Not of routes: what GatewayClass and Gateway say about themselves.
_ROUTE_KINDS = {"HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute"}


def _messages(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (rule["message"] for rule in schema.get("x-kubernetes-validations", []))
        for entry in schema.values():
            yield from _messages(entry)
    elif isinstance(schema, list):
        for entry in schema:
            yield from _messages(entry)


@pytest.mark.go
@pytest.mark.parametrize("channel", _CHANNELS)
@pytest.mark.parametrize("release", _RELEASES)
def test_no_rule_of_a_route_is_unknown(gateway_api_crds: Any, release: str, channel: str) -> None:
    """A release that brings a rule which is not written out here is noticed."""
    routes = [crd for crd in gateway_api_crds(release, channel) if crd["spec"]["names"]["kind"] in _ROUTE_KINDS]
    messages = {message for crd in routes for message in _messages(crd["spec"]["versions"])}

    assert messages
    assert {message for message in messages if check_for(message) is None} == set()


_PAIR = "when parentRefs includes 2 or more references to the same parent"


@pytest.mark.parametrize(
    ("message", "good", "bad"),
    [
        (
            "filter.cors must be nil if the filter.type is not CORS",
            {"type": "CORS", "cors": {}},
            {"type": "X", "cors": {}},
        ),
        ("filter.cors must be specified for CORS filter.type", {"type": "X"}, {"type": "CORS"}),
        ("URLRewrite filter cannot be repeated", [{"type": "URLRewrite"}], [{"type": "URLRewrite"}] * 2),
        ("grpc must be specified when protocol is set to 'GRPC'", {"protocol": "HTTP"}, {"protocol": "GRPC"}),
        ("protocol must be 'GRPC' when grpc is set", {"protocol": "HTTP"}, {"protocol": "HTTP", "grpc": {}}),
        ("AllowHeaders cannot contain '*' alongside other methods", ["*"], ["*", "a"]),
        ("Rule name must be unique within the route", [{"name": "a"}, {}, {}], [{"name": "a"}, {"name": "a"}]),
        ("Must have port for Service reference", {"group": "x", "kind": "Service"}, {"group": "", "kind": "Service"}),
        (
            "backendRequest timeout cannot be longer than request timeout",
            {"request": "1m", "backendRequest": "60000ms"},
            {"request": "1m", "backendRequest": "1m1s"},
        ),
        (
            f"sectionName must be specified {_PAIR}",
            [{"name": "a", "sectionName": "x"}, {"name": "b"}],
            [{"name": "a", "sectionName": "x"}, {"name": "a"}],
        ),
        (
            f"sectionName or port must be unique {_PAIR}",
            [{"name": "a", "port": 1}, {"name": "a", "port": 2}],
            [{"name": "a", "port": 1}, {"name": "a", "port": 1}],
        ),
        ("Hostnames cannot contain an IP", ["a.example.com"], ["10.0.0.1"]),
        ("Hostnames cannot contain an IP", ["a.example.com"], ["fd00::1"]),
        ("Hostnames must be valid based on RFC-1123", ["*.A"], ["A"]),
        (
            "Wildcards on hostnames must be the first label, and the rest of hostname must be valid based on RFC-1123",
            ["*.a"],
            ["a.*"],
        ),
    ],
)
def test_check_tells_good_from_bad(message: str, good: Any, bad: Any) -> None:
    """A value that keeps the rule passes, one that breaks it does not."""
    check = check_for(message)

    assert check is not None
    assert check(good)
    assert not check(bad)


def test_unknown_rules_are_not_checked() -> None:
    """A rule that is not written out here lets every value pass."""
    schema = {"x-kubernetes-validations": [{"rule": "false", "message": "nobody knows this one"}]}

    assert broken_rules({"a": 1}, schema, ()) == []
