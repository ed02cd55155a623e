"""What the controller knows in one reconcile, and what it does, as frozen values. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rollouts_gwapi_plugin.embedded.host.rollout import RolloutReader
from rollouts_gwapi_plugin.model.base import JsonObject

Version = tuple[int, int]
# Since this one RemoveManagedRoutes is also sent while no canary is available.
REMOVES_WITHOUT_CANARY: Version = (1, 8)
# Since this one a weight that stands on a vanished canary is taken back before UpdateHash.
RESETS_BEFORE_HASH: Version = (1, 9)
NEWEST: Version = (1, 9)


@dataclass(frozen=True)
class ReplicaSet:
    """Pods of one template; `scale_down_at` is when they end, by the caller's clock."""

    desired: int = 0
    available: int = 0
    scale_down_at: float | None = None

    @property
    def fully_available(self) -> bool:
        """Whether it has pods and all are available."""
        return 0 < self.desired <= self.available


@dataclass(frozen=True)
class Destination:
    """A Service with its share of the traffic."""

    service_name: str
    pod_template_hash: str
    weight: int

    def json(self) -> JsonObject:
        """Return it as in a Rollout's status."""
        return {
            "serviceName": self.service_name,
            "podTemplateHash": self.pod_template_hash,
            "weight": self.weight,
        }


@dataclass(frozen=True)
class Experiment:
    """The experiment of the current step; `phase` is "" until it starts, then that of its status."""

    name: str
    phase: str = ""
    destinations: tuple[Destination, ...] = ()


@dataclass(frozen=True)
class Cluster:
    """What the controller reads; `selectors` has the pod hash of each Service that it has taken over."""

    rollout: JsonObject
    replica_sets: Mapping[str, ReplicaSet] = field(default_factory=dict)
    selectors: Mapping[str, str] = field(default_factory=dict)
    experiment: Experiment | None = None
    analysis: str = "Successful"

    @property
    def read(self) -> RolloutReader:
        """Return the questions to the Rollout."""
        return RolloutReader(self.rollout)

    @property
    def new(self) -> ReplicaSet | None:
        """The ReplicaSet of the wanted template."""
        return self.replica_sets.get(self.read.pod_hash)

    @property
    def stable(self) -> ReplicaSet | None:
        """The stable ReplicaSet."""
        return self.replica_sets.get(self.read.stable_hash)

    def with_replica_set(self, pod_hash: str, replica_set: ReplicaSet) -> "Cluster":
        """Return the cluster with a ReplicaSet changed or added."""
        return replace(self, replica_sets={**self.replica_sets, pod_hash: replica_set})

    def all_available(self) -> "Cluster":
        """Return the cluster after its pods have started and ended."""
        ready = {name: replace(found, available=found.desired) for name, found in self.replica_sets.items()}
        return replace(self, replica_sets=ready)


@dataclass(frozen=True)
class SwitchService:
    """A Service's selector is set to a pod hash."""

    service: str
    pod_hash: str


@dataclass(frozen=True)
class Call:
    """A call of the plugin: a method of the interface, and its arguments under their JSON names."""

    method: str
    arguments: JsonObject


Action = SwitchService | Call


@dataclass(frozen=True)
class Outcome:
    """How a reconcile's actions went.

    `error` is that of the call that ended it; `verified` is VerifyWeight's answer (None: not asked, or not
    implemented), `verify_error` its error.
    """

    error: str = ""
    verified: bool | None = None
    verify_error: str = ""
