"""`lint`: what it finds in the steps of a Rollout, and on the routes that are to take them."""

import pytest
from tests.cli.linting import Json, Lint, rollout
from tests.service.world import header_step

MANAGED = "managed route"


@pytest.mark.parametrize(
    ("steps", "managed", "text"),
    [
        ([{"setWeight": 101}], (), "error weight: steps[0].setWeight is 101; maxTrafficWeight lets it be 0 to 100"),
        (
            [{"setWeight": 90}, {"experiment": {"templates": [{"name": "a", "weight": 20}]}}],
            (),
            "warning weight: steps[1].experiment: canary 90 and the templates (a 20) need 110 of 100",
        ),
        ([{"setHeaderRoute": header_step("r")}], (), f"error {MANAGED}: steps[0].setHeaderRoute: r is not in trafficR"),
        ([], ("r",), f"warning {MANAGED}: managedRoutes: no step sets r"),
        (
            [{"setHeaderRoute": {"name": "r"}}],
            ("r",),
            f"warning {MANAGED}: steps[0].setHeaderRoute removes r, which no",
        ),
        ([{"setHeaderRoute": {"match": []}}], (), f"error {MANAGED}: steps[0].setHeaderRoute.name is missing"),
        (
            [{"setHeaderRoute": header_step("r")}, {"setMirrorRoute": {"name": "r"}}],
            ("r",),
            f"warning {MANAGED}: r is set by header and by mirror steps",
        ),
        (
            [{"setHeaderRoute": header_step(name)} for name in ("b", "c", "a", "a")],
            ("a", "b", "c"),
            f"info {MANAGED}: steps[2].setHeaderRoute: the rule of a is put before b, c, as managedRoutes has them",
        ),
        ([{"setHeaderRoute": header_step("Beta_1")}], ("Beta_1",), f"info {MANAGED}: Beta_1: no legal rule name"),
        (
            [{"setHeaderRoute": header_step("r", header="a b")}],
            ("r",),
            "error match: steps[0]: setHeaderRoute r.match[0].headerName: 'a b' is not a header name",
        ),
        (
            [{"setHeaderRoute": {"name": "r", "match": [{"headerName": "a", "headerValue": {}}]}}],
            ("r",),
            "error match: steps[0]: setHeaderRoute r.match[0].headerValue: one of exact, prefix, regex must be given",
        ),
        (
            [
                {
                    "setHeaderRoute": {
                        "name": "r",
                        "match": [{"headerName": "a", "headerValue": {"exact": "1", "regex": "2"}}],
                    }
                }
            ],
            ("r",),
            "error match: steps[0].setHeaderRoute.match[0].headerValue has exact and regex",
        ),
        (
            [{"setMirrorRoute": {"name": "m", "percentage": 120, "match": [{"path": {"prefix": "/"}}]}}],
            ("m",),
            "error match: steps[0]: setMirrorRoute m.percentage: 120 is not between 0 and 100",
        ),
        (
            [{"setMirrorRoute": {"name": "m", "match": [{"method": {"regex": "G.*"}}]}}],
            ("m",),
            "error match: steps[0]: HTTPRoute: setMirrorRoute m.match[0].method.regex: 'G.*'",
        ),
    ],
)
def test_steps(lint: Lint, steps: list[Json], managed: tuple[str, ...], text: str) -> None:
    """What is wrong with a step is told with its index, without any route."""
    assert [line for line in lint(rollout(steps=steps, managed=managed))[1] if line.startswith(text)]


@pytest.mark.parametrize(
    ("config", "step", "text"),
    [
        (
            {"tcpRoute": "db"},
            {"setMirrorRoute": {"name": "r", "match": [{}]}},
            "(TCPRoute) takes the step setMirrorRoute",
        ),
        ({"httpRoutes": [{"name": "web"}]}, {"setHeaderRoute": header_step("r")}, "useHeaderRoutes: true"),
        (
            {"httpRouteSelector": {"matchLabels": {"a": "b"}}},
            {"setHeaderRoute": header_step("r")},
            "(HTTPRoute) takes the step setHeaderRoute",
        ),
    ],
)
def test_a_step_that_no_route_takes(lint: Lint, config: Json, step: Json, text: str) -> None:
    """A step that will silently do nothing is a warning that says what it needs (D24)."""
    lines = lint(rollout(config, [step], ("r",)))[1]

    assert [line for line in lines if line.startswith("warning steps: no configured route") and text in line]


def test_grpc_mirror_by_path(lint: Lint) -> None:
    """A GRPCRoute can't match a path, and no cluster is needed to know it."""
    step = {"setMirrorRoute": {"name": "m", "match": [{"path": {"prefix": "/a"}}]}}

    code, lines = lint(rollout({"grpcRoute": "web"}, [step], ("m",)))

    assert code == 1
    assert [line for line in lines if "GRPCRoute: setMirrorRoute m.match[0].path: a GRPCRoute can't match it" in line]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["a", "b", "a"], id="in managedRoutes order, one set again"),
        pytest.param(["b", "-b", "a", "b"], id="the one behind was removed before"),
        pytest.param(["z", "a", "b"], id="one is not listed, which is an error of its own"),
    ],
)
def test_header_routes_in_order(lint: Lint, names: list[str]) -> None:
    """Nothing is said about the order where each rule is set behind those that are there."""
    steps = [
        {"setHeaderRoute": {"name": name[1:]} if name.startswith("-") else header_step(name, header=f"X-{name}")}
        for name in names
    ]

    assert not [line for line in lint(rollout(steps=steps, managed=("a", "b")))[1] if "put before" in line]
