"""What the controller has asked the plugin for, and what that means for each cohort's requests. Pure.

`Traffic` follows the calls of the controller: the weight, the experiment's destinations, the managed routes that stand.
Its name is the stage's. `Expectation` is what an example says of one cohort: in which stage its requests are to go
elsewhere than the weights say. Shares are fractions of one, by the name of pods (a version, a template of an
experiment) or of a Service.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.rollout import RolloutReader
from rollouts_gwapi_plugin.embedded.host.sequence import Plan

PROMOTED = "promoted"
Shares = Mapping[str, float]


@dataclass(frozen=True)
class Asked:
    """Who is to answer a cohort's requests, and who is to get copies of them, in parts of one."""

    shares: Shares
    copies: Shares = field(default_factory=dict)


@dataclass(frozen=True)
class Expectation:
    """What an example says of one cohort, by stage; for other stages the weights hold, and no copies."""

    shares: Mapping[str, Shares] = field(default_factory=dict)
    copies: Mapping[str, Shares] = field(default_factory=dict)

    @property
    def stages(self) -> set[str]:
        """The stages that it speaks of; each has to take place."""
        return {*self.shares, *self.copies}

    def asked(self, stage: str, by_weight: Shares) -> Asked:
        """Return what is asked in a stage; `by_weight` are the shares that the weights give."""
        nowhere = {name: 0.0 for copies in self.copies.values() for name in copies}
        return Asked(self.shares.get(stage, by_weight), {**nowhere, **self.copies.get(stage, {})})


@dataclass(frozen=True)
class Traffic:
    """The state that the plugin was asked for; `destinations` has the weights of an experiment's Services."""

    weight: int = 0
    destinations: tuple[tuple[str, int], ...] = ()
    managed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The stage's name: `weight 20`, `weight 0, experiment`, `weight 20, testers`."""
        return ", ".join([f"weight {self.weight}", *(["experiment"] if self.destinations else []), *self.managed])

    @property
    def clean(self) -> bool:
        """Whether nothing but the weights is to be on the routes."""
        return not self.destinations and not self.managed

    def after(self, plan: Plan) -> "Traffic":
        """Return the state that a reconcile asks for."""
        traffic = self
        for call in plan.calls:
            traffic = traffic._after_call(call)
        return traffic

    def weights(self, read: RolloutReader) -> dict[str, int]:
        """Return the weight of each Service in a rule that has the Rollout's pair."""
        stable, canary = read.services()
        others = dict(self.destinations)
        return {stable: read.max_weight - self.weight - sum(others.values()), canary: self.weight, **others}

    def shares(self, read: RolloutReader, backend_of: Callable[[str], str]) -> dict[str, float]:
        """Return the share of each version that gets any; `backend_of` gives the name of the pods behind a Service."""
        found: dict[str, float] = {}
        for service, weight in self.weights(read).items():
            name = backend_of(service)
            found[name] = found.get(name, 0.0) + weight / read.max_weight
        return {name: part for name, part in found.items() if part}

    def _after_call(self, call: Call) -> "Traffic":
        match call.method:
            case "RemoveManagedRoutes":
                return replace(self, managed=())
            case "SetHeaderRoute":
                return self._with_managed(call.arguments["setHeaderRoute"])
            case "SetMirrorRoute":
                return self._with_managed(call.arguments["setMirrorRoute"])
            case "SetWeight":
                others = call.arguments["additionalDestinations"]
                pairs = tuple((one["serviceName"], int(one["weight"])) for one in others)
                return replace(self, weight=int(call.arguments["desiredWeight"]), destinations=pairs)
        return self

    def _with_managed(self, step: Mapping[str, Any]) -> "Traffic":
        others = tuple(name for name in self.managed if name != step["name"])
        return replace(self, managed=(*others, step["name"]) if step.get("match") else others)
