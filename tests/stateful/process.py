"""The plugin as the machines' controllers see it: in this process, and mortal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.controller import Reply
from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.model.calls import (
    HeaderRouteCall,
    MirrorRouteCall,
    RemoveManagedRoutesCall,
    UpdateHashCall,
    Verification,
    WeightCall,
)
from rollouts_gwapi_plugin.model.kube import EVENTS
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.observe.metrics import Metrics
from rollouts_gwapi_plugin.service.router import TrafficRouter


class Crash(BaseException):
    """The process died; nothing of the plugin may catch it."""


class InProcess:
    """The plugin in this process; it can die after any write."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._router = self._start()
        self.writes_left: int | None = None

    def _start(self) -> TrafficRouter:
        router = TrafficRouter(ServiceSettings(kubeconfig=str(self._kubeconfig)), Metrics())
        client = router._connector.cluster().client
        client.put = self._dying(client.put)  # type: ignore[method-assign]
        client.post = self._dying(client.post)  # type: ignore[method-assign]
        client.delete = self._dying(client.delete)  # type: ignore[method-assign]
        return router

    def _dying(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def die_after(*arguments: Any, **options: Any) -> Any:
            result = write(*arguments, **options)
            if arguments[0] == EVENTS:
                # Events have a thread of their own; the process dies in the thread of a call here.
                return result
            if self.writes_left is not None and not options.get("dry_run"):
                self.writes_left -= 1
                if self.writes_left <= 0:
                    raise Crash
            return result

        return die_after

    def ping(self) -> None:
        """Do nothing: it is always there, since the controller starts it again."""

    def call(self, call: Call) -> Reply:
        """Make the call; a crash is what the controller sees of one, and the next call meets a new process."""
        try:
            return self._call(call.method, call.arguments)
        except PluginError as error:
            return Reply(error=str(error))
        except Crash:
            self._router._connector.cluster().client.close()
            self.writes_left = None
            self._router = self._start()
            return Reply(error="connection is shut down")

    def _call(self, method: str, arguments: dict[str, Any]) -> Reply:
        router = self._router
        match method:
            case "SetWeight":
                router.set_weight(WeightCall.model_validate(arguments))
            case "VerifyWeight":
                verified = router.verify_weight(WeightCall.model_validate(arguments))
                return Reply(verified=verified is Verification.VERIFIED)
            case "SetHeaderRoute":
                router.set_header_route(HeaderRouteCall.model_validate(arguments))
            case "SetMirrorRoute":
                router.set_mirror_route(MirrorRouteCall.model_validate(arguments))
            case "RemoveManagedRoutes":
                router.remove_managed_routes(RemoveManagedRoutesCall.model_validate(arguments))
            case "UpdateHash":
                router.update_hash(UpdateHashCall.model_validate(arguments))
        return Reply(text=router.type_name())
