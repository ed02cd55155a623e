"""`doctor` on what is around the Rollouts: rights, definitions, the controller's configuration, the plugin's file.

C114, C116, C131, C132, D7, D18.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.town import Town, controller_config
from tests.service.world import LEDGER, PLUGIN_KEY, route, rule

from rollouts_gwapi_plugin.cli.connection import connected
from rollouts_gwapi_plugin.cli.doctor import DEFAULT_SERVICE_ACCOUNT
from rollouts_gwapi_plugin.cli.doctor.access import Reviewer
from rollouts_gwapi_plugin.cli.options import Place
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.apiserver.certificate import make_certificate
from rollouts_gwapi_plugin.kube.auth import in_cluster

ENTRY = {"name": PLUGIN_KEY, "location": "file:///plugins/plugin"}
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ACCOUNT = {"kind": "ServiceAccount", "namespace": "argo-rollouts", "name": "argo-rollouts"}
RBAC = "rbac.authorization.k8s.io"


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
    ruled.configure(**fields)

    found = [line for line in ruled.found() if line.startswith("error rights")]

    assert [line.split(" may not ")[1].split(" in namespace")[0] for line in found] == missing
    assert all('add the rule {apiGroups: ["' in line for line in found)
    assert all(line.startswith("error rights: service account argo-rollouts/argo-rollouts may") for line in found)


def test_a_right_to_one_config_map(ruled: Town) -> None:
    """A role as in the documentation names the ledger; one that names another ConfigMap does not do (C116)."""
    made, bound = role((*ROUTES, "get update"), ("", "configmaps", "create"), ("", "configmaps", "get update"))
    made["rules"][2]["resourceNames"] = [LEDGER]
    ruled.api.load([made, bound])
    ruled.configure(managed=["r"])
    named = [line for line in ruled.found() if line.startswith("error rights")]
    ruled.configure(config={"httpRoute": "web", "configMap": "other"})
    other = [line for line in ruled.found() if line.startswith("error rights")]

    assert named == []
    assert [line.split("add the rule ")[1].split(" to a role")[0] for line in other] == [
        f'{{apiGroups: [""], resources: ["configmaps"], resourceNames: ["other"], verbs: ["{verb}"]}}'
        for verb in ("get", "update")
    ]


def test_events_are_optional(ruled: Town) -> None:
    """Without the right to make Events the plugin does its work, so that is a warning."""
    ruled.api.load(role((*ROUTES, "get update")))

    found = [line for line in ruled.found() if " rights: " in line]

    assert len(found) == 1
    assert found[0].startswith("warning rights: ")
    assert 'resources: ["events"], verbs: ["create"]' in found[0]


def test_rights_of_another_account_and_of_oneself(ruled: Town) -> None:
    """--service-account names another account; `self` asks for the caller, who here may do everything."""
    ruled.api.load(role((*ROUTES, "get update")))

    other = [line for line in ruled.found("--service-account", "ci/robot") if line.startswith("error rights")]
    own = [line for line in ruled.found("--service-account", "self") if " rights: " in line]

    assert len(other) == 2
    assert own[0].startswith("ok rights: whoever runs this")


def test_who_may_not_ask_for_others_asks_for_itself(ruled: Town) -> None:
    """Run by the controller's own account, the rights are its own, and that is said."""
    ruled.api.load(role((*ROUTES, "get update"), ("argoproj.io", "rollouts", "get list")))
    ruled.api.write_kubeconfig(ruled.kubeconfig)

    found = [line for line in ruled.found() if " rights: " in line]

    assert "may not be asked for, so these are one's own" in found[0]
    assert 'resources: ["events"]' in found[1]
    assert len(found) == 2


def test_in_a_pod_they_are_ones_own(ruled: Town, tmp_path: Path) -> None:
    """With the service account of the pod that it runs in, it asks for its own rights, without being told to."""
    (tmp_path / "token").write_text("a token")
    (tmp_path / "namespace").write_text("argo-rollouts")
    (tmp_path / "ca.crt").write_text(make_certificate().pem)
    in_pod = replace(in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path), source="in other words")
    with connected(Place(str(ruled.kubeconfig))) as connection:
        outside = Reviewer.of(connection, DEFAULT_SERVICE_ACCOUNT)
        inside = Reviewer.of(replace(connection, config=in_pod), DEFAULT_SERVICE_ACCOUNT)

    assert [outside.who, inside.who] == [
        "service account argo-rollouts/argo-rollouts",
        "whoever runs this (in other words)",
    ]


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
        town.configure(managed=["m"], steps=[step])
        found = town.bad()
        town.configure(config={"grpcRoute": "web"}, managed=[], steps=[])
        absent = town.bad()

    fields = [line for line in found if " fields: " in line]
    assert fields[0].startswith("warning fields: its definition drops rule names")
    assert fields[1].startswith("error fields: its definition drops requestMirror.percent")
    assert fields[1].endswith("these steps will be refused: shop/web (m: 20 %)")
    assert [line for line in found if line.startswith("error steps: step 0: setMirrorRoute m") and "20 %" in line]
    assert [line for line in absent if line.startswith("error version: the API server serves no GRPCRoute")]


@pytest.mark.parametrize(
    ("plugins", "text"),
    [
        (None, "error installation: it does not exist, so a controller of this namespace starts no plugin"),
        ("", "error installation: it has no trafficRouterPlugins"),
        ("[", "error installation: trafficRouterPlugins is not YAML"),
        ({"name": PLUGIN_KEY}, "error installation: trafficRouterPlugins is not a list of entries"),
        (
            [{**ENTRY, "name": "gatewayAPI"}],
            "error installation: trafficRouterPlugins: name 'gatewayAPI' is not ORG/NA",
        ),
        (
            [{**ENTRY, "name": "a/b"}],
            "error installation: trafficRouterPlugins has no entry argoproj-labs/gatewayAPI, which",
        ),
        (
            [{**ENTRY, "sha256": "abc"}],
            "error installation: trafficRouterPlugins: argoproj-labs/gatewayAPI: sha256 'abc'",
        ),
        (
            [{**ENTRY, "sha256": "a" * 64 + "\n"}],
            "error installation: trafficRouterPlugins: argoproj-labs/gatewayAPI: sha256 'aaa",
        ),
    ],
)
def test_the_controllers_configuration(sound: Town, plugins: Any, text: str) -> None:
    """Mistakes in argo-rollouts-config that keep the controller from finding the plugin are found (C131)."""
    sound.api.delete("ConfigMap", "argo-rollouts", "argo-rollouts-config")
    if plugins is not None:
        sound.api.create(controller_config(plugins))

    assert [line for line in sound.bad() if line.startswith(text)]


ELF = b"\x7fELF" + bytes(14) + (183).to_bytes(2, "little") + b"rest"


def test_a_plugin_file(sound: Town, tmp_path: Path) -> None:
    """A file:// copy, which the controller does not check, is compared with the release's sum (C132)."""
    file = tmp_path / "plugin"
    file.write_bytes(ELF)
    file.chmod(0o755)
    sum_ = hashlib.sha256(ELF).hexdigest()
    options = ("--plugin-file", str(file))

    good = sound.found(*options, "--sha256", sum_.upper())
    assert good[:2] == ["ok file: an executable for linux/arm64", f"ok sha256: {sum_}"]
    assert sound.found(*options)[1] == f"info sha256: {sum_}"
    assert sound.found(*options, "--sha256", "0" * 64)[1] == (
        f"error sha256: it is {sum_}, and should be {'0' * 64}: this is another file"
    )
    assert sound.found(*options, "--sha256", sum_[:40])[1].startswith(f"error sha256: '{sum_[:40]}' is no SHA-256")

    sound.api.update(controller_config([{**ENTRY, "sha256": "1" * 64}]))
    assert [line for line in sound.found(*options) if line.endswith(f"should be {'1' * 64}: this is another file")]


def test_a_file_that_cannot_be_the_plugin(sound: Town, tmp_path: Path) -> None:
    """A missing file, a script and a file without the execute bit are told."""
    file = tmp_path / "plugin"
    assert sound.found("--plugin-file", str(file))[0] == "error file: it can't be read: No such file or directory"
    file.write_text("#!/bin/sh\n")
    found = sound.found("--plugin-file", str(file))
    assert found[0].startswith("error file: it is not executable")
    assert found[1].startswith("warning file: it is no Linux executable (ELF)")
