"""The install manifests: what is committed is what the one source gives, and it does what the docs say.

| manifest            | tried by                                                        |
| ------------------- | --------------------------------------------------------------- |
| roles               | calls of the service on an API server that enforces them        |
| ConfigMaps          | the controller's own rules for names and places, our own flags  |
| patch, Helm values  | the same volume, path and file name everywhere                  |
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests.service.gloo.world import KEY, GlooShop, http, table
from tests.service.world import Shop, route, rule, service

from builder import manifests
from builder.manifests import EXAMPLES, Manifest, example_place
from builder.places import ROOT, version
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.errors import Forbidden, PluginError
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.observe.metrics import Metrics
from rollouts_gwapi_plugin.service.router import TrafficRouter
from rollouts_gwapi_plugin.transport.flags import parse

Json = dict[str, Any]
CONTROLLER = "system:serviceaccount:argo-rollouts:argo-rollouts"
ALL = manifests.manifests(example_place(version()))
# utils/config/config.go of Argo Rollouts.
CONTROLLER_NAME = re.compile(r"^([a-zA-Z0-9\-]+)\/{1}([a-zA-Z0-9_\-.]+)$")
# The role that the Go plugin's documentation asks for.
GO_PLUGIN_RULES = [
    {
        "apiGroups": ["gateway.networking.k8s.io"],
        "resources": ["httproutes", "grpcroutes", "tcproutes", "tlsroutes"],
        "verbs": ["get", "list", "update", "patch"],
    },
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get"]},
]
MIB = {"Mi": 2**20}


def documents(manifest: Manifest) -> list[Json]:
    """Read the manifest as kubectl does."""
    return list(yaml.safe_load_all(manifest.text()))


def plugins(name: str) -> list[Json]:
    """Read what the controller reads from a ConfigMap."""
    [config] = documents(ALL[name])
    listed = yaml.safe_load(config["data"]["trafficRouterPlugins"])
    assert isinstance(listed, list)
    return listed


def rights(rules: list[Json]) -> set[tuple[str, str, str, str]]:
    """Spell rules out: group, resource, object's name, verb."""
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("name", ALL)
def test_files_are_generated(name: str) -> None:
    """What is committed is what `make manifests` writes."""
    assert ALL[name].text() == (EXAMPLES / name).read_text()


def test_no_other_files() -> None:
    """A manifest that the source no longer has is no longer there."""
    assert {*ALL} == {path.name for path in EXAMPLES.iterdir()}


def test_documents_are_generated() -> None:
    """The manifests in the docs are those of the source, and each one is shown."""
    texts = {name: manifest.text() for name, manifest in ALL.items()}
    pages = {page: page.read_text() for page in (ROOT / "docs").glob("*.md")}
    shown = {name for text in pages.values() for name in re.findall(r"<!-- manifest: (\S+) -->\n```yaml", text)}

    assert {*ALL} == shown
    for page, text in pages.items():
        assert manifests.with_blocks(text, texts) == text, f"{page}: run `make manifests`"


@pytest.mark.parametrize("name", [name for name in ALL if name.startswith("argo-rollouts-config")])
def test_the_controller_reads_the_config(name: str) -> None:
    """Name and place keep to the controller's rules."""
    for plugin in plugins(name):
        place = urlsplit(plugin["location"])
        assert CONTROLLER_NAME.match(plugin["name"])
        assert place.scheme in {"file", "https"}
        # The controller joins host and path of a file's URL; a path with two slashes would be relative.
        assert place.scheme != "file" or (place.netloc == "" and place.path.startswith("/"))


def test_arguments_are_flags() -> None:
    """The arguments in the example are flags that the plugin knows."""
    [plugin] = plugins("argo-rollouts-config-args.yaml")

    flags = parse(plugin["args"], {})

    assert (100.0, 200, "debug") == (flags.service.qps, flags.service.burst, flags.log_level)


def test_one_way_of_the_file() -> None:
    """Init container, mount, volume and the controller's configuration name the same file."""
    [patch] = documents(ALL["controller-patch.yaml"])
    pod = patch["spec"]["template"]["spec"]
    [init] = pod["initContainers"]
    [container] = pod["containers"]
    [values] = documents(ALL["helm-values.yaml"])
    installed = f"file://{init['args'][1]}/rollouts-gwapi-plugin"
    shared, copies = container["volumeMounts"]

    assert "install" == init["args"][0]
    assert {init["args"][1]} == {mount["mountPath"] for mount in [*init["volumeMounts"], shared]}
    assert {"plugins"} == {mount["name"] for mount in [*init["volumeMounts"], shared]}
    assert {"name": "plugin-bin", "mountPath": "/home/argo-rollouts/plugin-bin"} == copies
    assert {"plugins", "plugin-bin"} == {volume["name"] for volume in pod["volumes"]}
    assert [{"name": "argoproj-labs/gatewayAPI", "location": installed}] == plugins("argo-rollouts-config.yaml")
    assert plugins("argo-rollouts-config.yaml") == values["controller"]["trafficRouterPlugins"]
    # The chart mounts plugin-bin itself, and joins lists: its path twice is refused.
    assert (init, [shared]) == (
        values["controller"]["initContainers"][0],
        values["controller"]["volumeMounts"],
    )


def test_the_component_finds_what_it_patches() -> None:
    """Each patch says by kind and name what it is for: the stock objects have no namespace to be found by."""
    [component] = documents(ALL["kustomization.yaml"])

    for patch in component["patches"]:
        [body] = documents(ALL[patch["path"]])
        assert patch["target"] == {"kind": body["kind"], "name": body["metadata"]["name"]}


def test_volumes_are_large_enough(executable: Path) -> None:
    """The volumes' limits hold the file, and in plugin-bin what two versions unpack."""
    [patch] = documents(ALL["controller-patch.yaml"])
    limits = {
        volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in patch["spec"]["template"]["spec"]["volumes"]
    }
    sizes = {name: int(limit[:-2]) * MIB[limit[-2:]] for name, limit in limits.items()}
    file, unpacked = executable.stat().st_size, 90 * MIB["Mi"]

    # While a new file is copied, the old one is still there.
    assert sizes["plugins"] >= 2 * file
    assert sizes["plugin-bin"] >= file + 2 * unpacked


def test_weights_need_the_go_plugins_role() -> None:
    """The smallest role is the Go plugin's to the letter."""
    role, _ = documents(ALL["rbac-weights.yaml"])

    assert GO_PLUGIN_RULES == role["rules"]


def test_helm_values_give_the_whole_role() -> None:
    """The chart's own rules for the Gateway API and the additional ones are the large role."""
    [values] = documents(ALL["helm-values.yaml"])
    role, _ = documents(ALL["rbac.yaml"])

    given = [*GO_PLUGIN_RULES, *values["providerRBAC"]["additionalRules"]]
    assert values["providerRBAC"]["providers"]["gatewayAPI"] is True
    assert rights(role["rules"]) == rights(given) - {(*right[:3], "patch") for right in rights(given)}


def test_nobody_is_asked_for_what_is_never_done() -> None:
    """Routes are written whole, so no role but the Go plugin's has `patch`; none has `delete` or `watch` of routes."""
    for name in ("rbac.yaml", "rbac-namespaced.yaml"):
        rules = documents(ALL[name])[0]["rules"]
        verbs = {verb for group, _, _, verb in rights(rules) if group == "gateway.networking.k8s.io"}

        assert verbs == {"get", "list", "update"}


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """Give an API server that enforces roles, with a route and its Services."""
    with ApiServer(rbac=True) as server:
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        server.create(route(rule("s100 c0")))
        for name in ("s", "c", "experiment"):
            server.create(service(name))
        yield server


def shop_under(api: ApiServer, role: str, folder: Path) -> Shop:
    """Give the service the rights of a manifest, as the controller's account has them."""
    api.load(documents(ALL[role]))
    kubeconfig = api.write_kubeconfig(folder / "controller", user=CONTROLLER)
    shop = Shop(api, folder)
    shop._router = TrafficRouter(ServiceSettings(kubeconfig=str(kubeconfig)), Metrics())
    return shop


@pytest.mark.parametrize("role", ["rbac-weights.yaml", "rbac.yaml", "rbac-namespaced.yaml"])
def test_weights(api: ApiServer, role: str, tmp_path: Path) -> None:
    """Every role suffices for weights and their verification."""
    shop = shop_under(api, role, tmp_path)

    shop.weight(30)

    assert ["s=70 c=30"] == shop.rules()
    shop.verify(30)


@pytest.mark.parametrize("role", ["rbac.yaml", "rbac-namespaced.yaml"])
def test_managed_routes_and_experiments(api: ApiServer, role: str, tmp_path: Path) -> None:
    """The larger roles suffice for header routes, mirrors, experiments and their end."""
    shop = shop_under(api, role, tmp_path)
    shop.managed = ["header", "mirror"]

    shop.header("header")
    shop.weight(20, experiment=10)
    assert shop.ledger()
    shop.weight(20)
    shop.remove()

    assert ["s=80 c=20"] == shop.rules()
    # Events about trouble may be written, too.
    assert [] == [request for request in api.requests if request.status == 403]


def test_what_the_small_role_lacks(api: ApiServer, tmp_path: Path) -> None:
    """Under the Go plugin's role a header route is refused, the text names the missing rule, nothing is written."""
    shop = shop_under(api, "rbac-weights.yaml", tmp_path)
    shop.managed = ["header"]

    with pytest.raises(PluginError, match="configmaps") as refused:
        shop.header("header")

    assert isinstance(refused.value.__cause__ or refused.value, Forbidden | PluginError)
    assert ["s=100 c=0"] == shop.rules()


def test_another_namespace(api: ApiServer, tmp_path: Path) -> None:
    """The namespaced role gives nothing outside its namespace."""
    shop = shop_under(api, "rbac-namespaced.yaml", tmp_path)
    other = route(rule("s100 c0"))
    other["metadata"]["namespace"] = "default"
    api.create(other)
    shop.config = {"httpRoute": "web", "namespace": "default"}

    with pytest.raises(PluginError, match="default"):
        shop.weight(30)


def test_gloo(tmp_path: Path) -> None:
    """The role for RouteTables suffices alone: weights, header and mirror routes, experiments, selected by labels."""
    with ApiServer(rbac=True) as api:
        made = table(http("s", "main"))
        made["metadata"]["labels"] = {"app": "web"}
        api.load([made, *map(service, ("s", "c", "experiment")), *documents(ALL["rbac-gloo.yaml"])])
        kubeconfig = api.write_kubeconfig(tmp_path / "controller", user=CONTROLLER)
        shop = GlooShop(api, tmp_path, plugins={KEY: {"routeTableSelector": {"labels": {"app": "web"}}}})
        shop._router = TrafficRouter(ServiceSettings(kubeconfig=str(kubeconfig)), Metrics())
        shop.managed = ["header", "mirror"]

        shop.header("header")
        for path in ("/a", "/b"):
            shop.mirror("mirror", {"path": {"prefix": path}})
        shop.weight(20, experiment=10)
        assert shop.lines() == ["header: c=-", "mirror: s=70 c=20 experiment=10", "main: s=70 c=20 experiment=10"]
        assert len(shop.policies()) == 1
        shop.verify(20)
        shop.weight(20)
        shop.remove()

        assert shop.lines() == ["main: s=80 c=20"]
        assert shop.policies() == {}
        assert [] == [request for request in api.requests if request.status == 403]


def test_both_names_for_gloo() -> None:
    """With Gloo the same file is known by both names; the Helm values and the other ConfigMaps leave Gloo out."""
    both = plugins("argo-rollouts-config-gloo.yaml")

    assert [plugin["name"] for plugin in both] == ["argoproj-labs/gatewayAPI", KEY]
    assert len({plugin["location"] for plugin in both}) == 1
    assert [] == [name for name in ALL if "gloo" in ALL[name].text() and "gloo" not in name]
