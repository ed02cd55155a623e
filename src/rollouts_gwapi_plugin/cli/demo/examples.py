"""The examples that can be played: folders of manifests with a `demo.yaml`.

They are the repository's `examples/`, and part of the installed package (`rollouts_gwapi_plugin/examples`), so that a
wheel or the one-file executable can play them without a clone. All manifests of a folder that a sandbox has a use for
are taken; what is for a real cluster only (its kind is not in `KINDS`) is left out.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rollouts_gwapi_plugin.embedded.load import Cohort
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
        "Service",
    }
)


@dataclass(frozen=True)
class Example:
    """One example: what is applied, the Rollout, the image of the new version, and who sends requests."""

    name: str
    title: str
    manifests: tuple[JsonObject, ...]
    rollout: JsonObject
    image: str
    cohorts: tuple[Cohort, ...]


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
        image=description["image"],
        cohorts=tuple(_cohort(entry) for entry in description["cohorts"]),
    )


def _order(document: JsonObject) -> bool:
    return bool(document["kind"] != "Namespace")


def _cohort(entry: dict[str, Any]) -> Cohort:
    known = {"name", "rate", "headers", "host", "path", "method"}
    if unknown := set(entry) - known:
        raise ConfigError(f"{DESCRIPTION}: a cohort has {', '.join(sorted(known))}, not {', '.join(sorted(unknown))}")
    return Cohort(**entry)
