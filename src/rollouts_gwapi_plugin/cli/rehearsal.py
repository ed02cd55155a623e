"""Play all steps of a Rollout on one route, by the reconcilers alone: what will fail is known before it does.

Takes a route and its record, returns an `Act` a call, in the controller's order: for each step the managed route, then
the weight; in the end the maximum, the removal of all managed routes, and weight 0. A managed route that fails is told
once and left out of what follows. Services of experiments are taken to have the pair's ports. `together` then says
what is an error on several routes: a step that one of them takes is none of the others' (decision D24).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rollouts_gwapi_plugin.cli.findings import Finding, Severity
from rollouts_gwapi_plugin.errors import RouteError, StepNotTakenError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.configuration import Configuration
from rollouts_gwapi_plugin.model.rollout import Rollout, RolloutStatus, SetHeaderRoute, Step
from rollouts_gwapi_plugin.model.route_tables import sections_of
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.desired import Desired, Destination, ManagedStep, ServicePort, base_desired
from rollouts_gwapi_plugin.routes.dispatch import Reconciler, reconciler_of
from rollouts_gwapi_plugin.routes.kinds import GLOO_GROUP, KINDS, RouteKind
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.reconcile import Outcome, Scope
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView
from rollouts_gwapi_plugin.routes.steps import not_taken


@dataclass(frozen=True)
class Act:
    """One call of the rehearsal and what came of it; `error` is empty where it succeeded.

    `managed` is the step that the call sets a managed route of; `refusal` tells of one that this route can't take,
    which is an error only where no other route takes it.
    """

    what: str
    route: Route
    notes: tuple[Note, ...] = ()
    error: str = ""
    managed: int | None = None
    refusal: Note | None = None


@dataclass
class Rehearsal:
    """The state that goes from call to call."""

    route: Route
    rollout: Rollout
    raw: JsonObject
    config: Configuration
    scope: Scope
    view: RecordView = NOTHING_RECORDED
    acts: list[Act] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)

    def play(self) -> list[Act]:
        """Play everything."""
        steps, weight = self.rollout.canary.steps, 0
        for index, step in enumerate(steps):
            managed = step.set_header_route or step.set_mirror_route
            if managed is not None and managed.name and self._takes(managed):
                self._managed(f"step {index}: {step_text(step)}", index, managed)
            weight = weight if step.set_weight is None else step.set_weight
            destinations = experiment_destinations(self.rollout, self.raw, index, self._ports())
            self._weight(f"step {index}: {step_text(step)}", index, weight, destinations)
        last = max(0, len(steps) - 1)
        self._weight("after the last step", last, self.rollout.max_traffic_weight, ())
        self._call(
            "promoted",
            lambda: self._by.remove_managed_routes(self.route, self._desired(last), self.view, self.scope),
        )
        self._weight("promoted", last, 0, (), heal=False)
        return self.acts

    def _takes(self, step: ManagedStep) -> bool:
        can = self.scope.kind.match is not None
        return can and (self.scope.takes_headers or not isinstance(step, SetHeaderRoute))

    def _desired(self, index: int) -> Desired:
        canary = self.rollout.status.canary
        status = RolloutStatus(stable_rs="old", current_pod_hash="new", current_step_index=index, canary=canary)
        desired = base_desired(self.rollout.model_copy(update={"status": status}), self.config)
        return replace(desired, steps={name: step for name, step in desired.steps.items() if name not in self.failed})

    def _managed(self, what: str, index: int, step: ManagedStep) -> None:
        desired = self._desired(index)

        def make(step: ManagedStep) -> Outcome:
            return self._by.set_managed_route(self.route, step, desired, self.view, self.scope)

        if self._call(what, lambda: make(step), managed=index):
            return
        self.failed.add(step.name)
        if self.acts[-1].refusal is not None:
            # What an earlier step of the name made there goes.
            self._call(what, lambda: make(step.model_copy(update={"match": ()})))

    def _weight(
        self, what: str, index: int, weight: int, destinations: tuple[Destination, ...], *, heal: bool = True
    ) -> None:
        wanted = replace(
            self._desired(index), weight=weight, destinations=destinations, heal=heal and self.config.self_heal
        )
        self._call(what, lambda: self._by.set_weight(self.route, wanted, self.view, self.scope))

    def _call(self, what: str, call: Callable[[], Outcome], managed: int | None = None) -> bool:
        """Make a call and note what came of it; return whether it succeeded."""
        try:
            outcome = call()
        except RouteError as error:
            act = Act(what, self.route, error=str(error), managed=managed)
            if isinstance(error, StepNotTakenError) and managed is not None:
                name = step_name(self.rollout.canary.steps[managed])
                act = replace(act, refusal=not_taken(str(self.route), name, error))
            self.acts.append(act)
            return False
        self.route = outcome.route
        self.view = replace(self.view, record=outcome.record, known=True)
        problem = str(outcome.problem) if outcome.problem else ""
        self.acts.append(Act(what, outcome.route, outcome.notes, problem, managed))
        return not problem

    def _ports(self) -> tuple[ServicePort, ...]:
        return tuple(ServicePort("", port) for port in sorted(ports_of(self.route.spec.dump())))

    @property
    def _by(self) -> Reconciler:
        return reconciler_of(self.route)


def together(plays: Sequence[Sequence[Act]], *, all_known: bool = True) -> list[list[Act]]:
    """Return the rehearsals of all routes, with a note where one can't take a step that another one takes.

    Where not all routes are known, one of the others may take it.
    """
    taken = {act.managed for acts in plays for act in acts if act.managed is not None and not act.error}

    def judged(act: Act) -> Act:
        if act.refusal is None or (all_known and act.managed not in taken):
            return act
        return replace(act, error="", notes=(*act.notes, act.refusal))

    return [[judged(act) for act in acts] for acts in plays]


def rehearsal_findings(acts: Sequence[Act], subject: str) -> list[Finding]:
    """Return what a rehearsal has found, the same text once."""
    said: dict[str, Finding] = {}
    for act in acts:
        for severity, text in [
            *([(Severity.ERROR, act.error)] if act.error else []),
            *((Severity.WARNING if note.warning else Severity.INFO, note.text) for note in act.notes),
        ]:
            finding = Finding(severity=severity, subject=subject, check="steps", text=f"{act.what}: {text}")
            said.setdefault(text, finding)
    return list(said.values())


def rule_counts(route: Route, acts: Sequence[Act]) -> tuple[int, int]:
    """Return how many rules the route has before a rehearsal, and at most in it."""
    return _rules_of(route), max(_rules_of(act.route) for act in acts)


def _rules_of(route: Route) -> int:
    """Count the rules; those of a RouteTable are the routes of all its sections."""
    if route.api_version.rpartition("/")[0] == GLOO_GROUP:
        return sum(map(len, sections_of(route).values()))
    return len(route.rules)


def kinds_of(config: Configuration) -> dict[str, RouteKind]:
    """Return the configured kinds of route by family."""
    return {family: KINDS[family] for family in config.families if family in KINDS}


def ports_of(value: Any) -> set[int]:
    """Return the numbers of all ports that a route's spec names."""
    if isinstance(value, list):
        return set().union(*map(ports_of, value))
    if not isinstance(value, dict):
        return set()
    port = value.get("port")
    number = port.get("number") if isinstance(port, dict) else port
    own = {number} if isinstance(number, int) else set()
    return own.union(*map(ports_of, value.values()))


def step_name(step: Step) -> str:
    """Return the name of the step's managed route; empty where it sets none."""
    managed = step.set_header_route or step.set_mirror_route
    return managed.name if managed is not None else ""


def step_text(step: Step) -> str:
    """Return a step in few words."""
    if step.set_header_route is not None:
        return f"setHeaderRoute {step.set_header_route.name}"
    if step.set_mirror_route is not None:
        return f"setMirrorRoute {step.set_mirror_route.name}"
    if step.set_weight is not None:
        return f"setWeight {step.set_weight}"
    return "experiment" if step.experiment is not None else "no change"


def raw_steps(raw: JsonObject) -> Sequence[JsonObject]:
    """Return the steps as they stand in the object; empty objects where something else stands."""
    canary = ((raw.get("spec") or {}).get("strategy") or {}).get("canary") or {}
    return [step if isinstance(step, dict) else {} for step in canary.get("steps") or []]


@dataclass(frozen=True)
class ExperimentShare:
    """A template of an experiment step that gets traffic; `service` is empty where the controller makes the name."""

    template: str
    service: str
    weight: int


def experiment_shares(raw: JsonObject, index: int) -> list[ExperimentShare]:
    """Return the templates of a step's experiment that have a weight."""
    steps = raw_steps(raw)
    experiment = (steps[index].get("experiment") or {}) if index < len(steps) else {}
    return [
        ExperimentShare(str(template.get("name", "")), _service_name(template), template["weight"])
        for template in experiment.get("templates") or []
        if isinstance(template, dict) and isinstance(template.get("weight"), int)
    ]


def _service_name(template: JsonObject) -> str:
    service = template.get("service")
    return str(service.get("name") or "") if isinstance(service, dict) else ""


def experiment_destinations(
    rollout: Rollout, raw: JsonObject, index: int, ports: tuple[ServicePort, ...]
) -> tuple[Destination, ...]:
    """Return what the controller would pass while the step's experiment runs; the pod hash is a stand-in."""
    stem = f"{rollout.metadata.name}-0000000000-2-{index}"
    return tuple(
        Destination(share.service or f"{stem}-{share.template}", share.weight, ports)
        for share in experiment_shares(raw, index)
    )
