"""ConfigMaps of the plugin's own that finished rollouts left with nothing in them, so that no Rollout tells of them.

Beside living Rollouts they can go as well: the plugin makes one anew where it has something to record.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.cli.leftovers import OUR_LABEL, ledger_maps
from rollouts_gwapi_plugin.errors import Conflict, NotFound, PluginError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS

_LABEL_KEY, _, _LABEL_VALUE = OUR_LABEL.partition("=")


@dataclass
class EmptyRecord:
    """One of them as it was found, and what became of it."""

    namespace: str
    name: str
    resource_version: str
    deleted: bool = False
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}"

    def delete(self, connection: Connection) -> None:
        """Delete it if it is still as it was found."""
        client, deadline = connection.cluster.client, connection.deadline()
        try:
            client.delete(
                CONFIG_MAPS, self.namespace, self.name, deadline=deadline, resource_version=self.resource_version
            )
        except (NotFound, Conflict):
            # Gone already, or a Rollout has just recorded something.
            return
        except PluginError as error:
            self.errors.append(str(error))
            return
        self.deleted = True


def is_empty_record(value: JsonObject) -> bool:
    """Whether a ConfigMap is the plugin's own and nothing is in it."""
    ours = (value["metadata"].get("labels") or {}).get(_LABEL_KEY) == _LABEL_VALUE
    return ours and not value.get("data") and not value.get("binaryData")


def empty_records(connection: Connection, namespace: str, names: Iterable[str]) -> list[EmptyRecord]:
    """Return those of a namespace; `names` are looked at where ConfigMaps can't be listed.

    Raises:
        KubeError: a named one can't be read, or the API server gives no answer.

    """
    return [
        EmptyRecord(namespace, name, str(value["metadata"]["resourceVersion"]))
        for name, value in ledger_maps(connection, namespace, names).items()
        if is_empty_record(value)
    ]
