"""How objects of the API are named here."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class ResourceType:
    """A kind that the API server serves, at one version; `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """The path under which the API server has it."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


@dataclass(frozen=True, order=True)
class ObjectRef:
    """One object, as error messages name it: `HTTPRoute shop/web`."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


CONFIG_MAPS = ResourceType("", "v1", "configmaps", "ConfigMap")
SERVICES = ResourceType("", "v1", "services", "Service")
EVENTS = ResourceType("", "v1", "events", "Event")
