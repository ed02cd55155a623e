"""`doctor`: each thing that a Rollout needs is found where it is missing; F17, C114, C116, C131, C132, D7, D18, D29."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.town import Town
from tests.service.world import LEDGER, PLUGIN_KEY, header_step, route, rule, service

from rollouts_gwapi_plugin.cli.main import run
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

ENTRY = {"name": PLUGIN_KEY, "location": "file:///plugins/plugin"}
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ACCOUNT = {"kind": "ServiceAccount", "namespace": "argo-rollouts", "name": "argo-rollouts"}
RBAC = "rbac.authorization.k8s.io"
DROPS = " drops the entry and keeps the rule"


def controller_config(plugins: Any) -> dict[str, Any]:
    """Make the controller's ConfigMap."""
    text = plugins if isinstance(plugins, str) else yaml.safe_dump(plugins)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argo-rollouts-config", "namespace": "argo-rollouts"},
        "data": {"trafficRouterPlugins": text},
    }


@pytest.fixture
def sound(town: Town) -> Town:
    """Make everything be in order."""
    for name in ("s", "c"):
        town.api.create(service(name))
    town.api.create(controller_config([ENTRY]))
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "observedGeneration": 1}
    web = town.api.read("HTTPRoute", "shop", "web")
    parents = [{"parentRef": {"name": "gw"}, "controllerName": "example.com/gateway", "conditions": [condition]}]
    town.api.update_status({**web, "status": {"parents": parents}})
    return town


def lines(town: Town, *arguments: str) -> list[str]:
    """Return what it finds, as `severity check: text`."""
    return [f"{one['severity']} {one['check']}: {one['text']}" for one in town.json("doctor", *arguments)]


def bad(found: list[str]) -> list[str]:
    """Return the errors and warnings."""
    return [line for line in found if line.startswith(("error", "warning"))]


def test_all_in_order(sound: Town) -> None:
    """Where nothing is missing there is neither error nor warning, and nothing was written."""
    sound.api.requests.clear()

    code, text, _ = sound.run("doctor", "--strict")
    found = lines(sound)

    assert (code, bad(found)) == (0, [])
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


def configure(town: Town, **fields: Any) -> None:
    """Change the Rollout."""
    for name, value in fields.items():
        setattr(town.shop, name, value)
    town.apply()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda town: town.api.delete("HTTPRoute", "shop", "web"), "error route: get HTTPRoute shop/web: HTTPRoute"),
        (edit_route(rules=[rule("s100 x")]), "error pair: HTTPRoute shop/web: backendRef was not found"),
        (lambda town: town.api.delete("Service", "shop", "c"), "error services: canary Service: get Service shop/c"),
        (edit_route(rules=[rule("s100 c0"), rule("x1")]), "warning gateways: HTTPRoute shop/web: parent gw (example."),
        (lambda town: configure(town, config={}), "error configuration: No routes configured"),
        (lambda town: configure(town, config={"httpRoute": "web", "a": 1}), "warning configuration: a is no key that"),
        (
            lambda town: configure(town, config={"httpRoute": "web", "ruleName": "r"}),
            "error pair: HTTPRoute shop/web: ru",
        ),
        (
            lambda town: configure(
                town,
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

    assert [line for line in bad(lines(sound)) if line.startswith(text)]


def test_a_gateway_that_refuses(sound: Town) -> None:
    """A route that a gateway does not accept blocks every rollout, so it is an error."""
    web = sound.api.read("HTTPRoute", "shop", "web")
    web["status"]["parents"][0]["conditions"][0].update(status="False", reason="NotAllowedByListeners")
    sound.api.update_status(web)

    assert [line for line in bad(lines(sound)) if "Accepted=False, NotAllowedByListeners" in line]


def test_limits_are_played_on_the_live_route(sound: Town) -> None:
    """Nine rules have no room for the nine of a header step; the record of what stands is used."""
    rules = [rule("s100 c0", matches=[{"path": {"type": "PathPrefix", "value": f"/{n}"}}]) for n in range(9)]
    edit_route(rules=rules)(sound)
    configure(sound, managed=["r"], steps=[{"setHeaderRoute": header_step("r")}])

    code, text, _ = sound.run("doctor")

    assert code == 1
    assert "spec.rules: 18 needed, the Gateway API takes 16" in text


def role(*rules: tuple[str, str, str]) -> list[dict[str, Any]]:
    """Make a Role in shop for the controller's service account, of (group, resource, verbs) rules."""
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": "plugin", "namespace": "shop"},
            "rules": [
                {"apiGroups": [group], "resources": [resource], "verbs": verbs.split()}
                for group, resource, verbs in rules
            ],
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "plugin", "namespace": "shop"},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "plugin"},
            "subjects": [ACCOUNT],
        },
    ]


ROUTES = ("gateway.networking.k8s.io", "httproutes")


@pytest.fixture
def ruled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Town]:
    """Give a world under RBAC."""
    with ApiServer(rbac=True) as api:
        api.create(route(rule("s100 c0")))
        made = Town(api, tmp_path, capsys)
        made.apply()
        yield made


@pytest.mark.parametrize(
    ("fields", "rules", "missing"),
    [
        ({}, [(*ROUTES, "get update")], []),
        ({}, [(*ROUTES, "get patch")], ["update httproutes"]),
        ({"config": {"httpRouteSelector": {}}}, [(*ROUTES, "get update")], ["list httproutes"]),
        (
            {"managed": ["r"]},
            [(*ROUTES, "get update"), ("", "configmaps", "get")],
            ["create configmaps", "update configmaps"],
        ),
        (
            {"steps": [{"experiment": {"templates": [{"name": "a"}]}}]},
            [(*ROUTES, "get update"), ("", "configmaps", "get create update")],
            ["get services"],
        ),
        ({"config": {"grpcRoute": "web"}}, [(*ROUTES, "get update")], ["get grpcroutes", "update grpcroutes"]),
    ],
)
def test_rights(ruled: Town, fields: dict[str, Any], rules: list[Any], missing: list[str]) -> None:
    """Exactly what this Rollout needs is asked for, of the controller's account; the rule to add is named (C116)."""
    ruled.api.load(role(*rules))
    configure(ruled, **fields)

    found = [line for line in lines(ruled) if line.startswith("error rights")]

    assert [line.split(" may not ")[1].split(" in namespace")[0] for line in found] == missing
    assert all('add the rule {apiGroups: ["' in line for line in found)
    assert all(line.startswith("error rights: service account argo-rollouts/argo-rollouts may") for line in found)


def test_events_are_optional(ruled: Town) -> None:
    """Without the right to make Events the plugin does its work, so that is a warning."""
    ruled.api.load(role((*ROUTES, "get update")))

    found = [line for line in lines(ruled) if " rights: " in line]

    assert len(found) == 1
    assert found[0].startswith("warning rights: ")
    assert 'resources: ["events"], verbs: ["create"]' in found[0]


def test_rights_of_another_account_and_of_oneself(ruled: Town) -> None:
    """--service-account names another account; `self` asks for the caller, who here may do everything."""
    ruled.api.load(role((*ROUTES, "get update")))

    other = [line for line in lines(ruled, "--service-account", "ci/robot") if line.startswith("error rights")]
    own = [line for line in lines(ruled, "--service-account", "self") if " rights: " in line]

    assert len(other) == 2
    assert own[0].startswith("ok rights: whoever runs this")


def test_who_may_not_ask_for_others_asks_for_itself(ruled: Town) -> None:
    """Run by the controller's own account, the rights are its own, and that is said."""
    ruled.api.load(role((*ROUTES, "get update"), ("argoproj.io", "rollouts", "get list")))
    ruled.api.write_kubeconfig(ruled.kubeconfig)

    found = [line for line in lines(ruled) if " rights: " in line]

    assert "may not be asked for, so these are one's own" in found[0]
    assert 'resources: ["events"]' in found[1]
    assert len(found) == 2


def route_definition() -> dict[str, Any]:
    """Make an HTTPRoute definition as before Gateway API 1.3: it drops rule names and mirror percentages."""
    mirror = {"type": "object", "properties": {"requestMirror": {"type": "object", "properties": {"backendRef": ANY}}}}
    rules = {
        "type": "object",
        "properties": {
            "matches": {"type": "array", "items": ANY},
            "backendRefs": {"type": "array", "items": ANY},
            "filters": {"type": "array", "items": mirror},
        },
    }
    spec = {
        "type": "object",
        "properties": {"rules": {"type": "array", "items": rules}, "parentRefs": {"type": "array", "items": ANY}},
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": ANY}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "httproutes.gateway.networking.k8s.io"},
        "spec": {
            "group": "gateway.networking.k8s.io",
            "scope": "Namespaced",
            "names": {
                "kind": "HTTPRoute",
                "plural": "httproutes",
                "singular": "httproute",
                "listKind": "HTTPRouteList",
            },
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def test_an_old_definition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Dropped percentages are an error for a Rollout that mirrors a part, dropped names a warning (D7, D18)."""
    with ApiServer(crds=[route_definition()]) as api:
        api.create(route(rule("s100 c0")))
        town = Town(api, tmp_path, capsys)
        step = {"setMirrorRoute": {"name": "m", "percentage": 20, "match": [{"path": {"prefix": "/"}}]}}
        configure(town, managed=["m"], steps=[step])
        found = bad(lines(town))
        configure(town, config={"grpcRoute": "web"}, managed=[], steps=[])
        absent = bad(lines(town))

    fields = [line for line in found if " fields: " in line]
    assert fields[0].startswith("warning fields: its definition drops rule names")
    assert fields[1].startswith("error fields: its definition drops requestMirror.percent")
    assert fields[1].endswith("these steps will be refused: shop/web (m: 20 %)")
    assert [line for line in found if line.startswith("error steps: step 0: setMirrorRoute m") and "20 %" in line]
    assert [line for line in absent if line.startswith("error version: the API server serves no GRPCRoute")]


def test_record(sound: Town) -> None:
    """A record that is stale, lost, forbidden, or broken is told, as bad as what it makes impossible."""
    shop = sound.shop
    configure(sound, managed=["canary"], steps=[{"setHeaderRoute": header_step("canary")}])
    shop.header("canary")
    assert [line for line in lines(sound) if line.startswith("ok record") and "1 managed rules are on record" in line]

    with sound.api.deny("get", "configmaps", "shop"):
        assert [
            line for line in bad(lines(sound)) if line.startswith(f"error record: ConfigMap shop/{LEDGER}: get Con")
        ]
    sound.api.edit(
        "ConfigMap", "shop", LEDGER, lambda one: one["data"].update(grpcManagedHeaderRoutes='{"version": 9}')
    )
    broken = bad(lines(sound))
    assert [line for line in broken if "key grpcManagedHeaderRoutes has version 9" in line]
    assert [line for line in broken if "record" in line] == [line for line in broken if "grpcManaged" in line]

    edit_route(rules=[rule("s100 c0")])(sound)
    assert [
        line for line in lines(sound) if line.startswith("info record: managed route canary of shop/web is on record")
    ]

    shop.header("canary")
    sound.api.delete("ConfigMap", "shop", LEDGER)
    assert [
        line for line in lines(sound) if line.startswith("info record: rule 1 (canary) is on no record and known by")
    ]


def test_look_alikes_and_old_entries(sound: Town) -> None:
    """Unnamed rules that look like ours are told; of the Go plugin's old entries, what will become of each (D30)."""
    configure(sound, managed=["canary", "lost"], steps=[{"setHeaderRoute": header_step("canary")}])
    match = [{"headers": [{"name": "X-Test", "value": "1"}]}]
    edit_route(rules=[rule("s100 c0"), rule("c1", matches=match), rule("c1", matches=match), rule("c1")])(sound)
    old = {"canary": {"web": 1}, "lost": {"web": 0}, "foreign": {"web": 2}}
    metadata = {"name": LEDGER, "namespace": "shop"}
    data = {"httpManagedRoutes": json.dumps(old)}
    sound.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    found = lines(sound)
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
    configure(sound, config={"httpRoute": "next"})
    left = bad(lines(sound))
    sound.api.delete("Rollout", "shop", "web")
    gone = bad(lines(sound))

    assert [
        line for line in left if line.startswith("warning left the configuration: it left the configuration of sho")
    ]
    assert [
        line for line in gone if line.startswith("warning left over: it is gone") and "cleanup -n shop shop/web" in line
    ]


@pytest.mark.parametrize(
    ("plugins", "text"),
    [
        (None, "warning installation: it does not exist, so a controller of this namespace starts no plugin"),
        ("", "error installation: it has no trafficRouterPlugins"),
        ("[", "error installation: trafficRouterPlugins is not YAML"),
        ({"name": PLUGIN_KEY}, "error installation: trafficRouterPlugins is not a list of entries"),
        (
            [{**ENTRY, "name": "gatewayAPI"}],
            "error installation: trafficRouterPlugins: name 'gatewayAPI' is not ORG/NA",
        ),
        (
            [{**ENTRY, "name": "a/b"}],
            "error installation: trafficRouterPlugins has no entry argoproj-labs/gatewayAPI or",
        ),
        (
            [{**ENTRY, "sha256": "abc"}],
            "error installation: trafficRouterPlugins: argoproj-labs/gatewayAPI: sha256 'abc'",
        ),
    ],
)
def test_the_controllers_configuration(sound: Town, plugins: Any, text: str) -> None:
    """Mistakes in argo-rollouts-config that keep the controller from finding the plugin are found (C131)."""
    sound.api.delete("ConfigMap", "argo-rollouts", "argo-rollouts-config")
    if plugins is not None:
        sound.api.create(controller_config(plugins))

    assert [line for line in bad(lines(sound)) if line.startswith(text)]


ELF = b"\x7fELF" + bytes(14) + (183).to_bytes(2, "little") + b"rest"


def test_a_plugin_file(sound: Town, tmp_path: Path) -> None:
    """A file:// copy, which the controller does not check, is compared with the release's sum (C132)."""
    file = tmp_path / "plugin"
    file.write_bytes(ELF)
    file.chmod(0o755)
    sum_ = hashlib.sha256(ELF).hexdigest()
    options = ("--plugin-file", str(file))

    good = lines(sound, *options, "--sha256", sum_.upper())
    assert good[:2] == ["ok file: an executable for linux/arm64", f"ok sha256: {sum_}"]
    assert lines(sound, *options)[1] == f"info sha256: {sum_}"
    assert lines(sound, *options, "--sha256", "0" * 64)[1] == (
        f"error sha256: it is {sum_}, and should be {'0' * 64}: this is another file"
    )
    assert lines(sound, *options, "--sha256", sum_[:40])[1].startswith(f"error sha256: '{sum_[:40]}' is no SHA-256")

    sound.api.update(controller_config([{**ENTRY, "sha256": "1" * 64}]))
    assert [line for line in lines(sound, *options) if line.endswith(f"should be {'1' * 64}: this is another file")]


def test_a_file_that_cannot_be_the_plugin(sound: Town, tmp_path: Path) -> None:
    """A missing file, a script and a file without the execute bit are told."""
    file = tmp_path / "plugin"
    assert lines(sound, "--plugin-file", str(file))[0] == "error file: it can't be read: No such file or directory"
    file.write_text("#!/bin/sh\n")
    found = lines(sound, "--plugin-file", str(file))
    assert found[0].startswith("error file: it is not executable")
    assert found[1].startswith("warning file: it is no Linux executable (ELF)")


def test_no_cluster(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A cluster that can't be reached is one finding, and the exit code is 1; a file is checked all the same."""
    assert run(["doctor", "--kubeconfig", "/nowhere", "--plugin-file", str(tmp_path / "f"), "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["subject"], one["severity"]) for one in found] == [
        (f"file {tmp_path / 'f'}", "error"),
        ("API server", "error"),
    ]
    assert run(["doctor", "--sha256", "0"]) == 2


def test_named_rollouts_only(sound: Town) -> None:
    """A named Rollout is checked alone; one that does not exist is an error."""
    sound.api.create(
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "other", "namespace": "shop"}}
    )

    assert bad(lines(sound, "web")) == []
    assert [line for line in bad(lines(sound, "absent")) if "Rollout shop/absent does not exist" in line]
    assert [line for line in bad(lines(sound, "other")) if line.startswith("error configuration: Rollout shop/other:")]
