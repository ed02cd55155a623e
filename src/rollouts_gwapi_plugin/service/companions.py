"""The objects that a route's managed routes need beside them: created, updated and deleted (decision D6).

They are there before the route is written, and go after it; the ledger has the managed route before and behind both. So
at no crash point is there one without a record, and one without its route does nothing. Each call looks at those that
must be there, so that what somebody changed or deleted is put right.
"""

from dataclasses import dataclass

from rollouts_gwapi_plugin.errors import NotFound, PluginError
from rollouts_gwapi_plugin.kube.conflicts import under_version_of
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ResourceType
from rollouts_gwapi_plugin.routes.companions import CompanionKind
from rollouts_gwapi_plugin.service.cluster import Cluster


@dataclass(frozen=True)
class CompanionWriter:
    """The companions of one route."""

    cluster: Cluster
    kind: CompanionKind
    namespace: str
    deadline: Deadline

    def ensure(self, wanted: JsonObject) -> None:
        """Have the object there as it should be; what others added to its metadata stays.

        Raises:
            PluginError: it can't be read or written; on a Conflict the route is to be looked at again.

        """
        resource = self._resource()
        name = wanted["metadata"]["name"]
        try:
            live = self.cluster.client.get(resource, self.namespace, name, deadline=self.deadline)
        except NotFound:
            self.cluster.client.post(resource, self.namespace, wanted, deadline=self.deadline)
            return
        changed = {**live, "spec": wanted["spec"], "metadata": _merged(live["metadata"], wanted["metadata"])}
        if changed != live:
            self.cluster.client.put(resource, under_version_of(live, changed), deadline=self.deadline)

    def delete(self, name: str) -> None:
        """Have no object of that name there.

        Raises:
            PluginError: it can't be deleted.

        """
        try:
            self.cluster.client.delete(self._resource(), self.namespace, name, deadline=self.deadline)
        except NotFound:
            return

    def delete_all(self, names: tuple[str, ...]) -> PluginError | None:
        """Delete what can be deleted; return the first error."""
        failure = None
        for name in names:
            try:
                self.delete(name)
            except PluginError as error:
                failure = failure or error
        return failure

    def _resource(self) -> ResourceType:
        kind = self.kind
        return self.cluster.discovery.resource(
            kind.group, kind.plural, kind.kind, kind.versions, deadline=self.deadline
        )


def _merged(live: JsonObject, wanted: JsonObject) -> JsonObject:
    maps = {field: {**(live.get(field) or {}), **wanted[field]} for field in ("labels", "annotations")}
    owners = {"ownerReferences": wanted["ownerReferences"]} if "ownerReferences" in wanted else {}
    return {**live, **maps, **owners}
