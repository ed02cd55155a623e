"""The service, built when it is first needed and not before.

The handshake must not wait for it, and must not fail with it: what keeps it from being built (no kubeconfig, say) is
the answer of InitPlugin and of each call, and each of them tries again (decision D4).
"""

import threading
from collections.abc import Callable

from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.model.calls import (
    HeaderRouteCall,
    MirrorRouteCall,
    RemoveManagedRoutesCall,
    UpdateHashCall,
    Verification,
    WeightCall,
)
from rollouts_gwapi_plugin.service import TYPE_NAME, Service


class LazyService:
    """A `TrafficRouterService` that passes on to the one that `build` makes."""

    def __init__(self, build: Callable[[], Service]) -> None:
        self._build = build
        self._built: Service | None = None
        self._building = threading.Lock()

    def warm(self) -> None:
        """Build now, so that the first call need not; a failure is left to the calls to tell."""
        try:
            self._service()
        except PluginError as error:
            get_logger().warning("the service can't be built yet; the next call tries again", error=str(error))
        except Exception as error:  # noqa: BLE001 - the calls tell it; this thread has nobody to tell
            get_logger().error("the service can't be built by a bug", exc_info=error)

    def init_plugin(self) -> None:
        """Build the service where it is not, and prepare it."""
        self._service().init_plugin()

    def type_name(self) -> str:
        """Return the type that the controller shows: Type can't tell an error, so it asks nobody (decision D25)."""
        return TYPE_NAME

    def update_hash(self, call: UpdateHashCall) -> None:
        """Pass on."""
        self._service().update_hash(call)

    def set_weight(self, call: WeightCall) -> None:
        """Pass on."""
        self._service().set_weight(call)

    def verify_weight(self, call: WeightCall) -> Verification:
        """Pass on."""
        return self._service().verify_weight(call)

    def set_header_route(self, call: HeaderRouteCall) -> None:
        """Pass on."""
        self._service().set_header_route(call)

    def set_mirror_route(self, call: MirrorRouteCall) -> None:
        """Pass on."""
        self._service().set_mirror_route(call)

    def remove_managed_routes(self, call: RemoveManagedRoutesCall) -> None:
        """Pass on."""
        self._service().remove_managed_routes(call)

    def close(self, seconds: float) -> None:
        """Have the service end what it began, if there is one; a build that still runs is not waited for."""
        if self._built is not None:
            self._built.close(seconds)

    def _service(self) -> Service:
        with self._building:
            if self._built is None:
                self._built = self._build()
            return self._built
