"""The cluster as commands reach it: a client, and its Rollouts.

A command writes nothing and makes no Events by this module; what does write is said where it does.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rollouts_gwapi_plugin import log
from rollouts_gwapi_plugin.cli.options import Place
from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.kube.auth import ClusterConfig, load_cluster_config
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.discovery import Discovery
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ResourceType
from rollouts_gwapi_plugin.observe.events import EventRecorder
from rollouts_gwapi_plugin.service.cluster import Cluster

ROLLOUTS: Final = ResourceType("argoproj.io", "v1alpha1", "rollouts", "Rollout")
# What concerns one Rollout, all its routes together; a person waits for it.
SECONDS: Final = 30.0


@dataclass(frozen=True)
class Connection:
    """An open connection; `namespace` is the Rollouts'."""

    cluster: Cluster
    namespace: str
    config: ClusterConfig

    def deadline(self) -> Deadline:
        """Return the time for what comes next."""
        return Deadline.after(SECONDS)

    def rollout(self, name: str) -> JsonObject:
        """Read a Rollout.

        Raises:
            NotFound: there is none of the name, or no such kind.

        """
        return self.cluster.client.get(ROLLOUTS, self.namespace, name, deadline=self.deadline())

    def rollouts(self) -> list[JsonObject]:
        """Read all Rollouts of the namespace."""
        return self.cluster.client.list(ROLLOUTS, self.namespace, deadline=self.deadline())


@contextmanager
def connected(place: Place) -> Iterator[Connection]:
    """Open a connection.

    Raises:
        ConfigError: there is no way to a cluster.

    """
    # Standard output is for the result.
    log.configure("text", "warn")
    config = load_cluster_config(place.kubeconfig, place.context)
    client = KubeClient(config)
    events = EventRecorder(lambda _namespace, _event: None)
    try:
        yield Connection(Cluster(client, Discovery(client), events), place.namespace or config.namespace, config)
    finally:
        client.close()


def split_name(text: str, namespace: str) -> tuple[str, str]:
    """Return namespace and name of `name` or `namespace/name`.

    Raises:
        ConfigError: the text is neither.

    """
    parts: Sequence[str] = text.split("/")
    if not all(parts) or len(parts) > 2:  # noqa: PLR2004 - namespace and name
        raise ConfigError(f"{text!r} is no name of a Rollout; NAME or NAMESPACE/NAME is expected")
    return (parts[0], parts[1]) if len(parts) > 1 else (namespace, parts[0])
