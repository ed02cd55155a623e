"""Kubernetes objects from files: YAML or JSON, several documents a file, lists, folders, `-` for standard input.

Returns each object with the place it was read from, in the files' order. What is no object of the API is a
`ConfigError` that names file and document; in a folder, where values and patches may lie about, it is passed over.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.base import JsonObject

STANDARD_INPUT = Path("-")
DEFINITION = "CustomResourceDefinition"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
# No object of the API is nested so deeply, and recursion has its limits.
MAX_DEPTH = 100
# What only the API server gives to an object.
SERVER_FIELDS = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences"}
)


@dataclass(frozen=True)
class Manifest:
    """An object, and where it was read."""

    value: JsonObject
    where: str

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.value.get("kind", ""))

    @property
    def is_object(self) -> bool:
        """Whether it has what every object of the API has."""
        return isinstance(self.value.get("kind"), str) and isinstance(self.value.get("metadata"), dict)

    def checked(self) -> "Manifest":
        """Return it.

        Raises:
            ConfigError: it is no object of the API.

        """
        if not self.kind:
            raise ConfigError(f"{self.where}: this is no Kubernetes object (it has no kind)")
        if not self.is_object:
            raise ConfigError(f"{self.where}: this {self.kind} has no metadata")
        return self

    def __str__(self) -> str:
        metadata = self.value.get("metadata") or {}
        namespace = metadata.get("namespace", "") if isinstance(metadata, dict) else ""
        name = metadata.get("name", "(no name)") if isinstance(metadata, dict) else "(no metadata)"
        return f"{self.kind} {namespace}/{name}" if namespace else f"{self.kind} {name}"


def read_manifests(
    paths: Iterable[Path], *, namespace: str = "", passed_over: Callable[[str], None] = lambda _where: None
) -> list[Manifest]:
    """Read all objects; those without a namespace get the given one, `passed_over` what was none in a folder.

    Raises:
        ConfigError: a file can't be read, or holds what is no object of the API.

    """
    found: list[Manifest] = []
    for path in paths:
        if path.is_dir():
            for file in sorted(one for one in path.iterdir() if one.suffix in SUFFIXES):
                for one in _of_file(file):
                    if one.is_object:
                        found.append(one)
                    else:
                        passed_over(one.where)
        else:
            found += [one.checked() for one in _of_file(path)]
    return [_in_namespace(manifest, namespace) for manifest in found]


def as_new(value: JsonObject) -> JsonObject:
    """Return an object as it can be created: without what a cluster's API server had put in."""
    metadata = {key: field for key, field in (value.get("metadata") or {}).items() if key not in SERVER_FIELDS}
    return {**{key: field for key, field in value.items() if key != "status"}, "metadata": metadata}


def _of_file(path: Path) -> Iterator[Manifest]:
    try:
        # Not by the locale's encoding, which the text of standard input would have.
        text = (sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()).decode()
        documents = list(yaml.load_all(text, Loader=_loader()))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{place}: this is not YAML: {getattr(error, 'problem', None) or error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: this is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: this is not UTF-8 text") from error
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror or error}") from error
    for number, document in enumerate(documents, start=1):
        where = f"{path}, document {number}" if len(documents) > 1 else str(path)
        if document is not None:
            _check_depth(document, where)
            yield from _objects(document, where)


def _check_depth(document: Any, where: str) -> None:
    """Refuse what is nested in itself, by an anchor of YAML, or too deeply: no JSON could say it, no API takes it."""
    entered: set[int] = set()
    above: dict[int, None] = {}
    # Each value is met twice: before what is in it, and after.
    waiting: list[tuple[Any, bool]] = [(document, False)]
    while waiting:
        value, done = waiting.pop()
        if done:
            del above[id(value)]
            continue
        if not isinstance(value, dict | list):
            continue
        if id(value) in above:
            raise ConfigError(f"{where}: this contains itself (an anchor of YAML is used within what it names)")
        if id(value) in entered:
            continue
        entered.add(id(value))
        above[id(value)] = None
        if len(above) > MAX_DEPTH:
            raise ConfigError(f"{where}: this is nested too deeply")
        waiting.append((value, True))
        waiting += [(item, False) for item in (value.values() if isinstance(value, dict) else value)]


def _objects(document: Any, where: str) -> Iterator[Manifest]:
    """Yield a document, or the items of a list; what is no mapping has no field that makes it an object."""
    value = document if isinstance(document, dict) else {}
    if str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(item, where)
    else:
        yield Manifest(value, where)


def _in_namespace(manifest: Manifest, namespace: str) -> Manifest:
    metadata = manifest.value["metadata"]
    if metadata.get("namespace") or not namespace:
        return manifest
    return Manifest({**manifest.value, "metadata": {**metadata, "namespace": namespace}}, manifest.where)


@cache
def _loader() -> type[yaml.SafeLoader]:
    """Take the parser in C where it is, without YAML's own times: the API knows texts only."""
    base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        first: [entry for entry in entries if entry[0] != "tag:yaml.org,2002:timestamp"]
        for first, entries in base.yaml_implicit_resolvers.items()
    }
    return type("_Loader", (base,), {"yaml_implicit_resolvers": resolvers})
