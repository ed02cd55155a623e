"""What the controller asks for becomes the stage's name and each cohort's shares."""

from typing import Any

from rollouts_gwapi_plugin.cli.demo.asked import Asked, Expectation, Traffic
from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.rollout import RolloutReader
from rollouts_gwapi_plugin.embedded.host.sequence import Plan

MATCH = [{"headerName": "x", "headerValue": {"exact": "1"}}]
ROLLOUT = RolloutReader(
    {
        "metadata": {},
        "spec": {
            "strategy": {
                "canary": {
                    "stableService": "stable",
                    "canaryService": "canary",
                    "trafficRouting": {"maxTrafficWeight": 1000},
                }
            }
        },
    }
)


def weight(desired: int, **others: int) -> Call:
    """Return a call of SetWeight."""
    destinations = [{"serviceName": name, "weight": part} for name, part in others.items()]
    return Call("SetWeight", {"desiredWeight": desired, "additionalDestinations": destinations})


def header(name: str, match: list[Any] | None = None) -> Call:
    """Return a call of SetHeaderRoute."""
    return Call("SetHeaderRoute", {"setHeaderRoute": {"name": name, "match": match}})


def mirror(name: str, match: list[Any] | None = None) -> Call:
    """Return a call of SetMirrorRoute."""
    return Call("SetMirrorRoute", {"setMirrorRoute": {"name": name, "match": match}})


def after(*calls: Call, start: Traffic | None = None) -> Traffic:
    """Return the state after a reconcile with these calls."""
    return (start or Traffic()).after(Plan(actions=calls))


def test_names_of_stages() -> None:
    """A stage is called by its weight, a running experiment and the managed routes that stand."""
    both = after(header("testers", MATCH), mirror("shadow", MATCH), weight(20))

    assert after(weight(0)).name == "weight 0"
    assert both.name == "weight 20, testers, shadow"
    assert after(header("testers", MATCH), start=both).name == "weight 20, shadow, testers"
    assert after(header("testers"), start=both).name == "weight 20, shadow"
    assert after(Call("RemoveManagedRoutes", {}), weight(0, base=5), start=both).name == "weight 0, experiment"
    assert [one.clean for one in (after(weight(50)), both, after(weight(0, base=5)))] == [True, False, False]
    assert after(Call("UpdateHash", {}), Call("VerifyWeight", {}), start=both) == both


def test_shares_by_pods() -> None:
    """Services that lead to the same pods count together; what gets nothing is left out."""
    traffic = after(weight(0, base=50, candidate=250))
    behind = {"stable": "v1", "canary": "v1", "base": "baseline", "candidate": "v2"}

    assert traffic.weights(ROLLOUT) == {"stable": 700, "canary": 0, "base": 50, "candidate": 250}
    assert traffic.shares(ROLLOUT, behind.__getitem__) == {"v1": 0.7, "baseline": 0.05, "v2": 0.25}
    assert after(weight(1000)).shares(ROLLOUT, {"stable": "v1", "canary": "v2"}.__getitem__) == {"v2": 1.0}


def test_expectations() -> None:
    """An example's word goes before the weights; where it says nothing of copies there are to be none."""
    expectation = Expectation(shares={"a": {"v2": 1.0}}, copies={"b": {"v2": 0.3}})

    assert expectation.stages == {"a", "b"}
    assert expectation.asked("a", {"v1": 1.0}) == Asked({"v2": 1.0}, {"v2": 0.0})
    assert expectation.asked("b", {"v1": 1.0}) == Asked({"v1": 1.0}, {"v2": 0.3})
    assert Expectation().asked("a", {"v1": 1.0}) == Asked({"v1": 1.0})
