"""`cleanup`: nothing of a Rollout is left, nothing of anybody else is touched; D6, D29, D33."""

import copy
import json
import sys
from typing import Any

import pytest
from tests.cli.town import Town
from tests.service.world import LEDGER, Shop, header_step, route, rule, service

from rollouts_gwapi_plugin.routes.label import ANNOTATION

SHADOW = {"path": {"type": "PathPrefix", "value": "/shadow"}}


def told(value: Any) -> Any:
    """Return what a user wrote of a route: its spec, labels and annotations."""
    return value["spec"], value["metadata"].get("labels"), value["metadata"].get("annotations")


def stand(town: Town) -> Any:
    """Let everything of the Rollout stand on the route; return the route as it was before."""
    before = town.api.read("HTTPRoute", "shop", "web")
    shop = town.shop
    shop.managed, shop.steps = ["canary", "shadow"], [{"setHeaderRoute": header_step("canary")}]
    town.apply()
    town.api.create(service("b"))
    shop.header("canary")
    shop.mirror("shadow", {"path": {"prefix": "/shadow"}})
    shop.weight(30, b=5)
    assert len(town.api.read("HTTPRoute", "shop", "web")["spec"]["rules"]) == 4
    return before


@pytest.mark.parametrize("gone", [False, True])
def test_without_a_trace(town: Town, *, gone: bool) -> None:
    """Route and namespace are as they were before the first call, whether the Rollout is there or deleted."""
    before = stand(town)
    if gone:
        town.api.delete("Rollout", "shop", "web")

    code, text, _ = town.run("cleanup", "web", "--weights", "--yes")

    assert code == 0
    assert told(town.api.read("HTTPRoute", "shop", "web")) == told(before)
    assert town.api.find("ConfigMap", "shop", LEDGER) is None
    assert text.endswith(f"ConfigMap shop/{LEDGER} was empty and is deleted\nRollout shop/web: all is given back\n")
    assert ("names the plugin: its next reconcile puts things back" in text) != gone
    assert "nothing of it was found" in town.run("cleanup", "web", "--weights", "--yes")[1]


def test_weights_stay_unless_asked_for(town: Town) -> None:
    """Without --weights the live split stays, experiments and managed rules go."""
    stand(town)

    assert town.run("cleanup", "web", "-y")[0] == 0
    assert town.shop.rules() == ["s=65 c=30"]


def test_the_route_is_written_before_its_record(town: Town) -> None:
    """Removing is route first, then record, then the empty ConfigMap: a crash leaves no rule without a record (D6)."""
    stand(town)
    town.api.requests.clear()

    town.run("cleanup", "web", "-y")

    assert town.writes() == ["update httproutes", "update configmaps", "delete configmaps"]


def test_a_conflict_is_met_by_computing_again(town: Town) -> None:
    """A rule that somebody adds between read and write survives."""
    stand(town)
    edits = iter(
        [lambda: town.api.edit("HTTPRoute", "shop", "web", lambda one: one["spec"]["rules"].insert(0, rule("x1")))]
    )

    def in_between(request: Any) -> None:
        if (request.verb, request.plural) == ("update", "httproutes"):
            next(edits, lambda: None)()

    town.api.before_write(in_between)

    assert town.run("cleanup", "web", "-y", "--weights")[0] == 0
    assert town.shop.rules() == ["x=1", "s=100 c=0"]


@pytest.mark.parametrize("options", [("--dry-run",), ()])
def test_nothing_is_written_unasked(town: Town, options: tuple[str, ...]) -> None:
    """A dry run, and a run without a terminal and without --yes, show the diff and write nothing."""
    stand(town)
    town.api.requests.clear()

    code, text, complaint = town.run("cleanup", "web", "--weights", *options)

    assert town.writes() == []
    assert "-  - backendRefs:" in text
    assert "+      weight: 100" in text
    assert code == (0 if options else 1)
    assert complaint == (
        "" if options else "error: nothing was written: there is no terminal to ask on; add --yes, or --dry-run\n"
    )


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 130)])
def test_a_person_is_asked(town: Town, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    """On a terminal the answer decides."""
    stand(town)

    class Terminal:
        """Somebody who types one line."""

        def isatty(self) -> bool:
            """Be a terminal."""
            return True

        def readline(self, *_: Any) -> str:
            """Type the answer."""
            return answer

        def fileno(self) -> int:
            """Have no descriptor."""
            raise OSError

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _text: answer.strip())

    assert town.run("cleanup", "web")[0] == code
    assert (len(town.shop.rules()) == 1) == (code == 0)


def test_only_what_is_gone(town: Town) -> None:
    """--all-deleted gives back what no living Rollout has, on a route that a living one shares."""
    town.api.update(route(rule("s100 c0"), rule("t100 d0")))
    web = town.shop
    web.managed = ["canary"]
    town.apply()
    web.header("canary")
    other = Shop(
        town.api,
        web.folder,
        managed=["beta"],
        metadata={"name": "api", "uid": "uid-api"},
        canary={"stableService": "t", "canaryService": "d"},
    )
    other.header("beta", value="2")
    other.weight(20)

    code, _, _ = town.run("cleanup", "--all-deleted", "--weights", "-y")

    assert code == 0
    assert web.rules() == ["s=100 c=0", "t=100 d=0", "canary: c=1"]
    assert "shop/web" in json.loads(web.ledger()["httpManagedHeaderRoutes"])["rollouts"]
    assert town.api.read("HTTPRoute", "shop", "web")["metadata"]["annotations"] == {ANNOTATION: "shop/web"}
    assert "no Rollout that is gone has left anything behind" in town.run("cleanup", "--all-deleted")[1]


def test_a_route_that_left_the_configuration(town: Town) -> None:
    """What only the annotation tells of is given back, too (D29)."""
    town.shop.weight(30)
    town.api.create(route(rule("s100 c0"), name="next"))
    town.shop.config = {"httpRoute": "next"}
    town.apply()

    assert town.run("cleanup", "web", "--weights", "-y")[0] == 0
    assert town.shop.rules() == ["s=100 c=0"]
    assert town.api.read("HTTPRoute", "shop", "web")["metadata"].get("labels") is None


def test_services_that_nobody_knows(town: Town) -> None:
    """The weights of a gone Rollout without managed rules need its Services' names, which may be given."""
    town.shop.weight(30)
    town.api.delete("Rollout", "shop", "web")

    code, _, complaint = town.run("cleanup", "web", "--weights", "-y")
    assert code == 1
    assert "name them by --stable and --canary" in complaint

    assert town.run("cleanup", "shop/web", "--weights", "-y", "--stable", "s", "--canary", "c")[0] == 0
    assert town.shop.rules() == ["s=100 c=0"]


def test_one_of_unknown_services_does_not_keep_others(town: Town) -> None:
    """--all-deleted gives back what it can: the weights of one Rollout stay, the exit code is 1, the other is done."""
    town.api.create(route(rule("t100 d0"), name="other"))
    other = Shop(
        town.api,
        town.shop.folder,
        config={"httpRoute": "other"},
        metadata={"name": "api", "uid": "uid-api"},
        canary={"stableService": "t", "canaryService": "d"},
    )
    other.weight(40)
    stand(town)
    town.api.delete("Rollout", "shop", "web")

    code, text, _ = town.run("cleanup", "--all-deleted", "--weights", "-y")

    assert code == 1
    assert "Rollout shop/api is gone and its Services are not known, so its weights are left as they are" in text
    assert town.shop.rules() == ["s=100 c=0"]
    assert other.rules("other") == ["t=60 d=40"]
    assert town.api.read("HTTPRoute", "shop", "other")["metadata"].get("labels") is None


def test_all_that_do_not_name_the_plugin_any_more(town: Town) -> None:
    """--all-deleted is for Rollouts without the plugin, too, and knows their Services without any managed rule."""
    town.shop.weight(30)
    town.shop.plugins = {}
    town.apply()

    assert town.run("cleanup", "--all-deleted", "--weights", "-y")[0] == 0
    assert town.shop.rules() == ["s=100 c=0"]


def test_a_plugin_of_another_name_may_be_this_one(town: Town) -> None:
    """A living Rollout whose plugin may be this one under another name is not gone; --plugin-name decides."""
    town.shop.weight(30)
    town.shop.plugins = {"acme/router": town.shop.config}
    town.apply()

    nothing = (
        "no Rollout that is gone has left anything behind on routes of namespace shop;"
        " --route-namespace names another\n"
    )
    assert town.run("cleanup", "--all-deleted", "-y")[1] == nothing
    assert town.run("cleanup", "--all-deleted", "-y", "--plugin-name", "acme/router")[1] == nothing
    assert town.api.read("HTTPRoute", "shop", "web")["metadata"]["annotations"] == {ANNOTATION: "shop/web"}
    assert town.run("cleanup", "--all-deleted", "-y", "--plugin-name", "another/name")[0] == 0
    assert town.api.read("HTTPRoute", "shop", "web")["metadata"].get("annotations") is None


def test_a_rollout_that_does_not_name_the_plugin_any_more(town: Town) -> None:
    """Taking the plugin out of a Rollout first is the way to clean up for good: its Services are known still."""
    before = stand(town)
    town.shop.plugins = {}
    town.apply()

    code, text, _ = town.run("cleanup", "web", "--weights", "-y")

    assert code == 0
    assert "next reconcile" not in text
    assert told(town.api.read("HTTPRoute", "shop", "web")) == told(before)


def test_a_label_that_was_switched_off(town: Town) -> None:
    """The label goes by the annotation, whatever the configuration says today; a user's label stays."""
    town.shop.weight(30)
    town.shop.config = {"httpRoute": "web", "disableInProgressLabel": True}
    town.apply()

    assert town.run("cleanup", "web", "-y")[0] == 0
    assert town.api.read("HTTPRoute", "shop", "web")["metadata"].get("labels") is None


def test_a_route_that_does_not_exist(town: Town) -> None:
    """The record of a deleted route goes, and the ConfigMap with it."""
    stand(town)
    town.api.delete("HTTPRoute", "shop", "web")
    town.api.create(route(rule("s100 c0"), name="next"))
    town.shop.config = {"httpRoute": "next"}
    town.apply()

    code, text, _ = town.run("cleanup", "web", "-y")

    assert code == 0
    assert "the route does not exist; its record goes" in text
    assert town.api.find("ConfigMap", "shop", LEDGER) is None


def test_a_record_that_cannot_be_read(town: Town) -> None:
    """Rules are known by their names then; the record is left, told, and the exit code is 1."""
    stand(town)
    town.api.edit("ConfigMap", "shop", LEDGER, lambda one: one["data"].update(httpManagedHeaderRoutes="{"))

    code, text, _ = town.run("cleanup", "web", "-y", "--weights")

    assert code == 1
    assert f"error: ConfigMap shop/{LEDGER} is left as it is" in text
    assert [line for line in town.shop.rules() if line.startswith(("canary", "shadow"))] == []


def test_a_record_of_which_one_kind_cannot_be_read(town: Town) -> None:
    """The kind that is asked for last can be read; what is wrong with the other is told all the same."""
    stand(town)
    town.api.create(route(rule("s100 c0"), name="rpc", kind="GRPCRoute"))
    town.configure(config={"httpRoute": "web", "grpcRoute": "rpc"})
    town.api.edit("ConfigMap", "shop", LEDGER, lambda one: one["data"].update(httpManagedHeaderRoutes="{"))

    (status,) = town.json("status")
    code, text, _ = town.run("cleanup", "web", "-y", "--weights")

    assert "httpManagedHeaderRoutes" in status["ledgerError"]
    assert code == 1
    assert f"error: ConfigMap shop/{LEDGER} is left as it is" in text


def test_an_edited_rule_of_a_gone_rollout(town: Town) -> None:
    """A rule that bears a recorded name and has become something else is left, and named."""
    town.shop.managed = ["canary"]
    town.apply()
    town.shop.header("canary")
    town.api.delete("Rollout", "shop", "web")
    town.api.edit(
        "HTTPRoute", "shop", "web", lambda one: one["spec"]["rules"][1].update(backendRefs=[{"name": "x", "port": 80}])
    )

    code, text, _ = town.run("cleanup", "web", "-y")

    assert code == 0
    assert "rule 1 is left: it bears the recorded name canary, but was changed" in text
    assert town.shop.rules() == ["s=100 c=0", "canary: x=1"]


def test_a_route_that_nothing_tells_of(town: Town) -> None:
    """A route may be named; a name that is none is an error."""
    other = copy.deepcopy(route(rule("s40 c60"), name="other"))
    town.api.create(other)

    assert town.run("cleanup", "web", "--weights", "-y", "--route", "httproutes/other")[0] == 0
    assert town.shop.rules("other") == ["s=100 c=0"]
    code, _, complaint = town.run("cleanup", "web", "-y", "--route", "other")
    assert (code, complaint[:40]) == (1, "error: --route 'other': KIND/NAME is exp")


def test_a_config_map_of_somebody_else_stays(town: Town) -> None:
    """A ConfigMap that the plugin did not make is emptied of records, and stays."""
    town.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LEDGER, "namespace": "shop"}})
    stand(town)

    town.run("cleanup", "web", "-y")

    assert town.api.read("ConfigMap", "shop", LEDGER).get("data") in (None, {})


def test_for_machines(town: Town) -> None:
    """JSON says what was planned, written and deleted."""
    stand(town)

    (found,) = town.json("cleanup", "web", "-y")

    assert (found["rollout"], found["written"], found["configMapDeleted"]) == ("shop/web", True, True)
    assert found["errors"] == []
    assert [(one["kind"], one["name"], one["dropsRecord"], bool(one["diff"])) for one in found["routes"]] == [
        ("HTTPRoute", "web", True, True)
    ]


@pytest.mark.parametrize(("verb", "plural"), [("list", "httproutes"), ("list", "configmaps"), ("get", "rollouts")])
def test_no_answer_does_not_mean_nothing(town: Town, monkeypatch: pytest.MonkeyPatch, verb: str, plural: str) -> None:
    """What is not known for want of an answer is an error, never taken for absent: --all-deleted writes nothing."""
    monkeypatch.setattr("rollouts_gwapi_plugin.kube.call.FIRST_BACKOFF", 0.0)
    stand(town)
    town.api.delete("Rollout", "shop", "web")
    town.api.requests.clear()
    town.api.faults.add(verb=verb, plural=plural, status=503, times=None)

    code, text, complaint = town.run("cleanup", "--all-deleted", "-y")

    assert (code, text, town.writes()) == (1, "", [])
    assert complaint.splitlines()[-1].startswith(f"error: {verb} ")


def test_an_empty_record_that_may_be_there(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the ConfigMap can't be asked for any more, it is not said that nothing is left."""
    monkeypatch.setattr("rollouts_gwapi_plugin.kube.call.FIRST_BACKOFF", 0.0)
    reads = iter([False])
    town.api.faults.add(
        lambda one: (one.verb, one.plural) == ("get", "configmaps") and next(reads, True), status=503, times=None
    )

    code, text, _ = town.run("cleanup", "web", "-y")

    assert code == 1
    assert f"ConfigMap shop/{LEDGER} can't be read" in text


@pytest.mark.parametrize("plural", ["httproutes", "configmaps"])
def test_without_the_right_to_list(town: Town, plural: str) -> None:
    """What the record and the usual ConfigMap tell of is given back all the same."""
    before = stand(town)
    town.api.delete("Rollout", "shop", "web")

    with town.api.deny("list", plural):
        assert town.run("cleanup", "--all-deleted", "--weights", "-y")[0] == 0

    assert told(town.api.read("HTTPRoute", "shop", "web")) == told(before)


@pytest.mark.parametrize("arguments", [(), ("web", "--all-deleted"), ("web", "--label", "key")])
def test_a_wrong_command_line(town: Town, arguments: tuple[str, ...]) -> None:
    """One Rollout or all that are gone; a label has key and value."""
    assert town.run("cleanup", *arguments)[0] == 2


@pytest.mark.parametrize("name", ["a/b/c", "/web"])
def test_names_that_are_none(town: Town, name: str) -> None:
    """A Rollout is named by NAME or NAMESPACE/NAME."""
    code, _, complaint = town.run("cleanup", name)
    assert (code, complaint.count("\n")) == (1, 1)
