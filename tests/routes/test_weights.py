"""The split of one rule (decisions D9, D11, D31); whole routes are in test_invariants."""

from dataclasses import replace
from typing import Any

import pytest
from tests.routes.wanted import WEB
from tests.service.world import rule

from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.desired import Desired, Destination, ServicePort
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.weights import ExperimentError, split_of, unresolved, weigh

PAIR = Pair("", "Service", "shop", "s", "c", "shop")
DESIRED = replace(WEB, weight=20)
EIGHTY = (ServicePort("", 80),)


def made(refs: str | list[Any], **fields: Any) -> Rule:
    """Make a rule."""
    raw = rule(refs, **fields) if isinstance(refs, str) else {"backendRefs": refs, **fields}
    return Rule.model_validate(raw)


def weighed(item: Rule, desired: Desired, pair: Pair = PAIR, *, experiments: bool = True) -> list[str]:
    """Return the backends as `name:port=weight`."""
    split = split_of(desired, pair, (), experiments=experiments)
    result = weigh(item, pair, split, desired)
    return [f"{ref.name}:{ref.port}={ref.weight}" for ref in result.backends]


def with_b(weight: int, *ports: ServicePort) -> Desired:
    """Want a destination `b`."""
    return replace(DESIRED, destinations=(Destination("b", weight, ports or EIGHTY),))


def test_a_rule_that_is_as_it_should_be_is_the_same_object() -> None:
    """Absent weights read as 1 (D11)."""
    item = made("s80 x3 c20")

    assert weigh(item, PAIR, split_of(DESIRED, PAIR, ()), DESIRED) is item
    one = replace(DESIRED, weight=1, max_weight=2)
    absent = made("s c")
    assert weigh(absent, PAIR, split_of(one, PAIR, ()), one) is absent


def test_everything_of_a_backend_but_its_weight_stays() -> None:
    """Filters, unknown fields, order, and other Services' weights (C08, C15)."""
    refs = [
        {"name": "x", "weight": 7},
        {"name": "c", "port": 1, "filters": [{"type": "X"}], "future": {"a": 1}},
        {"name": "s", "port": 1, "namespace": "shop", "weight": None},
    ]
    split = split_of(DESIRED, PAIR, ())
    result = weigh(made(refs), PAIR, split, DESIRED).dump()

    assert [refs[0], {**refs[1], "weight": 20}, {**refs[2], "weight": 80}] == result["backendRefs"]


def test_each_port_of_stable_has_its_experiment() -> None:
    """Else the shares of one port's requests would not hold (C05, W1)."""
    item = made([{"name": "s", "port": 80}, {"name": "s", "port": 8443}, {"name": "c", "port": 80}])
    desired = with_b(10, ServicePort("a", 80), ServicePort("b", 8443))

    assert ["s:80=70", "s:8443=70", "c:80=20", "b:80=10", "b:8443=10"] == weighed(item, desired)


@pytest.mark.parametrize(
    ("own", "stable_ports", "ports", "port"),
    [
        (80, (), (ServicePort("", 80), ServicePort("x", 81)), 80),
        (80, (ServicePort("web", 80),), (ServicePort("web", 8080), ServicePort("x", 81)), 8080),
        (80, (), (ServicePort("any", 8080),), 8080),
        (None, (), (), None),
    ],
)
def test_the_port_of_an_experiment(own: int | None, stable_ports: Any, ports: Any, port: int | None) -> None:
    """The pair's own if the Service has it, else the one of the same name, else its only one."""
    refs = [{"name": "s", **({"port": own} if own else {})}, {"name": "c"}]
    desired = replace(with_b(10), destinations=(Destination("b", 10, ports),), stable_ports=stable_ports)

    assert f"b:{port}=10" == weighed(made(refs), desired)[-1]


@pytest.mark.parametrize(
    ("ports", "listing"),
    [
        ((), "it has no ports"),
        ((ServicePort("a", 1), ServicePort("", 2)), r"it has 1 \(a\), 2\."),
    ],
)
def test_a_port_that_does_not_fit_is_told_with_those_that_are_there(ports: Any, listing: str) -> None:
    """With the ways out."""
    desired = replace(with_b(10), destinations=(Destination("b", 10, ports),))

    with pytest.raises(ExperimentError, match=rf"Service shop/b: no port fits port 80 of Service s; {listing}"):
        weighed(made("s c"), desired)


def test_what_stands_there_keeps_its_port() -> None:
    """The Service is not asked again: its ports are not known in the later calls."""
    item = made([{"name": "s", "port": 80}, {"name": "c", "port": 80}, {"name": "b", "port": 9, "weight": 1}])
    desired = replace(DESIRED, destinations=(Destination("b", 30),))

    assert ["s:80=50", "c:80=20", "b:9=30"] == weighed(item, desired)
    assert () == unresolved([item], PAIR, desired)
    assert ("b",) == unresolved([made("s c")], PAIR, desired)
    assert () == unresolved([made("s c")], PAIR, with_b(30))


def test_without_experiments_those_that_stand_go() -> None:
    """Their share stays with stable, record or not (D31)."""
    item = made("s60 c20 b20")

    assert ["s:80=80", "c:80=20"] == weighed(item, with_b(20), experiments=False)


def test_backends_take_group_kind_and_namespace_of_the_pair() -> None:
    """A ServiceImport's experiment is one, too."""
    pair = Pair("multicluster.x-k8s.io", "ServiceImport", "shop", "s", "c", "infra")
    own = {"group": "multicluster.x-k8s.io", "kind": "ServiceImport", "namespace": "shop", "port": 80}
    item = made([{**own, "name": "s"}, {**own, "name": "c"}, {"name": "s", "port": 80, "weight": 9}])
    result = weigh(item, pair, split_of(with_b(10), pair, ()), with_b(10)).dump()["backendRefs"]

    assert {**own, "name": "b", "weight": 10} == result[-1]
    assert 9 == result[2]["weight"]


def test_a_full_rule_has_no_room_for_an_experiment() -> None:
    """Sixteen backends are all the API takes; one that leaves makes room."""
    full = made("s c " + " ".join("x" * index for index in range(1, 15)))
    with pytest.raises(ExperimentError, match=r"would have 17 backendRefs with the experiment's \(b\)"):
        weighed(full, with_b(10))
    swap = split_of(with_b(10), PAIR, [("", "Service", "shop", "x")])

    assert 16 == len(weigh(full, PAIR, swap, with_b(10)).backends)
