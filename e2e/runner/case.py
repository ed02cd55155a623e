"""What a case file may say: a story in stages, told on a cluster under constant traffic.

`setup` comes first and without traffic. Then the cohorts begin, and stage follows stage: its doings, then a wait until
everything that it expects is so, then traffic until enough requests show the right shares. Any request of any cohort
that fails from the first to the last moment fails the case, unless `losses` says why some must.

In all manifests and strings `${NAMESPACE}`, `${HOST}` and the target's other values are filled in.
"""

from pathlib import Path
from string import Template
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from e2e.load.cohort import Protocol

CASES = Path(__file__).resolve().parents[1] / "cases"

# What a case needs of its cluster beyond the API, a gateway and the controller with the plugin.
Need = Literal["kill", "restart", "configure", "count", "udp", "rollouts-1.10", "experimental"]


class Part(BaseModel):
    """A part of a case; what it may not say is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CohortPart(Part):
    """Traffic of one kind of client; host and port are the target's unless given."""

    name: str
    protocol: Protocol = "http"
    host: str = "${HOST}"
    method: str = "GET"
    path: str = "/"
    headers: dict[str, str] = Field(default_factory=dict)
    rate: float = 20.0
    status: int = 200  # of every answer; a redirect's "version" is where it leads


class ObjectName(Part):
    """An object of the case's namespace, or of another."""

    kind: str
    name: str
    namespace: str = ""


class Patch(ObjectName):
    """A merge patch, or a JSON patch (a list)."""

    patch: dict[str, Any] | list[dict[str, Any]]


class MergePatch(ObjectName):
    """A merge patch."""

    patch: dict[str, Any]


class Configure(Part):
    """argo-rollouts-config, and a restart of the controller so that it reads it."""

    location: str
    sha256: str = ""
    args: list[str] = Field(default_factory=list)


class Reset(Part):
    """A manifest of the case is applied once more as it stands, as GitOps does: over whatever others have written."""

    manifest: str
    by: Literal["server-side apply", "kubectl apply"]


class KillAt(Part):
    """A kill in the moment in which an object has this part; if it no longer has it then, the kill was too late."""

    what: Literal["plugin", "controller"]
    seen: dict[str, Any]


class Action(Part):
    """One doing: exactly one of the fields."""

    apply: str | dict[str, Any] | None = None
    patch: Patch | None = None
    delete: ObjectName | None = None
    version: dict[str, str] | None = None  # Rollout -> version
    rollouts: str | None = None  # arguments of `kubectl argo rollouts`
    reset: Reset | None = None
    kill: Literal["plugin", "controller"] | None = None
    kill_at: KillAt | None = None
    restart: Literal["apiserver", "controller"] | None = None
    configure: Configure | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"an action is one thing, not {sorted(self.model_fields_set)}")
        return self


class RolloutState(Part):
    """What a Rollout's status should say; fields not given do not matter."""

    phase: str | None = None
    step: int | None = None
    aborted: bool | None = None
    message: str | None = None  # a regular expression, found anywhere


class EventSeen(Part):
    """An Event of the case's namespace."""

    reason: str
    message: str = ""  # a regular expression
    times: int = 0  # how often since the stage began, exactly; 0: at least once


class ControllerState(Part):
    """The controller's container: running, or ended with this code since the stage began."""

    running: bool = True
    log: str = ""  # a regular expression, found in what it logged since the stage began


class Expect(Part):
    """What must become true in a stage."""

    rollouts: dict[str, RolloutState] = Field(default_factory=dict)
    weights: dict[str, dict[str, int]] = Field(default_factory=dict)  # "HTTPRoute/name" -> backend -> weight
    objects: list[dict[str, Any]] = Field(default_factory=list)  # parts of objects
    file: str = ""  # more of them
    absent: list[ObjectName] = Field(default_factory=list)
    number: dict[str, int] = Field(default_factory=dict)  # kind -> how many objects of it the namespace has
    events: list[EventSeen] = Field(default_factory=list)
    controller: ControllerState | None = None
    traffic: dict[str, dict[str, float]] = Field(default_factory=dict)  # cohort -> version -> percent of its answers
    # The same of its requests, copies counted; left out where the target can't count. What it alone shows `needs` that.
    received: dict[str, dict[str, float]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_judged(self) -> Self:
        if self.received and not self.traffic:
            raise ValueError("`received` is judged after `traffic` alone: a stage that has one needs the other")
        return self


class Stage(Part):
    """One stage of the story."""

    name: str
    do: list[Action] = Field(default_factory=list)
    expect: Expect = Field(default_factory=Expect)
    # Waits are on conditions; this is for machines that are really stuck.
    within: float = 180.0
    # From fulfilled expectations to right shares: 2-30 ms measured; the rest is for the requests that show it.
    settle: float = 60.0
    requests: int = 100  # so many of each cohort judge the shares


class Losses(Part):
    """Why requests may fail, and how many percent of all; of one cohort and in one way only, where that is said."""

    reason: str
    percent: float
    cohort: str = ""
    error: str = ""  # a regular expression


class Again(Part):
    """What of the controller's own may fail the case, by a line of its log: then the case is told once more."""

    reason: str
    log: str  # a regular expression


class Watched(Part):
    """The route that the graph and the report follow, and its backend whose share is the canary's."""

    route: str = "HTTPRoute/web"
    canary: str = "canary"
    namespace: str = "${NAMESPACE}"


class Case(Part):
    """One case."""

    name: str
    folder: Path
    description: str
    short: bool = False
    exact: bool = False  # each cohort has a route of its own, so that shares are exact where the gateway's are
    needs: list[Need] = Field(default_factory=list)
    resources: list[str] = Field(default_factory=list)
    patches: list[MergePatch] = Field(default_factory=list)  # to the resources, before they are applied
    setup: Stage
    load: list[CohortPart] = Field(default_factory=list)
    # Versions by another name: that of the first expression (here by name) that is found in the answering pod's name.
    pods: dict[str, str] = Field(default_factory=dict)
    stages: list[Stage] = Field(default_factory=list)
    losses: Losses | None = None
    again: Again | None = None
    cleanup: list[Action] = Field(default_factory=list)  # done at the end in any case
    watch: Watched = Field(default_factory=Watched)

    @model_validator(mode="after")
    def _has_traffic(self) -> Self:
        if self.setup.expect.traffic:
            raise ValueError("`setup` comes before the traffic: its stage can't expect `traffic` or `received`")
        return self

    def manifest(self, name: str) -> Path:
        """Return a manifest of the case, or one that cases share."""
        own = self.folder / name
        return own if own.exists() else CASES / name


def read(path: Path) -> Case:
    """Read `case.yaml`; the folder gives its name."""
    data = yaml.safe_load(path.read_text())
    return Case.model_validate({"name": path.parent.name, "folder": path.parent, **data})


def fill(value: Any, values: dict[str, str]) -> Any:
    """Fill in `${…}` in all strings; unknown names are left alone (shell in an example, say)."""
    if isinstance(value, str):
        return Template(value).safe_substitute(values)
    if isinstance(value, dict):
        return {fill(key, values): fill(item, values) for key, item in value.items()}
    return [fill(item, values) for item in value] if isinstance(value, list) else value
