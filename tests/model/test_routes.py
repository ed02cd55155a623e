"""Route objects: reading then writing is the identity, and what is malformed is told by its path."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from tests.strategies import Json, routes

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.routes import BackendRef, Metadata, Rule, parse_route


@settings(max_examples=150)
@given(raw=routes())
def test_parse_then_dump_is_the_identity(raw: Json) -> None:
    """Whatever a route has, known or not, comes out as it went in, and the input is left alone."""
    before = deepcopy(raw)
    route = parse_route(raw)

    assert before == route.dump()
    assert before == raw


@settings(max_examples=50)
@given(raw=routes())
def test_putting_the_same_rules_back_is_the_same_route(raw: Json) -> None:
    """A reconciler that changes nothing returns the very object it was given."""
    route = parse_route(raw)
    rules = [rule.with_backends(list(rule.backends)) for rule in route.rules]

    assert route.with_rules(rules) is route


def test_other_rules_are_another_route() -> None:
    """A changed list of rules is a copy with everything else as it was."""
    raw = {"kind": "HTTPRoute", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"x": 1, "rules": [{}]}}
    route = parse_route(raw)
    emptied = route.with_rules([])

    assert {**raw, "spec": {"x": 1, "rules": []}} == emptied.dump()
    assert raw == route.dump()
    assert "HTTPRoute shop/web" == str(emptied)


def test_nulls_stay_nulls() -> None:
    """An explicit null is neither dropped nor filled."""
    raw = {
        "kind": "HTTPRoute",
        "metadata": {"name": "web", "labels": None},
        "spec": {"parentRefs": None, "rules": [{"name": None, "matches": None, "filters": None, "backendRefs": None}]},
        "status": None,
    }

    assert raw == parse_route(raw).dump()


@pytest.mark.parametrize("rules", [None, [], [{}], [{"backendRefs": []}]])
def test_a_route_may_lack_rules_and_backends(rules: Any) -> None:
    """Absent, null and empty all read as nothing."""
    route = parse_route({"kind": "HTTPRoute", "metadata": {"name": "web"}, "spec": {"rules": rules}})

    assert len(rules or []) == len(route.rules)
    assert [] == [ref for rule in route.rules for ref in rule.backends]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("metadata",), "x", "HTTPRoute /: metadata: Input should be"),
        (("metadata", "labels"), {"a": 1}, "HTTPRoute shop/web: metadata.labels.a: Input should be a valid string"),
        (("spec",), None, "HTTPRoute shop/web: spec: "),
        (("spec", "rules"), {}, "spec.rules: Input should be a valid list, found '{}'; correct the object"),
        (("rule", "backendRefs"), {}, "spec.rules.0.backendRefs: Input should be a valid list"),
        (("rule", "matches"), [None], "spec.rules.0.matches.0: Input should be a valid dictionary, found 'None'"),
        (("rule", "matches"), [{"headers": {}}], None),
        (("rule", "matches"), [{"headers": "x"}], "spec.rules.0.matches.0: headers: a list of objects expected"),
        (("rule", "matches"), [{"headers": ["x"]}], "spec.rules.0.matches.0: headers: a list of objects expected"),
        (("rule", "matches"), [{"headers": [{"name": 5}]}], "spec.rules.0.matches.0: name: a string expected"),
        (("rule", "matches"), [{"queryParams": [5]}], "spec.rules.0.matches.0: queryParams: a list of objects"),
        (("rule", "matches"), [{"path": "/x"}], "spec.rules.0.matches.0: path: an object expected, found '/x'"),
        (("rule", "matches"), [{"path": {"value": 5}}], "spec.rules.0.matches.0: value: a string expected, found '5'"),
        (("rule", "matches"), [{"method": 5}], "spec.rules.0.matches.0: method: a string expected"),
        (("rule", "matches"), [{"method": {"method": 5}}], "spec.rules.0.matches.0: method: a string expected"),
        (("rule", "filters"), ["x"], "spec.rules.0.filters.0: Input should be a valid dictionary"),
        (("rule", "filters"), [{"urlRewrite": "x"}], "spec.rules.0.filters.0: urlRewrite: an object expected"),
        (("rule", "filters"), [{"urlRewrite": {"path": 1}}], "spec.rules.0.filters.0: path: an object expected"),
        (("rule", "filters"), [{"requestMirror": []}], "spec.rules.0.filters.0: requestMirror: an object expected"),
        (("rule", "filters"), [{"requestMirror": {"backendRef": {"name": 1}}}], "filters.0: name: a string expected"),
        (("backend", "weight"), "5", "spec.rules.0.backendRefs.0.weight: Input should be a valid integer, found '5'"),
        (("backend", "port"), True, "spec.rules.0.backendRefs.0.port: Input should be a valid integer"),
        (("backend", "name"), 5, "spec.rules.0.backendRefs.0.name: Input should be a valid string"),
        (("backend", "filters"), [5], "spec.rules.0.backendRefs.0.filters.0: Input should be a valid dictionary"),
        (("status",), [], "HTTPRoute shop/web: status: Input should be a valid dictionary"),
    ],
)
def test_what_can_not_be_read_is_told_by_its_path(place: tuple[str, ...], value: Any, message: str | None) -> None:
    """An API server without schemas may hold anything: the error names object, field and what was found."""
    backend: Json = {"name": "s", "port": 80}
    rule: Json = {"backendRefs": [backend]}
    raw: Json = {
        "kind": "HTTPRoute",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"rules": [rule]},
    }
    owners = {"rule": rule, "backend": backend, "metadata": raw["metadata"], "spec": raw["spec"]}
    owner = raw if len(place) == 1 else owners[place[0]]
    owner[place[-1]] = value
    if message is None:
        assert raw == parse_route(raw).dump()
        return

    with pytest.raises(RouteError) as raised:
        parse_route(raw)
    assert message in str(raised.value)


def test_weights_compare_modulo_the_default() -> None:
    """An absent weight is 1: setting 1 changes nothing, 0 is written."""
    ref = BackendRef.model_validate({"name": "s"})

    assert ref.with_weight(1) is ref
    assert {"name": "s", "weight": 0} == ref.with_weight(0).dump()
    assert ("", "Service") == ref.group_kind
    assert ("x", "y") == BackendRef.model_validate({"name": "s", "group": "x", "kind": "y"}).group_kind


def test_replacing_and_taking_out_leave_the_original() -> None:
    """Models are values: a change is a copy, and a field that is taken out is not dumped as null."""
    metadata = Metadata.model_validate({"name": "web", "labels": {"a": "b"}, "future": 1})

    assert {"name": "web", "future": 1} == metadata.without("labels").dump()
    assert {"name": "web", "labels": {}, "future": 1} == metadata.replace(labels={}).dump()
    assert {"name": "web", "labels": {"a": "b"}, "future": 1} == metadata.dump()


def test_other_backends_are_another_rule() -> None:
    """The same number of backends in another order is a change."""
    rule = Rule.model_validate({"backendRefs": [{"name": "a"}, {"name": "b"}]})
    turned = rule.with_backends(list(reversed(rule.backends)))

    assert ["b", "a"] == [ref.name for ref in turned.backends]
    assert ["a", "b"] == [ref.name for ref in rule.backends]
