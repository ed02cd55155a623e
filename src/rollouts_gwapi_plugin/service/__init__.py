"""The eight calls of the controller, put together from reconcilers and the API."""

from typing import Final, Protocol

from rollouts_gwapi_plugin.model.calls import TrafficRouterService
from rollouts_gwapi_plugin.model.settings import ServiceSettings

# What Type answers.
TYPE_NAME: Final = "GatewayAPI"


class Service(TrafficRouterService, Protocol):
    """The calls, and their end."""

    def close(self, seconds: float) -> None:
        """Make the Events that wait, for so long at most; no call follows."""


def build(settings: ServiceSettings) -> Service:
    """Make the service; it connects to the API server when it is first asked to do something."""
    from rollouts_gwapi_plugin.observe.metrics import start_metrics  # noqa: PLC0415 - only where a service is built
    from rollouts_gwapi_plugin.service.router import TrafficRouter  # noqa: PLC0415 - only where a service is built

    return TrafficRouter(settings, start_metrics(settings.metrics_port))
