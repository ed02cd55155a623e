"""Which kinds there are: one row a kind, with its versions and, if known, the schema of each.

A row comes from a CustomResourceDefinition (`definitions`) or from the table of built-in kinds (`builtin`). Rows are
frozen: a changed CustomResourceDefinition makes a new row.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from rollouts_gwapi_plugin.embedded.apiserver.validation import Checker
from rollouts_gwapi_plugin.model.base import JsonObject


@dataclass(frozen=True)
class Version:
    """One version of a kind; `schema` is OpenAPI v3 with Kubernetes' extensions, None where anything goes."""

    name: str
    served: bool = True
    storage: bool = False
    schema: JsonObject | None = None
    status: bool = False
    deprecation: str = ""
    # A stand-in's schema says defaults and list keys only; whatever else stands in an object passes.
    validated: bool = True

    @cached_property
    def checker(self) -> Checker | None:
        """What validates objects of this version."""
        return Checker(self.schema) if self.schema and self.validated else None


@dataclass(frozen=True)
class Kind:
    """A kind; `custom` ones follow the rules of custom resources, the others those of the core kinds."""

    group: str
    plural: str
    kind: str
    versions: tuple[Version, ...]
    namespaced: bool = True
    custom: bool = True
    # Core kinds differ in whether they count generations, and in what a delete answers.
    generation: bool = True
    deleted_object: bool = False
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What the store knows it by."""
        return self.group, self.plural

    @property
    def resource(self) -> str:
        """`plural.group`, as messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage(self) -> Version:
        """The version in which objects are kept."""
        return next(version for version in self.versions if version.storage)

    @property
    def preferred(self) -> str:
        """The name of the version to read by: the stored one if it is served, else the first that is."""
        served = [version.name for version in self.versions if version.served]
        return self.storage.name if self.storage.name in served else served[0] if served else ""

    def version(self, name: str) -> Version | None:
        """Find a served version."""
        return next((version for version in self.versions if version.name == name and version.served), None)

    def api_version(self, version: str) -> str:
        """`group/version`, or the version alone for the core group."""
        return f"{self.group}/{version}" if self.group else version

    @property
    def list_kind(self) -> str:
        """The kind of a list of these."""
        return f"{self.kind}List"


class Registry:
    """The kinds being served, by group and plural.

    The rows of `defaults` stand in for CustomResourceDefinitions: as soon as one of a group is registered, that group
    is served from CustomResourceDefinitions alone, as on a cluster.
    """

    def __init__(self, core: Iterable[Kind], defaults: Iterable[Kind]) -> None:
        self._core = {kind.key: kind for kind in core}
        self._defaults = {kind.key: kind for kind in defaults}
        self._defined: dict[tuple[str, str], Kind] = {}

    def register(self, kind: Kind) -> None:
        """Serve a kind that a CustomResourceDefinition describes."""
        self._defined = self._defined | {kind.key: kind}
        self._defaults = {key: row for key, row in self._defaults.items() if row.group != kind.group}

    def withdraw(self, key: tuple[str, str]) -> None:
        """Stop serving a kind."""
        self._defined = {known: row for known, row in self._defined.items() if known != key}

    def withdraw_defaults(self, group: str) -> None:
        """Stop standing in for the CustomResourceDefinitions of a group."""
        self._defaults = {key: row for key, row in self._defaults.items() if row.group != group}

    def all(self) -> list[Kind]:
        """All rows, in the order of their keys."""
        rows = self._core | self._defaults | self._defined
        return [rows[key] for key in sorted(rows)]

    def find(self, group: str, plural: str) -> Kind | None:
        """Find by group and plural."""
        key = (group, plural)
        return self._core.get(key) or self._defined.get(key) or self._defaults.get(key)

    def of_object(self, api_version: str, kind: str) -> tuple[Kind, Version] | None:
        """Find what serves an object, by its apiVersion and kind."""
        group, _, version = api_version.rpartition("/")
        for row in self.all():
            served = row.version(version)
            if row.group == group and row.kind == kind and served is not None:
                return row, served
        return None

    def named(self, name: str) -> Kind | None:
        """Find by kind, plural, singular or short name, with or without `.group`; the first in order wins."""
        plain, _, group = name.partition(".")
        for row in self.all():
            names = {row.kind, row.plural, row.singular or row.kind.lower(), *row.short_names}
            if plain in names and group in {"", row.group}:
                return row
        return None
