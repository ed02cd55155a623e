"""What the API would refuse is found before the write; what was there before is let through (D22, C35, C36)."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.world import route, rule

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.kinds import GRPC, HTTP, TCP, TLS, UDP, RouteKind
from rollouts_gwapi_plugin.routes.limits import check_limits

HEADER = {"name": "h", "value": "1"}


def made(*rules: Any, kind: RouteKind = HTTP, version: str = "v1") -> Route:
    """Make a route."""
    return parse_route(route(*rules, kind=kind.kind, version=version))


SMALL = rule("s c")
LARGE: list[tuple[str, Any]] = [
    (r"spec\.rules\[0\] \(big\)\.backendRefs: 17 needed", rule(" ".join(f"b{'x' * index}" for index in range(17)))),
    (r"spec\.rules\[0\] \(big\)\.filters: 17 needed", rule("s", filters=[{"type": "X"}] * 17)),
    (r"spec\.rules\[0\] \(big\)\.matches: 65 needed", rule("s", matches=[{}] * 65)),
    (r"spec\.rules\[0\] \(big\)\.matches\[\]\.headers: 17 needed", rule("s", matches=[{"headers": [HEADER] * 17}])),
]


@pytest.mark.parametrize(("message", "item"), LARGE)
def test_a_rule_over_a_limit_is_refused(message: str, item: Any) -> None:
    """With object, field, number, limit and a way out; the same rule that stood there before is not ours to refuse."""
    big = {**item, "name": "big"}
    with pytest.raises(RouteError, match=rf"HTTPRoute shop/web: {message}, the Gateway API takes \d+; nothing was"):
        check_limits(made(SMALL), made(big), HTTP)

    edited = {**big, "timeouts": {"request": "1s"}}
    check_limits(made(big), made(edited), HTTP)
    with pytest.raises(RouteError):
        check_limits(made({**SMALL, "name": "big"}), made(big, SMALL), HTTP)


@pytest.mark.parametrize("kind", [HTTP, GRPC])
def test_a_route_holds_sixteen_rules_and_128_matches(kind: RouteKind) -> None:
    """Together, over all rules; a rule without matches has one."""
    many = rule("s", matches=[{}] * 64)

    check_limits(made(SMALL, kind=kind), made(*[SMALL] * 16, kind=kind), kind)
    with pytest.raises(RouteError, match=r"spec\.rules: 17 needed, the Gateway API takes 16"):
        check_limits(made(SMALL, kind=kind), made(*[SMALL] * 17, kind=kind), kind)
    check_limits(made(SMALL, kind=kind), made(many, many, kind=kind), kind)
    with pytest.raises(RouteError, match="matches of all rules together: 129 needed, the Gateway API takes 128"):
        check_limits(made(SMALL, kind=kind), made(many, many, SMALL, kind=kind), kind)
    check_limits(made(*[SMALL] * 20, kind=kind), made(*[rule("s1 c")] * 20, kind=kind), kind)


@pytest.mark.parametrize("kind", [TCP, TLS, UDP])
def test_one_rule_on_v1_of_connections(kind: RouteKind) -> None:
    """TCPRoute, TLSRoute and UDPRoute hold exactly one rule since v1, and sixteen before."""
    check_limits(made(SMALL, kind=kind), made(SMALL, SMALL, kind=kind, version="v1alpha2"), kind)
    with pytest.raises(RouteError, match=r"spec\.rules: 2 needed, the Gateway API takes 1"):
        check_limits(made(SMALL, kind=kind), made(SMALL, SMALL, kind=kind), kind)


@pytest.mark.parametrize("weight", [-1, 1_000_001])
def test_weights_outside_the_apis_range_are_refused(weight: int) -> None:
    """The backend is named; the same object that stands there already is not looked at."""
    item = {"backendRefs": [{"name": "s", "weight": weight}]}

    with pytest.raises(RouteError, match=rf"spec\.rules\[0\]\.backendRefs\[0\] \(s\): weight {weight} is outside"):
        check_limits(made(SMALL), made(item), HTTP)
    before = made(item, SMALL)
    check_limits(before, before.with_rules([before.rules[0]]), HTTP)


def test_the_installed_limit_counts_where_it_is_known() -> None:
    """More than the Gateway API's own, or less; the text says whose it is."""
    check_limits(made(SMALL), made(*[SMALL] * 60), HTTP, 64)
    with pytest.raises(RouteError, match=r"spec\.rules: 5 needed, the installed HTTPRoute CRD takes 4"):
        check_limits(made(SMALL), made(*[SMALL] * 5), HTTP, 4)


def test_the_installed_limit_of_matches_counts_where_it_is_known() -> None:
    """Gateway API 1.1 takes 8 a rule, a later one may take more than we know."""
    check_limits(made(SMALL), made(rule("s", matches=[{}] * 65)), HTTP, None, 100)
    with pytest.raises(RouteError, match=r"spec\.rules\[0\]\.matches: 9 needed, the installed HTTPRoute CRD takes 8;"):
        check_limits(made(SMALL), made(rule("s", matches=[{}] * 9)), HTTP, None, 8)


@pytest.mark.parametrize("size", [lambda: made(*[SMALL] * 17), lambda: made(SMALL)])
def test_nothing_changed_is_nothing_refused(size: Callable[[], Route]) -> None:
    """The same object is let through whatever it holds."""
    value = size()
    check_limits(value, value, HTTP)
