"""The process's one way to the API server, made at the first call and made again after a failure (decision D4)."""

import threading
from dataclasses import dataclass

from rollouts_gwapi_plugin.errors import KubeError
from rollouts_gwapi_plugin.kube.auth import load_cluster_config
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.discovery import Discovery
from rollouts_gwapi_plugin.kube.event_post import post_event
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ResourceType
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.observe.events import EventRecorder
from rollouts_gwapi_plugin.observe.metrics import Metrics
from rollouts_gwapi_plugin.routes.kinds import RouteKind

MIRROR_PERCENT = "spec.rules[].filters[].requestMirror.percent"


@dataclass(frozen=True)
class Cluster:
    """A client and what is known of its API server."""

    client: KubeClient
    discovery: Discovery
    events: EventRecorder

    def resource(self, kind: RouteKind, deadline: Deadline) -> ResourceType:
        """Return the kind at the version that the API server serves (D23)."""
        return self.discovery.resource(kind.group, kind.plural, kind.kind, kind.versions, deadline=deadline)

    def loses_mirror_percent(self, resource: ResourceType, deadline: Deadline, sample: JsonObject | None = None) -> str:
        """Return why a mirror's percentage can't be relied on; empty where it can.

        `sample` is a route with one, which is tried as a dry-run write where the API server shows no schema.
        """
        try:
            kept = self.discovery.preserves(resource, MIRROR_PERCENT, sample=sample, deadline=deadline)
        except KubeError as error:
            return (
                f"it can't be found out whether the installed {resource.kind} CRD keeps requestMirror.percent: {error}"
            )
        return "" if kept else f"the installed {resource.kind} CRD drops requestMirror.percent"

    def most_rules(self, resource: ResourceType, deadline: Deadline) -> int | None:
        """Return how many rules the installed CRD takes; None where that can't be found out."""
        return self._most_items(resource, "spec.rules", deadline)

    def most_matches(self, resource: ResourceType, deadline: Deadline) -> int | None:
        """Return how many matches of a rule the installed CRD takes; None where that can't be found out."""
        return self._most_items(resource, "spec.rules[].matches", deadline)

    def _most_items(self, resource: ResourceType, path: str, deadline: Deadline) -> int | None:
        try:
            return self.discovery.most_items(resource, path, deadline=deadline)
        except KubeError:
            return None


class Connector:
    """Makes the cluster when it is first needed; a failure is raised, and tried again by the next call."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._lock = threading.Lock()
        self._cluster: Cluster | None = None

    def cluster(self) -> Cluster:
        """Return the cluster.

        Raises:
            PluginError: no configuration, or not one that can be used.

        """
        with self._lock:
            if self._cluster is None:
                self._cluster = self._connect()
            return self._cluster

    def close(self, seconds: float) -> None:
        """Make the Events that wait, for so long at most; who is still connecting has none."""
        cluster = self._cluster
        if cluster is not None:
            cluster.events.close(seconds)

    def _connect(self) -> Cluster:
        settings = self._settings
        client = KubeClient(
            load_cluster_config(settings.kubeconfig),
            qps=settings.qps,
            burst=settings.burst,
            on_request=self._metrics.api_request,
        )
        events = EventRecorder(
            lambda namespace, event: post_event(client, namespace, event), on_drop=self._metrics.event_dropped
        )
        return Cluster(client, Discovery(client), events)
