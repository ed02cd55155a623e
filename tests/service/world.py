"""A namespace `shop` on an embedded API server, and the service that works in it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.model.calls import (
    HeaderRouteCall,
    MirrorRouteCall,
    RemoveManagedRoutesCall,
    Verification,
    WeightCall,
)
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.observe.metrics import Metrics
from rollouts_gwapi_plugin.service.router import TrafficRouter

PLUGIN_KEY = "argoproj-labs/gatewayAPI"
LEDGER = "argo-gatewayapi-configmap"
Json = dict[str, Any]


def rule(refs: str, **fields: Any) -> Json:
    """Make a rule from a text such as `s100 c0 x`: names with weights, port 80."""
    backends: list[Json] = []
    for text in refs.split():
        name = text.rstrip("0123456789")
        weight = {"weight": int(text[len(name) :])} if text != name else {}
        backends.append({"name": name, "port": 80, **weight})
    return {**fields, "backendRefs": backends}


def route(*rules: Json, name: str = "web", kind: str = "HTTPRoute", version: str = "v1") -> Json:
    """Make a route in `shop`."""
    return {
        "apiVersion": f"gateway.networking.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"parentRefs": [{"name": "gw"}], "rules": list(rules)},
    }


def header_step(name: str, header: str = "X-Test", value: str = "1") -> Json:
    """Make the body of a setHeaderRoute step."""
    return {"name": name, "match": [{"headerName": header, "headerValue": {"exact": value}}]}


@dataclass
class Shop:
    """A Rollout `shop/web` in the middle of an update, and its calls."""

    api: ApiServer
    folder: Path
    config: Json = field(default_factory=lambda: {"httpRoute": "web"})
    steps: list[Json] = field(default_factory=list)
    managed: list[str] = field(default_factory=list)
    status: Json = field(default_factory=lambda: {"stableRS": "old", "currentPodHash": "new"})
    metadata: Json = field(default_factory=dict)
    canary: Json = field(default_factory=dict)
    plugins: Json | None = None
    settings: Json = field(default_factory=dict)
    _router: TrafficRouter | None = None

    @property
    def router(self) -> TrafficRouter:
        """The service; `restart` makes another."""
        if self._router is None:
            kubeconfig = self.folder / "kubeconfig"
            self.api.write_kubeconfig(kubeconfig)
            self._router = TrafficRouter(ServiceSettings(kubeconfig=str(kubeconfig), **self.settings), Metrics())
        return self._router

    def restart(self) -> None:
        """Forget the process: the next call is made by a new one."""
        self._router = None

    def rollout(self) -> Json:
        """Return the Rollout as the controller would send it."""
        routing = {
            "managedRoutes": [{"name": name} for name in self.managed],
            "plugins": {PLUGIN_KEY: self.config} if self.plugins is None else self.plugins,
        }
        canary = {"stableService": "s", "canaryService": "c", "steps": self.steps, **self.canary}
        return {
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "uid": "uid-web",
                "resourceVersion": "7",
                "annotations": {"rollout.argoproj.io/revision": "2"},
                **self.metadata,
            },
            "spec": {
                "strategy": {"canary": {**canary, "trafficRouting": {**routing, **canary.get("trafficRouting", {})}}}
            },
            "status": self.status,
        }

    def weight(self, weight: int, **destinations: int) -> None:
        """SetWeight."""
        self.router.set_weight(self._weight_call(weight, destinations))

    def verify(self, weight: int, **destinations: int) -> Verification:
        """VerifyWeight."""
        return self.router.verify_weight(self._weight_call(weight, destinations))

    def header(self, name: str, header: str = "X-Test", value: str = "1") -> None:
        """SetHeaderRoute."""
        step = header_step(name, header, value)
        call = {"rollout": self.rollout(), "setHeaderRoute": step}
        self.router.set_header_route(HeaderRouteCall.model_validate(call))

    def unset(self, name: str) -> None:
        """SetHeaderRoute with only a name."""
        call = {"rollout": self.rollout(), "setHeaderRoute": {"name": name}}
        self.router.set_header_route(HeaderRouteCall.model_validate(call))

    def mirror(self, name: str, *match: Json, percentage: int | None = None) -> None:
        """SetMirrorRoute."""
        step: Json = {"name": name, "match": list(match), "percentage": percentage}
        call = {"rollout": self.rollout(), "setMirrorRoute": step}
        self.router.set_mirror_route(MirrorRouteCall.model_validate(call))

    def remove(self) -> None:
        """RemoveManagedRoutes."""
        self.router.remove_managed_routes(RemoveManagedRoutesCall.model_validate({"rollout": self.rollout()}))

    def _weight_call(self, weight: int, destinations: dict[str, int]) -> WeightCall:
        asked = [{"serviceName": name, "weight": share} for name, share in destinations.items()]
        call = {"rollout": self.rollout(), "desiredWeight": weight, "additionalDestinations": asked}
        return WeightCall.model_validate(call)

    def rules(self, name: str = "web", kind: str = "HTTPRoute") -> list[str]:
        """Return the rules of a route, each as `name: backend=weight …`."""
        return [_line(item) for item in self.api.read(kind, "shop", name)["spec"].get("rules", [])]

    def ledger(self) -> Json:
        """Return the ledger's data; empty where there is no ConfigMap."""
        config_map = self.api.find("ConfigMap", "shop", LEDGER)
        data: Json = (config_map or {}).get("data") or {}
        return data

    def requests(self, call: Callable[[], object]) -> list[str]:
        """Make a call and return its requests, `verb plural`, discovery aside."""
        before = len(self.api.requests)
        call()
        made = list(self.api.requests)[before:]
        return [f"{request.verb} {request.plural}" for request in made if request.plural]


def _line(item: Json) -> str:
    backends = " ".join(f"{ref['name']}={ref.get('weight', '-')}" for ref in item.get("backendRefs", []))
    return f"{item['name']}: {backends}" if item.get("name") else backends


def service(name: str, ports: Iterable[int] = (80,)) -> Json:
    """Make a Service in `shop`."""
    listed = [{"name": f"p{port}", "port": port} for port in ports]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"ports": listed},
    }
