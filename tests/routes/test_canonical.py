"""Two rules that the API server's defaults make equal are equal, and have one fingerprint."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.model.routes import BackendRef, Rule
from rollouts_gwapi_plugin.routes.canonical import backend_identity, canonical_match, fingerprint, same_rule

HTTP, GRPC = "HTTPRoute", "GRPCRoute"
NOBODY: frozenset[tuple[str, str, str, str]] = frozenset()


def made(**fields: Any) -> Rule:
    """Make a rule from JSON."""
    return Rule.model_validate(fields)


PREFIX: dict[str, Any] = {"path": {"type": "PathPrefix", "value": "/"}}
EQUAL = [
    (HTTP, {}, {"matches": [PREFIX]}),
    (HTTP, {"matches": []}, {"matches": None}),
    (HTTP, {"matches": [{"path": {"value": "/"}}]}, {"matches": [{"path": {"type": None, "value": "/"}}]}),
    (HTTP, {"matches": [{"headers": []}]}, {"matches": [{"queryParams": None}]}),
    (
        HTTP,
        {"matches": [{"headers": [{"name": "X-A", "value": "1"}, {"name": "b", "value": "2"}]}]},
        {
            "matches": [
                {
                    **PREFIX,
                    "headers": [
                        {"type": "Exact", "name": "B", "value": "2"},
                        {"type": None, "name": "x-a", "value": "1"},
                    ],
                }
            ]
        },
    ),
    (
        HTTP,
        {"matches": [{"queryParams": [{"name": "b", "value": "2"}, {"name": "a", "value": "1"}]}]},
        {
            "matches": [
                {"queryParams": [{"name": "a", "value": "1"}, {"type": "Exact", "name": "b", "value": "2"}]},
            ]
        },
    ),
    (GRPC, {}, {"matches": [{}]}),
    (GRPC, {"matches": [{"method": {"service": "x"}}]}, {"matches": [{"method": {"type": "Exact", "service": "x"}}]}),
    (GRPC, {"matches": [{"method": {"type": None}}]}, {"matches": [{"method": {}}]}),
    (
        HTTP,
        {"filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "c"}, "percent": 100}}]},
        {
            "filters": [
                {
                    "type": "RequestMirror",
                    "requestMirror": {"backendRef": {"group": "", "kind": "Service", "name": "c"}},
                }
            ]
        },
    ),
    (HTTP, {"backendRefs": [{"name": "c"}]}, {"backendRefs": [{"group": "", "kind": "Service", "name": "c"}]}),
    (HTTP, {"filters": []}, {"filters": None}),
]


@pytest.mark.parametrize(("kind", "left", "right"), EQUAL)
def test_the_apis_defaults_make_no_difference(kind: str, left: dict[str, Any], right: dict[str, Any]) -> None:
    """Absent, null and the default are one; header names have no case, lists keyed by name no order."""
    assert same_rule(made(**left), made(name="other", **right), kind)
    assert fingerprint(made(**left), kind, "shop", NOBODY) == fingerprint(made(**right), kind, "shop", NOBODY)


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        (HTTP, {}, {"matches": [{"method": "GET"}]}),
        (HTTP, {"matches": [{"method": "GET"}, PREFIX]}, {"matches": [PREFIX, {"method": "GET"}]}),
        (HTTP, {"matches": [{"queryParams": [{"name": "A"}]}]}, {"matches": [{"queryParams": [{"name": "a"}]}]}),
        (HTTP, {"matches": [{"headers": [{"name": "a", "value": "1"}]}]}, {"matches": [{"headers": [{"name": "a"}]}]}),
        (GRPC, {"matches": [{"method": {"service": "x"}}]}, {"matches": [{"method": {"service": "y"}}]}),
        (
            HTTP,
            {"filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "c"}, "percent": 5}}]},
            {},
        ),
        (HTTP, {"filters": [{"type": "CORS", "cors": {}}]}, {"filters": [{"type": "CORS", "cors": {"future": 1}}]}),
        (HTTP, {"backendRefs": [{"name": "c"}]}, {"backendRefs": [{"name": "s"}]}),
    ],
)
def test_what_differs_has_another_print(kind: str, left: dict[str, Any], right: dict[str, Any]) -> None:
    """Matches, filters and backends, the order of matches included."""
    assert not same_rule(made(**left), made(**right), kind)
    assert fingerprint(made(**left), kind, "shop", NOBODY) != fingerprint(made(**right), kind, "shop", NOBODY)


def test_weights_and_other_fields_are_part_of_a_rule_and_not_of_its_print() -> None:
    """A print survives SetWeight; a rule with another weight, port or timeout is not as it should be."""
    rule = made(backendRefs=[{"name": "c", "weight": 1, "port": 80}])
    for other in (
        made(backendRefs=[{"name": "c", "weight": 0, "port": 80}]),
        made(backendRefs=[{"name": "c", "port": 81}]),
        made(backendRefs=[{"name": "c", "port": 80}], timeouts={"request": "1s"}),
    ):
        assert not same_rule(rule, other, HTTP)
        assert fingerprint(rule, HTTP, "shop", NOBODY) == fingerprint(other, HTTP, "shop", NOBODY)
    assert same_rule(rule, made(backendRefs=[{"name": "c", "port": 80}]), HTTP)


def test_experiment_backends_are_no_part_of_a_print() -> None:
    """They come and go in mirror rules (D7)."""
    pair = made(backendRefs=[{"name": "s"}, {"name": "c"}])
    with_experiment = made(backendRefs=[{"name": "s"}, {"name": "c"}, {"name": "b"}])
    ours = frozenset({("", "Service", "shop", "b")})

    assert fingerprint(pair, HTTP, "shop", ours) == fingerprint(with_experiment, HTTP, "shop", ours)
    assert fingerprint(pair, HTTP, "shop", NOBODY) != fingerprint(with_experiment, HTTP, "shop", NOBODY)


def test_a_backend_is_known_by_group_kind_namespace_and_name() -> None:
    """An absent namespace is the route's; ports tell no backends apart (D9)."""
    ref = BackendRef.model_validate({"name": "s", "port": 80})

    assert ("", "Service", "shop", "s") == backend_identity(ref, "shop")
    assert ("", "Service", "other", "s") == backend_identity(ref.replace(namespace="other", port=81), "shop")


def test_unknown_fields_of_a_match_are_kept() -> None:
    """A field of the future tells matches apart."""
    assert {**PREFIX, "cookies": [1]} == canonical_match({"cookies": [1]}, HTTP)
