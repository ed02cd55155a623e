"""The examples that can be played: folders of manifests with a `demo.yaml`.

They are the repository's `examples/`, and part of the installed package (`rollouts_gwapi_plugin/examples`), so that a
wheel or the one-file executable can play them without a clone. All manifests of a folder that a sandbox has a use for
are taken; what is for a real cluster only (its kind is not in `KINDS`) is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rollouts_gwapi_plugin.cli.demo.asked import Expectation, Shares
from rollouts_gwapi_plugin.embedded.clients import Cohort
from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.base import JsonObject

DESCRIPTION = "demo.yaml"
KINDS = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "GRPCRoute",
        "Gateway",
        "GatewayClass",
        "HTTPRoute",
        "Namespace",
        "ReferenceGrant",
        "Role",
        "RoleBinding",
        "RouteTable",
        "Service",
        "TCPRoute",
        "TLSRoute",
        "VirtualGateway",
    }
)
_COHORT = frozenset({"name", "rate", "headers", "host", "path", "method", "listener"})
_EXPECTATION = frozenset({"expect", "copies"})
PERCENT = 100


@dataclass(frozen=True)
class Example:
    """One example: what is applied, the Rollout, and who sends requests.

    The new version is made by another image or by another `version` label in the template. `expectations` is by cohort,
    where an example says more than the weights do.
    """

    name: str
    title: str
    manifests: tuple[JsonObject, ...]
    rollout: JsonObject
    cohorts: tuple[Cohort, ...]
    image: str = ""
    version: str = ""
    expectations: Mapping[str, Expectation] = field(default_factory=dict)

    @property
    def new_version(self) -> str:
        """What the new version is called."""
        return self.version or self.image.rpartition(":")[2]


@cache
def examples_folder() -> Path:
    """Return where the examples are: beside the package's modules, or at the top of the repository."""
    package = Path(__file__).parents[2]
    candidates = [package / "examples", package.parents[1] / "examples"]
    found = next((folder for folder in candidates if folder.is_dir()), None)
    if found is None:
        raise ConfigError(f"the examples are not installed; looked for {' and '.join(map(str, candidates))}")
    return found


def example_names() -> list[str]:
    """Return the names of all examples that can be played."""
    return sorted(path.parent.name for path in examples_folder().glob(f"*/{DESCRIPTION}"))


def load_example(name: str) -> Example:
    """Read an example.

    Raises:
        ConfigError: There is none of this name, or it can't be played.
    """
    names = example_names()
    if name not in names:
        raise ConfigError(f"there is no example {name!r} to play; there are {', '.join(names)}")
    folder = examples_folder() / name
    description = yaml.safe_load((folder / DESCRIPTION).read_text(encoding="utf-8"))
    documents = [
        document
        for path in sorted(folder.glob("*.yaml"))
        if path.name != DESCRIPTION
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]
    rollouts = [document for document in documents if document.get("kind") == "Rollout"]
    if len(rollouts) != 1:
        raise ConfigError(f"example {name} needs one Rollout, {len(rollouts)} were found in {folder}")
    return Example(
        name=name,
        title=description["title"],
        manifests=tuple(sorted((one for one in documents if one.get("kind") in KINDS), key=_order)),
        rollout=rollouts[0],
        image=description.get("image", ""),
        version=description.get("version", ""),
        cohorts=tuple(_cohort(entry) for entry in description["cohorts"]),
        expectations={entry["name"]: _expectation(entry) for entry in description["cohorts"]},
    )


def _order(document: JsonObject) -> bool:
    return bool(document["kind"] != "Namespace")


def _cohort(entry: dict[str, Any]) -> Cohort:
    known = _COHORT | _EXPECTATION
    if unknown := set(entry) - known:
        raise ConfigError(f"{DESCRIPTION}: a cohort has {', '.join(sorted(known))}, not {', '.join(sorted(unknown))}")
    return Cohort(**{key: value for key, value in entry.items() if key in _COHORT})


def _expectation(entry: dict[str, Any]) -> Expectation:
    return Expectation(shares=_by_stage(entry.get("expect")), copies=_by_stage(entry.get("copies")))


def _by_stage(percentages: dict[str, dict[str, float]] | None) -> dict[str, Shares]:
    """Read percentages by stage and name as parts of one."""
    return {
        stage: {str(name): percent / PERCENT for name, percent in named.items()}
        for stage, named in (percentages or {}).items()
    }
