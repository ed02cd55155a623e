"""What a route's status says: per parent and controller, by generation, for references that can be ours (D19)."""

from typing import Any

import pytest
from tests.service.world import route, rule

from rollouts_gwapi_plugin.model.routes import parse_route
from rollouts_gwapi_plugin.routes.status import Standing, Verdict, status_verdict

USABLE, BEHIND, REFUSED = Standing.USABLE, Standing.BEHIND, Standing.REFUSED
NAMES = frozenset({"s", "c"})
GENERATION = 5


def condition(
    type_: str, status: str = "True", generation: int | None = GENERATION, message: str = ""
) -> dict[str, Any]:
    """Make a condition."""
    observed = {} if generation is None else {"observedGeneration": generation}
    return {"type": type_, "status": status, "reason": "Test", "message": message, **observed}


def entry(*conditions: Any, controller: str = "example.com/gw", **parent: Any) -> dict[str, Any]:
    """Make an entry of status.parents."""
    return {"parentRef": {"name": "gw", **parent}, "controllerName": controller, "conditions": list(conditions)}


def verdict(*parents: Any, rules: str = "s c", spec_parents: Any = ({"name": "gw"},), **fields: Any) -> Verdict:
    """Return what is made of a status, on a rule with these fields."""
    raw = route(rule(rules, **fields))
    raw["metadata"]["generation"] = GENERATION
    raw["spec"]["parentRefs"] = None if spec_parents is None else list(spec_parents)
    raw["status"] = {"parents": list(parents)}
    return status_verdict(parse_route(raw), NAMES)


ACCEPTED = condition("Accepted")


@pytest.mark.parametrize(
    ("conditions", "standing"),
    [
        ([], USABLE),
        ([ACCEPTED], USABLE),
        ([condition("Accepted", generation=GENERATION + 1)], USABLE),
        ([condition("Accepted", generation=None)], USABLE),
        ([condition("Accepted", generation=GENERATION - 1)], BEHIND),
        # A newer generation may turn a refusal over.
        ([condition("Accepted", "False", GENERATION - 1)], BEHIND),
        ([condition("Accepted", "False")], REFUSED),
        ([condition("Accepted", "False", None)], REFUSED),
        # Neither yes nor no is not yet.
        ([condition("Accepted", "Unknown")], BEHIND),
        ([{"type": "Accepted"}], BEHIND),
        ([ACCEPTED, condition("ResolvedRefs", "Unknown")], USABLE),
        ([ACCEPTED, condition("ResolvedRefs", generation=GENERATION - 1)], BEHIND),
        ([ACCEPTED, condition("ResolvedRefs", "False")], REFUSED),
        ([ACCEPTED, condition("PartiallyInvalid", "True")], REFUSED),
        ([ACCEPTED, condition("PartiallyInvalid", "False")], USABLE),
        # The old rules are still served: Accepted at an old generation.
        ([condition("Accepted", generation=GENERATION - 1), condition("PartiallyInvalid", "True")], REFUSED),
        ([ACCEPTED, condition("Programmed", "False")], USABLE),
        (["no object"], USABLE),
    ],
)
def test_conditions_of_one_parent(conditions: list[Any], standing: Standing) -> None:
    """Accepted, ResolvedRefs and PartiallyInvalid count, at the route's generation."""
    assert standing is verdict(entry(*conditions)).standing


def test_nothing_reported_is_usable() -> None:
    """No status, no parents, no conditions: implementations that write none do not block a rollout (F03)."""
    raw = route(rule("s c"))
    statuses: list[Any] = [{}, {"status": None}, {"status": {}}, {"status": {"parents": None}}]
    for status in statuses:
        assert USABLE is status_verdict(parse_route({**raw, **status}), NAMES).standing
    assert USABLE is verdict("no object").standing


@pytest.mark.parametrize(
    ("spec_parents", "reported", "counts"),
    [
        (({"name": "gw"},), {"name": "gw"}, True),
        (({"name": "gw"},), {"name": "gw", "namespace": "shop", "kind": "Gateway"}, True),
        (({"name": "gw"},), {"name": "gw", "sectionName": None, "group": None}, True),
        (({"name": "gw"},), {"name": "former"}, False),
        (({"name": "gw"},), {"name": "gw", "namespace": "other"}, False),
        (({"name": "gw"},), {"name": "gw", "kind": "Service", "group": ""}, False),
        (({"name": "gw", "sectionName": "http"},), {"name": "gw", "sectionName": "https"}, False),
        (({"name": "gw", "port": 80},), {"name": "gw", "port": 80}, True),
        (None, {"name": "gw"}, False),
    ],
)
def test_only_parents_that_the_spec_has_count(spec_parents: Any, reported: Any, counts: bool) -> None:  # noqa: FBT001
    """An entry of another parent is left over; defaults and nulls make no other parent."""
    found = verdict(entry(condition("Accepted", "False"), **reported), spec_parents=spec_parents)

    assert (REFUSED if counts else USABLE) is found.standing


def test_the_worst_of_all_parents_and_controllers_counts() -> None:
    """One gateway that is behind, or refuses, is enough; the text names it."""
    spec_parents = ({"name": "gw"}, {"name": "second", "sectionName": "http"})
    good = entry(ACCEPTED)
    behind = entry(condition("Accepted", generation=4), controller="example.com/other")
    bad = entry(condition("Accepted", "False", message="no regex"), name="second", sectionName="http")

    assert BEHIND is verdict(good, behind, spec_parents=spec_parents).standing
    assert "Accepted is of generation 4, the route is at 5" in verdict(good, behind).text
    found = verdict(behind, bad, good, spec_parents=spec_parents)
    assert REFUSED is found.standing
    assert "HTTPRoute shop/web: parent second/http (example.com/gw): Accepted=False, Test: no regex" == found.text


def test_an_entry_without_names_is_told_all_the_same() -> None:
    """A controller that leaves out half of it."""
    raw = {"parentRef": {"name": "gw"}, "conditions": [{"type": "Accepted", "status": "False"}]}

    assert "(unknown controller): Accepted=False, no reason: " in verdict(raw).text


@pytest.mark.parametrize(
    ("message", "rules", "standing"),
    [
        ("Service shop/c not found", "s c x", REFUSED),
        ("backend 'c' has no port 80.", "s c x", REFUSED),
        ("c.shop.svc.cluster.local can't be resolved", "s c x", REFUSED),
        ("Service shop/x not found", "s c x", USABLE),
        ("Services x and c not found", "s c x", REFUSED),
        # It names nobody: ours, unless others are there who can be meant.
        ("a reference is broken", "s c", REFUSED),
        ("a reference is broken", "s c x", USABLE),
        ("", "s c", REFUSED),
        ("canary and stable are fine", "s c x", USABLE),
    ],
)
def test_unresolved_references_of_others_do_not_count(message: str, rules: str, standing: Standing) -> None:
    """A message that names a Service is about that Service."""
    found = verdict(entry(ACCEPTED, condition("ResolvedRefs", "False", message=message)), rules=rules)

    assert standing is found.standing


@pytest.mark.parametrize(("missing", "standing"), [("shadow", USABLE), ("c", REFUSED)])
def test_an_unresolved_mirror_of_the_users_does_not_count(missing: str, standing: Standing) -> None:
    """A rollout does not wait for a Service that only the user mirrors to."""
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "shadow", "port": 80}}}
    report = entry(ACCEPTED, condition("ResolvedRefs", "False", message=f"rule 0: service shop/{missing} not found."))

    assert standing is verdict(report, rules="s c", filters=[mirror]).standing


def test_server_text_is_cut() -> None:
    """A controller's message can be a book."""
    assert len(verdict(entry(condition("Accepted", "False", message="x" * 10_000))).text) < 500
