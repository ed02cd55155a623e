"""`doctor`: each thing that a Rollout needs is found where it is missing; F17, C114, C116, C131, C132, D7, D18, D29."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.town import Town
from tests.service.world import LEDGER, header_step, route, rule

from rollouts_gwapi_plugin.cli.connection import SECONDS, Connection
from rollouts_gwapi_plugin.cli.main import run
from rollouts_gwapi_plugin.kube.deadline import Deadline, Timing
from rollouts_gwapi_plugin.kube.discovery import Discovery

DROPS = " drops the entry and keeps the rule"


def test_all_in_order(sound: Town) -> None:
    """Where nothing is missing there is neither error nor warning, and nothing was written."""
    sound.api.requests.clear()

    code, text, _ = sound.run("doctor", "--strict")
    found = sound.found()

    assert (code, sound.bad()) == (0, [])
    assert [line.partition(":")[0] for line in found] == [
        "ok connection",
        "ok version",
        "ok fields",
        "ok installation",
        "ok rights",
        "ok pair",
        "ok gateways",
        "ok steps",
    ]
    assert text.endswith("errors: 0, warnings: 0\n")
    assert sound.writes() == []


Change = Callable[[Any], Any]


def edit_route(**fields: Any) -> Change:
    """Return a change of the route's spec."""
    return lambda town: town.api.edit("HTTPRoute", "shop", "web", lambda one: one["spec"].update(fields))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda town: town.api.delete("HTTPRoute", "shop", "web"), "error route: get HTTPRoute shop/web: HTTPRoute"),
        (edit_route(rules=[rule("s100 x")]), "error pair: HTTPRoute shop/web: backendRef was not found"),
        (lambda town: town.api.delete("Service", "shop", "c"), "error services: canary Service: get Service shop/c"),
        (edit_route(rules=[rule("s100 c0"), rule("x1")]), "warning gateways: HTTPRoute shop/web: parent gw (example."),
        (lambda town: town.configure(config={}), "error configuration: No routes configured"),
        (lambda town: town.configure(config={"httpRoute": "web", "a": 1}), "warning configuration: a is no key that"),
        (
            lambda town: town.configure(config={"httpRoute": "web", "ruleName": "r"}),
            "error pair: HTTPRoute shop/web: ru",
        ),
        (
            lambda town: town.configure(
                config={"httpRoutes": [{"name": "web"}]},
                managed=["r"],
                steps=[{"setHeaderRoute": header_step("r")}],
            ),
            "warning steps: no configured route takes the step of managed route r; it needs an HTTPRoute or GRPC",
        ),
        (
            lambda town: town.api.delete("Rollout", "shop", "web"),
            "warning Rollouts: no Rollout in namespace shop names",
        ),
    ],
)
def test_what_is_missing(sound: Town, change: Change, text: str) -> None:
    """Each fault in routes, Services and configuration is found, by itself."""
    change(sound)

    assert [line for line in sound.bad() if line.startswith(text)]


def test_a_gateway_that_refuses(sound: Town) -> None:
    """A route that a gateway does not accept blocks every rollout, so it is an error."""
    web = sound.api.read("HTTPRoute", "shop", "web")
    web["status"]["parents"][0]["conditions"][0].update(status="False", reason="NotAllowedByListeners")
    sound.api.update_status(web)

    assert [line for line in sound.bad() if "Accepted=False, NotAllowedByListeners" in line]


@pytest.mark.parametrize("entry", [{"parentRef": {"name": "former"}}, {"conditions": []}])
def test_gateways_that_say_nothing(sound: Town, entry: Any) -> None:
    """An entry of a former parent, or one that does not say Accepted, is no word on the route."""
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "observedGeneration": 1}
    web = sound.api.read("HTTPRoute", "shop", "web")
    whole = {"parentRef": {"name": "gw"}, "controllerName": "example.com/gateway", "conditions": [condition]}
    sound.api.update_status({**web, "status": {"parents": [whole | entry]}})

    assert [line for line in sound.found() if " gateways: " in line] == [
        "info gateways: no gateway says anything of it, so weights count as verified once they are written"
    ]


def test_limits_are_played_on_the_live_route(sound: Town) -> None:
    """Nine rules have no room for the nine of a header step; the record of what stands is used."""
    rules = [rule("s100 c0", matches=[{"path": {"type": "PathPrefix", "value": f"/{n}"}}]) for n in range(9)]
    edit_route(rules=rules)(sound)
    sound.configure(managed=["r"], steps=[{"setHeaderRoute": header_step("r")}])

    code, text, _ = sound.run("doctor")

    assert code == 1
    assert "spec.rules: 18 needed, the Gateway API takes 16" in text


def test_a_definition_with_more_room_is_used(sound: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the installed definition takes 64 rules, the plugin uses them, and so nothing is wrong (D22)."""
    monkeypatch.setattr(Discovery, "most_items", lambda *_arguments, **_options: 64)
    rules = [rule("s100 c0", matches=[{"path": {"type": "PathPrefix", "value": f"/{n}"}}]) for n in range(9)]
    edit_route(rules=rules)(sound)
    sound.configure(managed=["r"], steps=[{"setHeaderRoute": header_step("r")}])

    assert [] == [line for line in sound.bad() if " steps: " in line]
    assert "ok steps: all can be taken; 9 rules now, at most 18 on the way" in sound.found()


def test_record(sound: Town) -> None:
    """A record that is stale, lost, forbidden, or broken is told, as bad as what it makes impossible."""
    shop = sound.shop
    sound.configure(managed=["canary"], steps=[{"setHeaderRoute": header_step("canary")}])
    shop.header("canary")
    assert [line for line in sound.found() if line.startswith("ok record") and "managed rules on record: 1" in line]

    with sound.api.deny("get", "configmaps", "shop"):
        assert [line for line in sound.bad() if line.startswith(f"error record: ConfigMap shop/{LEDGER}: get Con")]
    sound.api.edit(
        "ConfigMap", "shop", LEDGER, lambda one: one["data"].update(grpcManagedHeaderRoutes='{"version": 9}')
    )
    broken = sound.bad()
    shop.header("canary")
    assert [line for line in broken if "key grpcManagedHeaderRoutes has version 9" in line]
    (of_record,) = [line for line in broken if "record" in line]
    assert of_record.startswith("warning record: ")
    assert of_record.endswith("; no configured route is of that kind")

    sound.configure(config={"httpRoute": "web", "grpcRoute": "rpc"})
    of_kind = [line for line in sound.bad() if "key grpcManagedHeaderRoutes has version 9" in line]
    assert [line.startswith("error record: ") for line in of_kind] == [True]
    sound.configure(config={"httpRoute": "web"})

    edit_route(rules=[rule("s100 c0")])(sound)
    assert [
        line for line in sound.found() if line.startswith("info record: managed route canary of shop/web is on record")
    ]

    shop.header("canary")
    sound.api.delete("ConfigMap", "shop", LEDGER)
    assert [
        line for line in sound.found() if line.startswith("info record: rule 1 (canary) is on no record and known by")
    ]


def test_look_alikes_and_old_entries(sound: Town) -> None:
    """Unnamed rules that look like ours are told; of the Go plugin's old entries, what will become of each (D30)."""
    sound.configure(managed=["canary", "lost"], steps=[{"setHeaderRoute": header_step("canary")}])
    match = [{"headers": [{"name": "X-Test", "value": "1"}]}]
    edit_route(rules=[rule("s100 c0"), rule("c1", matches=match), rule("c1", matches=match), rule("c1")])(sound)
    old = {"canary": {"web": 1}, "lost": {"web": 0}, "foreign": {"web": 2}}
    metadata = {"name": LEDGER, "namespace": "shop"}
    data = {"httpManagedRoutes": json.dumps(old)}
    sound.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    found = sound.found()
    entry = "the Go plugin's old entry"

    assert [line for line in found if line.startswith("warning look-alike: rule 2 looks like the plugin's and is left")]
    assert [line for line in found if line.startswith("info look-alike: rule 3 looks like")]
    assert [line.partition(": ")[::2] for line in found if " old entry: " in line] == [
        ("info old entry", f"{entry} canary (rule 1) is taken over by the next call"),
        ("warning old entry", f"{entry} lost (rule 0) does not fit the rule there; the next call" + DROPS),
        ("info old entry", f"{entry} foreign (rule 2) is of no managed route of shop/web, and is left"),
    ]


def test_what_is_left_over(sound: Town) -> None:
    """Routes that left the configuration and Rollouts that are gone are warnings that name the command."""
    sound.shop.weight(30)
    sound.api.create(route(rule("s100 c0"), name="next"))
    sound.configure(config={"httpRoute": "next"})
    left = sound.bad()
    sound.api.delete("Rollout", "shop", "web")
    gone = sound.bad()

    (of_route,) = [line for line in left if line.startswith("warning left the configuration: it left the config")]
    assert "`cleanup -n shop web` gives back all but the weights" in of_route
    assert "run it when no update is under way" in of_route
    assert [line for line in gone if line.startswith("warning left over: it is gone") and "cleanup -n shop web" in line]


def test_no_cluster(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A cluster that can't be reached is one finding, and the exit code is 1; a file is checked all the same."""
    assert run(["doctor", "--kubeconfig", "/nowhere", "--plugin-file", str(tmp_path / "f"), "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["subject"], one["severity"]) for one in found] == [
        (f"file {tmp_path / 'f'}", "error"),
        ("API server", "error"),
    ]
    assert run(["doctor", "--sha256", "0"]) == 2


def test_many_rollouts_take_time(sound: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each Rollout has its own time: what the others took is not missing where its record is read."""
    now = [0.0]

    def later(_: Connection) -> Deadline:
        now[0] += SECONDS / 4
        return Deadline.after(SECONDS, timing=Timing(clock=lambda: now[0]))

    web = sound.api.read("Rollout", "shop", "web")
    del web["metadata"]["resourceVersion"], web["metadata"]["uid"]
    sound.api.create({**web, "metadata": {**web["metadata"], "name": "api"}})
    monkeypatch.setattr(Connection, "deadline", later)

    assert sound.bad() == []


def test_named_rollouts_only(sound: Town) -> None:
    """A named Rollout is checked alone; one that does not exist is an error."""
    sound.api.create(
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "other", "namespace": "shop"}}
    )

    assert sound.bad("web") == []
    assert [line for line in sound.bad("absent") if "Rollout shop/absent does not exist" in line]
    assert [line for line in sound.bad("other") if line.startswith("error configuration: Rollout shop/other:")]
