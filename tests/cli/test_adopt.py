"""`adopt`: unnamed look-alikes are shown with the reason, and the chosen one is the plugin's from then on; D7, D30."""

import json
import sys
from typing import Any

import click
import pytest
from tests.cli.town import Town
from tests.service.world import LEDGER, header_step, route, rule

from rollouts_gwapi_plugin.cli.connection import SECONDS, Connection
from rollouts_gwapi_plugin.kube.deadline import Deadline, Timing

PREFIX = {"type": "PathPrefix", "value": "/"}


def matches(value: str = "1") -> list[dict[str, Any]]:
    """Make the matches of a rule of the step `canary`, or of none with another value."""
    return [{"path": PREFIX, "headers": [{"name": "X-Test", "value": value}]}]


@pytest.fixture
def old(town: Town) -> Town:
    """Let the route have rules of an older plugin: without names, on no record."""
    town.shop.managed, town.shop.steps = ["canary"], [{"setHeaderRoute": header_step("canary")}, {"setWeight": 30}]
    town.shop.status["currentStepIndex"] = 1
    town.apply()
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "c", "port": 80}}}
    town.api.update(
        route(
            rule("s100 c0"),
            rule("c1", matches=matches()),
            rule("c1", matches=matches("other")),
            rule("c1", name="mine", matches=matches()),
            rule("s100 c0", matches=[{"path": {"type": "PathPrefix", "value": "/m"}}], filters=[mirror]),
        )
    )
    return town


CHOICE = ("adopt", "web", "--route", "HTTPRoute/web", "--rule", "1", "--managed-route", "canary")


def test_what_looks_alike(old: Town) -> None:
    """Unnamed rules with only the canary, or a mirror to it, are shown with why and with the command to adopt them."""
    found = old.json("adopt", "web")

    assert [(one["rule"], one["purpose"], one["likely"]) for one in found] == [
        (1, "header", True),
        (2, "header", False),
        (4, "mirror", False),
    ]
    assert found[0]["why"] == "only the canary c is behind it; it has the headers of setHeaderRoute canary"
    text = old.run("adopt", "web")[1]
    assert "  likely: only the canary c is behind it" in text
    assert "  matches path PathPrefix /, header X-Test=1\n" in text
    assert "rollouts-gwapi-plugin adopt -n shop web --route HTTPRoute/web --rule 1 --managed-route canary\n" in text
    assert old.writes() == []


def test_nothing_looks_alike(town: Town) -> None:
    """A route of the user's alone has nothing to adopt."""
    code, text, _ = town.run("adopt", "web")

    assert (code, text) == (0, "Rollout shop/web: no rule looks like the plugin's without being known as such\n")


def test_an_adopted_rule_is_removed_with_the_others(old: Town) -> None:
    """RemoveManagedRoutes takes exactly the adopted rule; the other look-alikes stay (D16)."""
    code, text, _ = old.run(*CHOICE, "--yes")

    assert code == 0
    assert f"on record in ConfigMap shop/{LEDGER} as managed route canary" in text
    assert old.writes() == ["create configmaps"]

    old.shop.remove()

    rules = old.api.read("HTTPRoute", "shop", "web")["spec"]["rules"]
    values = [one["matches"][0].get("headers", [{}])[0].get("value") for one in rules]
    assert values == [None, "other", "1", None]
    assert rules[2]["name"] == "mine"


def test_an_adopted_rule_is_kept_while_steps_ask_for_it(old: Town) -> None:
    """The next SetWeight finds the step's rule in the adopted one, and makes no second."""
    old.api.update(route(rule("s100 c0"), rule("c1", matches=matches())))
    old.run(*CHOICE, "--yes")

    old.shop.weight(30)

    assert old.shop.rules() == ["s=70 c=30", "c=1"]
    assert old.json("adopt", "web") == []


def test_a_mirror_rule(old: Town) -> None:
    """A mirror rule is recorded as one."""
    old.run("adopt", "web", "--route", "httproutes/web", "--rule", "4", "--managed-route", "shadow", "-y")

    entry = json.loads(old.shop.ledger()["httpManagedMirrorRoutes"])["rollouts"]["shop/web"]["routes"]["web"]
    assert list(entry) == ["shadow"]
    assert [one["rule"] for one in old.json("adopt", "web")] == [1, 2]


def test_two_rules_of_one_managed_route(old: Town) -> None:
    """Each adopted rule has a mark of its own, and what was recorded before stays."""
    old.run(*CHOICE, "-y")
    old.run("adopt", "web", "--route", "HTTPRoute/web", "--rule", "2", "--managed-route", "canary", "-y")

    entry = json.loads(old.shop.ledger()["httpManagedHeaderRoutes"])["rollouts"]["shop/web"]["routes"]["web"]
    assert [one["name"] for one in entry["canary"]["rules"]] == ["canary", "canary-1"]
    assert [one["rule"] for one in old.json("adopt", "web")] == [4]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"--rule": "0"}, "rule 0 does not look like the plugin's: it has no name, and its backends are s, c"),
        ({"--rule": "3"}, "rule 3 does not look like the plugin's: it bears the name mine"),
        ({"--rule": "9"}, "HTTPRoute shop/web has 5 rules; there is none with index 9"),
        ({"--route": "HTTPRoute/absent"}, "is none of the Rollout's routes: HTTPRoute/web"),
    ],
)
def test_a_wrong_choice(old: Town, change: dict[str, str], text: str) -> None:
    """What does not look like the plugin's can't be adopted, by mistake or otherwise."""
    words = list(CHOICE)
    for option, value in change.items():
        words[words.index(option) + 1] = value

    code, _, complaint = old.run(*words, "-y")

    assert code == 1
    assert text in complaint
    assert complaint.count("\n") == 1
    assert old.writes() == []


def test_an_adopted_rule_is_not_adopted_twice(old: Town) -> None:
    """What is known already is said to be."""
    old.run(*CHOICE, "-y")

    assert "rule 1 is managed route canary already (known by record)" in old.run(*CHOICE, "-y")[2]


def test_nothing_is_recorded_unasked(old: Town) -> None:
    """Without a terminal and without --yes nothing is written; half a choice is a wrong command line."""
    code, _, complaint = old.run(*CHOICE)

    assert (code, complaint) == (1, "error: nothing was recorded: there is no terminal to ask on; add --yes\n")
    assert old.run("adopt", "web", "--rule", "1")[0] == 2
    assert old.writes() == []


def test_a_record_that_cannot_be_written(old: Town) -> None:
    """Missing rights are one line with the rule to add."""
    with old.api.deny("create", "configmaps"):
        code, _, complaint = old.run(*CHOICE, "-y")

    assert code == 1
    assert 'resources: ["configmaps"], verbs: ["create"]' in complaint


def test_a_rule_that_changes_meanwhile(old: Town) -> None:
    """A rule that somebody edits between look and record is not claimed, and that is told."""

    def edit(request: Any) -> None:
        if request.plural == "configmaps":
            old.api.edit("HTTPRoute", "shop", "web", lambda one: one["spec"]["rules"][1].update(matches=matches("new")))

    old.api.before_write(edit)

    code, _, complaint = old.run(*CHOICE, "-y")

    assert code == 1
    assert "rule 1 was changed meanwhile" in complaint
    assert 1 in [one["rule"] for one in old.json("adopt", "web")]


def test_another_look_alike_comes_meanwhile(old: Town) -> None:
    """A rule of somebody else that looks alike, too, takes nothing from the success."""

    def add(request: Any) -> None:
        if request.plural == "configmaps":
            more = rule("c1", matches=matches("another"))
            old.api.edit("HTTPRoute", "shop", "web", lambda one: one["spec"]["rules"].append(more))

    old.api.before_write(add)

    code, _, complaint = old.run(*CHOICE, "-y")

    assert (code, complaint) == (0, "")
    assert [one["rule"] for one in old.json("adopt", "web")] == [2, 4, 5]


def test_a_person_takes_time(old: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time until the answer is not taken from that of the writes after it."""
    now = [0.0]
    timing = Timing(clock=lambda: now[0])

    def answer(*_: Any, **__: Any) -> bool:
        now[0] += 2 * SECONDS
        return True

    monkeypatch.setattr(Connection, "deadline", lambda _: Deadline.after(SECONDS, timing=timing))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", answer)

    code, text, complaint = old.run(*CHOICE)

    assert (code, complaint) == (0, "")
    assert "on record in ConfigMap" in text
