"""The one source of all install manifests: examples/install, the blocks in docs/, and a release's install/ folder.

Each manifest is a comment and its documents as data. `make manifests` writes the files and the blocks; a test holds
both against this module, and applies them to an API server with RBAC.

They name an example's registry and download place, and the package's version; a release's name its digest, too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from builder.places import NAME, ROOT, version

Document = dict[str, Any]

CONTROLLER = "argo-rollouts"
PLUGIN = "argoproj-labs/gatewayAPI"
GLOO_PLUGIN = "solo-io/glooplatform"
SHARED = "/plugins"
INSTALLED = f"{SHARED}/{NAME}"
LEDGER = "argo-gatewayapi-configmap"
ROUTES = ["httproutes", "grpcroutes", "tcproutes", "tlsroutes"]
EXAMPLES = ROOT / "examples" / "install"
# In docs: <!-- manifest: FILE --> before a block of YAML.
_BLOCK = re.compile(r"(<!-- manifest: (\S+) -->\n```yaml\n).*?(```)", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """Where a release can be had."""

    image: str
    url: str
    sha256: str


def example_place(tag: str) -> Place:
    """Name the places of a version that a reader replaces by their own."""
    return Place(
        image=f"registry.example.com/{NAME}:{tag}",
        url=f"https://downloads.example.com/{NAME}/{tag}/{NAME}-linux-amd64",
        sha256="<the 64 digits in rollouts-gwapi-plugin-linux-amd64.sha256>",
    )


@dataclass(frozen=True)
class Manifest:
    """A file."""

    comment: str
    documents: tuple[Document, ...]

    def text(self) -> str:
        """Write it as YAML."""
        head = "".join(f"# {line}\n" for line in self.comment.splitlines())
        return head + "---\n".join(_dump(document) for document in self.documents)


class _Dumper(yaml.SafeDumper):
    """Indents lists, as Kubernetes' own examples do, and writes texts of several lines as blocks."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's signature
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.SequenceNode:
    words = all(isinstance(item, str) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=words)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def _dump(document: Document) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=120)


def _config(location: str, *, names: tuple[str, ...] = (PLUGIN,), **more: Any) -> Document:
    entries = [{"name": name, "location": location, **more} for name in names]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argo-rollouts-config", "namespace": CONTROLLER},
        "data": {"trafficRouterPlugins": yaml.dump(entries, Dumper=yaml.SafeDumper, sort_keys=False, width=200)},
    }


def _init_container(place: Place) -> Document:
    return {
        "name": "gateway-api-plugin",
        "image": place.image,
        "args": ["install", SHARED],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "volumeMounts": [{"name": "plugins", "mountPath": SHARED}],
    }


_SHARED_VOLUME: Document = {"name": "plugins", "emptyDir": {"sizeLimit": "64Mi"}}
_SHARED_MOUNT: Document = {"name": "plugins", "mountPath": SHARED, "readOnly": True}
# The controller's own manifests have this mount since 1.7.1; a patch merges mounts by their path.
_COPY_MOUNT: Document = {"name": "plugin-bin", "mountPath": "/home/argo-rollouts/plugin-bin"}


def _controller_patch(place: Place) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": CONTROLLER, "namespace": CONTROLLER},
        "spec": {
            "template": {
                "spec": {
                    "initContainers": [_init_container(place)],
                    "containers": [{"name": CONTROLLER, "volumeMounts": [_SHARED_MOUNT, _COPY_MOUNT]}],
                    "volumes": [_SHARED_VOLUME, {"name": "plugin-bin", "emptyDir": {"sizeLimit": "256Mi"}}],
                }
            }
        },
    }


# Rules. The first list is the Go plugin's role, to the letter, so that going over and back changes no rights. The other
# roles do without its `patch`: a write is a PUT (decision D21).

_SERVICES: Document = {"apiGroups": [""], "resources": ["services"], "verbs": ["get"]}
WEIGHTS: list[Document] = [
    {"apiGroups": ["gateway.networking.k8s.io"], "resources": ROUTES, "verbs": ["get", "list", "update", "patch"]},
    _SERVICES,
]
LEDGER_RULES: list[Document] = [
    # A name can't be asked for in `create`: the object is not there yet.
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [LEDGER], "verbs": ["get", "update"]},
]
EXTRAS: list[Document] = [
    {"apiGroups": ["gateway.networking.k8s.io"], "resources": ["udproutes"], "verbs": ["get", "list", "update"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
]
FULL: list[Document] = [
    {"apiGroups": ["gateway.networking.k8s.io"], "resources": ROUTES, "verbs": ["get", "list", "update"]},
    _SERVICES,
    *LEDGER_RULES,
    *EXTRAS,
]
GLOO: list[Document] = [
    {"apiGroups": ["networking.gloo.solo.io"], "resources": ["routetables"], "verbs": ["get", "list", "update"]},
    # Only mirror routes need these: in Gloo a policy says that a route mirrors.
    {
        "apiGroups": ["trafficcontrol.policy.gloo.solo.io"],
        "resources": ["mirrorpolicies"],
        "verbs": ["get", "create", "update", "delete"],
    },
    _SERVICES,
    *LEDGER_RULES,
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
]


def _role(kind: str, namespace: str, rules: list[Document], name: str = NAME) -> tuple[Document, Document]:
    place = {"name": name, **({"namespace": namespace} if namespace else {})}
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": place, "rules": rules}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": f"{kind}Binding",
        "metadata": place,
        "roleRef": {"apiGroup": group, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": CONTROLLER}],
    }
    return role, binding


def _helm_values(place: Place) -> Document:
    return {
        "controller": {
            "initContainers": [_init_container(place)],
            "volumes": [_SHARED_VOLUME],
            "volumeMounts": [_SHARED_MOUNT],
            "trafficRouterPlugins": [{"name": PLUGIN, "location": f"file://{INSTALLED}"}],
        },
        "providerRBAC": {"providers": {"gatewayAPI": True}, "additionalRules": [*LEDGER_RULES, *EXTRAS]},
    }


def _component() -> Document:
    return {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "resources": ["rbac.yaml"],
        # The controller's own manifests bring an empty argo-rollouts-config. They name no namespace, so a patch that is
        # not told its target finds nothing.
        "patches": [
            {"path": "argo-rollouts-config.yaml", "target": {"kind": "ConfigMap", "name": "argo-rollouts-config"}},
            {"path": "controller-patch.yaml", "target": {"kind": "Deployment", "name": CONTROLLER}},
        ],
    }


def manifests(place: Place) -> dict[str, Manifest]:
    """Name -> manifest."""
    return {**_configurations(place), **_roles(), **_installers(place)}


def _configurations(place: Place) -> dict[str, Manifest]:
    arguments = ["-kubeClientQPS=100", "-kubeClientBurst=200", "--log-level=debug"]
    return {
        "argo-rollouts-config.yaml": Manifest(
            "Where the controller finds the plugin: a file that the init container of controller-patch.yaml brings.\n"
            "The controller reads this once, when it starts.",
            (_config(f"file://{INSTALLED}"),),
        ),
        "argo-rollouts-config-http.yaml": Manifest(
            "The controller downloads the plugin at each start, and refuses to start if the digest differs.\n"
            "The digest has 64 digits; with fewer the controller compares something else.",
            (_config(place.url, sha256=place.sha256),),
        ),
        "argo-rollouts-config-args.yaml": Manifest(
            "With flags of the plugin: `rollouts-gwapi-plugin serve --help` lists them.",
            (_config(f"file://{INSTALLED}", args=arguments),),
        ),
        "argo-rollouts-config-gloo.yaml": Manifest(
            "Only with Gloo Platform: the same file under a second name, for Rollouts whose routes are RouteTables.\n"
            "The controller starts a process for each name.",
            (_config(f"file://{INSTALLED}", names=(PLUGIN, GLOO_PLUGIN)),),
        ),
    }


def _roles() -> dict[str, Manifest]:
    return {
        "rbac-weights.yaml": Manifest(
            "Weights alone: the Go plugin's role and nothing else, so no header or mirror routes and no experiments.",
            _role("ClusterRole", "", WEIGHTS),
        ),
        "rbac.yaml": Manifest(
            "Weights, header and mirror routes, experiments, UDPRoutes, and Events about trouble.",
            _role("ClusterRole", "", FULL),
        ),
        "rbac-namespaced.yaml": Manifest(
            "As rbac.yaml, for one namespace: one Role and one RoleBinding in each namespace that has routes.",
            _role("Role", "shop", FULL),
        ),
        "rbac-gloo.yaml": Manifest(
            "Only with Gloo Platform, beside one of the other roles or alone: all that RouteTables need, weights to\n"
            "experiments. Without mirror routes leave mirrorpolicies out.",
            _role("ClusterRole", "", GLOO, f"{NAME}-gloo"),
        ),
    }


def _installers(place: Place) -> dict[str, Manifest]:
    return {
        "controller-patch.yaml": Manifest(
            "Strategic merge patch of the controller's Deployment: an init container copies the plugin into a volume.\n"
            "plugin-bin holds the controller's copy (26 MiB) and what it unpacks once (76 MiB).",
            (_controller_patch(place),),
        ),
        "helm-values.yaml": Manifest(
            "Values of the argo-rollouts chart. providerRBAC.providers.gatewayAPI brings the Go plugin's rules;\n"
            "additionalRules adds what header and mirror routes, experiments and Events need.",
            (_helm_values(place),),
        ),
        "kustomization.yaml": Manifest(
            "A component: name it under `components:` in the kustomization that installs Argo Rollouts, which sets\n"
            "`namespace: argo-rollouts`.",
            (_component(),),
        ),
    }


def write(folder: Path, place: Place) -> None:
    """Write all files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, manifest in manifests(place).items():
        (folder / name).write_text(manifest.text())


def with_blocks(page: str, texts: Mapping[str, str]) -> str:
    """Put the manifests into a page's marked blocks."""
    return _BLOCK.sub(lambda found: f"{found[1]}{texts[found[2]]}{found[3]}", page)


def refresh() -> None:
    """Rewrite examples/install and the blocks in docs/."""
    place = example_place(version())
    write(EXAMPLES, place)
    texts = {name: manifest.text() for name, manifest in manifests(place).items()}
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text()
        if with_blocks(text, texts) != text:
            page.write_text(with_blocks(text, texts))
