"""What a call asks for, computed once from the call, the Rollout and the configuration.

`Desired` holds every number and name that a reconciler needs, so that a reconciler is a function of a route, a record
and this. Nothing here depends on a route.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.configuration import Configuration
from rollouts_gwapi_plugin.model.gloo_config import GlooConfig
from rollouts_gwapi_plugin.model.rollout import (
    ExperimentTemplate,
    PingPong,
    Rollout,
    SetHeaderRoute,
    SetMirrorRoute,
    WeightDestination,
)
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.notes import Note

# The API's limit of backendRef.weight.
MAX_API_WEIGHT = 1_000_000

ManagedStep = SetHeaderRoute | SetMirrorRoute


@dataclass(frozen=True)
class ServicePort:
    """A port of a Service."""

    name: str
    port: int


@dataclass(frozen=True)
class Destination:
    """An experiment's Service with its weight; `ports` are the Service's, None until it is read."""

    name: str
    weight: int
    ports: tuple[ServicePort, ...] | None = None


@dataclass(frozen=True)
class Label:
    """The in-progress label; one that is switched off is still taken off where it stands."""

    key: str
    value: str
    enabled: bool = True


@dataclass(frozen=True)
class Former:
    """The rules that were weighted before the configuration named another one; an empty name: all with the pair."""

    rule_name: str
    # What the canary was given there: a rule that has another weight now is the user's affair (D29).
    weight: int

    def selects(self, rule_name: str | None) -> bool:
        """Whether a rule of this name was managed."""
        return _selects(self.rule_name, rule_name)


@dataclass(frozen=True)
class Desired:
    """The wanted state of every route of one Rollout."""

    rollout: str
    rollout_name: str
    namespace: str
    stable: str
    canary: str
    max_weight: int = 100
    weight: int = 0
    destinations: tuple[Destination, ...] = ()
    # Why the destinations can't be set now (a Service or the ledger); empty where they can.
    destination_problem: str = ""
    # The stable Service's ports, read only with destinations: they give a port number its name.
    stable_ports: tuple[ServicePort, ...] = ()
    # Names of the experiment templates in the Rollout's steps.
    template_names: frozenset[str] = frozenset()
    # The Services that these templates name themselves, without those that take the Rollout's own traffic.
    template_services: frozenset[str] = frozenset()
    managed_names: tuple[str, ...] = ()
    # What the Rollout's steps say of each managed route up to now; a step without a match means removed.
    steps: Mapping[str, ManagedStep] = field(default_factory=dict)
    # Every managed step of the Rollout, past and to come: by these another plugin's rules are recognised.
    all_steps: tuple[ManagedStep, ...] = ()
    heal: bool = False
    # Managed rules are left just as they are: what can't be recorded must not be made (D6, D8).
    keep_managed: bool = False
    match_any: bool = False
    managed_first: bool = False
    rule_name: str = ""
    # The rule that is to be managed of a route, by the route's kind and name; it wins over the one of all routes.
    rule_names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    former: Former | None = None
    # The two Services take turns: after a promotion the canary of before is stable.
    ping_pong: bool = False
    label: Label | None = None
    # Not in the middle of an update: aborted, promoted, or of the first revision.
    resting: bool = False
    # What only RouteTables know.
    gloo: GlooConfig | None = None

    def on(self, route: Route) -> "Desired":
        """Return what is wanted of this route."""
        own = self.rule_names.get((route.kind, route.metadata.name), "")
        return replace(self, rule_name=own) if own else self

    def selects(self, rule_name: str | None) -> bool:
        """Whether a rule of this name, or (None) without one, is to be managed."""
        return _selects(self.rule_name, rule_name)


def _selects(configured: str, rule_name: str | None) -> bool:
    """Whether `ruleName` chooses the rule; where it is not configured every rule is chosen."""
    return configured in ("", rule_name)


def services(rollout: Rollout) -> tuple[str, str]:
    """Return the stable and the canary Service; ping-pong wins where both are given, as in the controller.

    Raises:
        ConfigError: the Rollout names neither pair, or one Service twice.

    """
    stable, canary = _named_services(rollout)
    if stable == canary:
        raise ConfigError(
            f"Rollout {rollout.key}: stable and canary Service are both {stable!r}; traffic can only be split between"
            " two Services"
        )
    return stable, canary


def _takes_turns(rollout: Rollout) -> PingPong | None:
    """Return the two Services that take turns, where both are named."""
    ping_pong = rollout.canary.ping_pong
    return ping_pong if ping_pong and ping_pong.ping_service and ping_pong.pong_service else None


def _named_services(rollout: Rollout) -> tuple[str, str]:
    canary, ping_pong = rollout.canary, _takes_turns(rollout)
    if ping_pong is not None:
        ping, pong = ping_pong.ping_service, ping_pong.pong_service
        return (ping, pong) if rollout.status.canary.stable_ping_pong == "ping" else (pong, ping)
    missing = [
        name
        for name, value in (("canaryService", canary.canary_service), ("stableService", canary.stable_service))
        if not value
    ]
    if missing:
        raise ConfigError(
            f"Rollout {rollout.key}: spec.strategy.canary.{' and '.join(missing)} must be set"
            " (or pingPong.pingService and pingPong.pongService)"
        )
    return canary.stable_service, canary.canary_service


def managed_steps(rollout: Rollout) -> tuple[ManagedStep, ...]:
    """Return every header and mirror step, in order."""
    return tuple(
        managed
        for step in rollout.canary.steps
        for managed in (step.set_header_route, step.set_mirror_route)
        if managed is not None and managed.name
    )


def last_steps(rollout: Rollout) -> dict[str, ManagedStep]:
    """Return the last header or mirror step of each name at or before the current step; past the end: of all steps."""
    steps = rollout.canary.steps
    index = rollout.status.current_step_index
    last: dict[str, ManagedStep] = {}
    for step in steps[: index + 1]:
        for managed in (step.set_header_route, step.set_mirror_route):
            if managed is not None and managed.name:
                last[managed.name] = managed
    return last


def managed_names(rollout: Rollout) -> tuple[str, ...]:
    """Return the managed routes' names, in managedRoutes order, those that only steps name behind."""
    names = [route.name for route in rollout.traffic_routing.managed_routes]
    names += [managed.name for managed in managed_steps(rollout)]
    return tuple(dict.fromkeys(name for name in names if name))


def _templates(rollout: Rollout) -> Iterator[ExperimentTemplate]:
    for step in rollout.canary.steps:
        yield from step.experiment.templates if step.experiment else ()


def _template_services(rollout: Rollout) -> frozenset[str]:
    """Return the Services that experiment templates name; one of the pair's is never an experiment's."""
    canary, named = rollout.canary, {template.service.name for template in _templates(rollout) if template.service}
    turns = canary.ping_pong or PingPong()
    pair = {canary.stable_service, canary.canary_service, turns.ping_service, turns.pong_service}
    return frozenset(named - pair - {""})


def progressing(rollout: Rollout) -> bool:
    """Whether managed routes are wanted at all: not aborted, promoted or of the first revision (D17)."""
    status = rollout.status
    return not (status.abort or status.promote_full or rollout.fully_promoted) and rollout.revision > 1


def base_desired(rollout: Rollout, config: Configuration) -> Desired:
    """Return what every call has in common.

    Raises:
        ConfigError: no Services, or a maximum that the API does not take.

    """
    stable, canary = services(rollout)
    maximum = rollout.max_traffic_weight
    if not 0 < maximum <= MAX_API_WEIGHT:
        raise ConfigError(
            f"Rollout {rollout.key}: spec.strategy.canary.trafficRouting.maxTrafficWeight is {maximum};"
            f" the Gateway API takes weights from 0 to {MAX_API_WEIGHT}"
        )
    return Desired(
        rollout=rollout.key,
        rollout_name=rollout.metadata.name,
        namespace=rollout.metadata.namespace,
        stable=stable,
        canary=canary,
        max_weight=maximum,
        managed_names=managed_names(rollout),
        steps=last_steps(rollout),
        all_steps=managed_steps(rollout),
        template_names=frozenset(template.name for template in _templates(rollout)),
        template_services=_template_services(rollout),
        match_any=config.header_match == "any",
        managed_first=config.managed_route_position == "first",
        rule_name=config.rule_name,
        rule_names={
            (f"{family.upper()}Route", entry.name): entry.rule_name
            for family in config.families
            for entry in config.entries(family)
            if entry.rule_name
        },
        ping_pong=_takes_turns(rollout) is not None,
        label=Label(config.label_key, config.label_value, enabled=not config.disable_in_progress_label),
        resting=not progressing(rollout),
        gloo=config if isinstance(config, GlooConfig) else None,
    )


def clamp_weight(weight: int, maximum: int, rollout: str) -> tuple[int, tuple[Note, ...]]:
    """Return the weight inside 0..maximum, and a warning where it was not."""
    clamped = min(max(weight, 0), maximum)
    if clamped == weight:
        return weight, ()
    return clamped, (
        Note("WeightClamped", f"Rollout {rollout}: weight {weight} is outside 0..{maximum}; {clamped} is used"),
    )


def destinations_of(
    asked: tuple[WeightDestination, ...], rollout: str, maximum: int, weight: int, pair: tuple[str, str] = ("", "")
) -> tuple[tuple[Destination, ...], tuple[Note, ...]]:
    """Return the experiment's destinations, equal names summed; what has no Service of its own stays with stable."""
    notes: list[Note] = []
    weights: dict[str, int] = {}
    for destination in asked:
        name, share = destination.service_name, destination.weight
        if not name:
            text = f"an experiment template has no Service; its weight {share} stays with stable"
            notes.append(Note("ExperimentWithoutService", f"Rollout {rollout}: {text}"))
        elif name in pair:
            text = f"an experiment names Service {name}, which is one of the pair; its weight {share} stays with stable"
            notes.append(Note("ExperimentWithoutService", f"Rollout {rollout}: {text}"))
        else:
            if share < 0:
                text = f"experiment Service {name}: weight {share} is below 0; 0 is used"
                notes.append(Note("WeightClamped", f"Rollout {rollout}: {text}"))
            weights[name] = weights.get(name, 0) + max(share, 0)
    total = weight + sum(weights.values())
    if weights and total > maximum:
        text = f"Rollout {rollout}: canary and experiments ask for {total} of {maximum}; stable gets 0"
        notes.append(Note("WeightsOverMaximum", text))
    return tuple(Destination(name, value) for name, value in weights.items()), tuple(notes)
