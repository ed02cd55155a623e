"""Post a Kubernetes Event with a deadline of its own: it belongs to no call of the host."""

from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import EVENTS

# An Event is news: later than this it is of no use, and the next ones wait behind it.
EVENT_TIMEOUT = 5.0


def post_event(client: KubeClient, namespace: str, event: JsonObject) -> None:
    """Create the Event.

    Raises:
        KubeError: It could not be created.
    """
    client.post(EVENTS, namespace, event, deadline=Deadline.after(EVENT_TIMEOUT))
