"""What the process was started with, as the service sees it.

Made from the flags and the environment before anything heavy is imported, so it is a plain dataclass: no pydantic here.
"""

from dataclasses import dataclass
from pathlib import PurePath

# The peer's 5/10 starves the controller's ten workers (decision D20).
DEFAULT_QPS = 50.0
DEFAULT_BURST = 100


@dataclass(frozen=True)
class ServiceSettings:
    """Everything that `service.build` needs to know.

    `allowed_namespaces` limits whose routes may be written beside those in the Rollout's own namespace: None means
    every namespace, an empty set means no other one. `plugin_name` is the plugin's key in Rollouts where it was given;
    `executable_key` is what the executable's path says (decision D25).
    """

    kubeconfig: str | None = None
    qps: float = DEFAULT_QPS
    burst: int = DEFAULT_BURST
    plugin_name: str | None = None
    executable: str = ""
    allowed_namespaces: frozenset[str] | None = None
    metrics_port: int | None = None

    @property
    def executable_key(self) -> str | None:
        """The last two elements of the executable's path; None where it has fewer."""
        parts = [part for part in PurePath(self.executable).parts if part != "/"]
        return "/".join(parts[-2:]) if len(parts) > 1 else None
