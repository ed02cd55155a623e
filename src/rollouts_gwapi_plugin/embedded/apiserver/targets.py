"""What a request is about, and how it is to be done."""

from dataclasses import dataclass, field

from rollouts_gwapi_plugin.embedded.apiserver.kinds import Kind, Version


@dataclass(frozen=True)
class Target:
    """An object, or a kind's objects in a namespace, at one version."""

    kind: Kind
    version: Version
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Where the store has it."""
        return self.namespace, self.name

    @property
    def api_version(self) -> str:
        """The apiVersion of the objects in the request and in its answer."""
        return self.kind.api_version(self.version.name)


@dataclass(frozen=True)
class Options:
    """How a write is done: by which manager, for real or not, what about unknown fields (`fieldValidation`)."""

    manager: str = "unknown"
    dry_run: bool = False
    validation: str = "Warn"
    force: bool = False
    warnings: list[str] = field(default_factory=list, compare=False)
