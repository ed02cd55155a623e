"""A Rollout object as the controller reads it: JSON with defaults filled in. Pure.

Takes the raw object (never changed) and answers the questions that the controller's code asks of it; an absent field is
what the controller takes it for (`replicas` 1, weights nil, index 0 where there are steps).
"""

import datetime as dt
import hashlib
import json
import re
from math import ceil
from typing import Any

from rollouts_gwapi_plugin.errors import shown
from rollouts_gwapi_plugin.model.base import JsonObject

REVISION_ANNOTATION = "rollout.argoproj.io/revision"
HASH_LABEL = "rollouts-pod-template-hash"
PAUSE_STEP = "CanaryPauseStep"
PAUSE_EXPERIMENT = "InconclusiveExperiment"
DEFAULT_ABORT_DELAY = 30
DEFAULT_SCALE_DOWN_DELAY = 30
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
# The controller holds seconds in 32 bits.
MAX_SECONDS = 2**31 - 1


def short_hash(value: Any) -> str:
    """Return a hash of a JSON value, as long as the controller's."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]


def seconds(duration: Any) -> float | None:
    """Return a pause's duration (`30`, `"30"`, `"1h"`, `"1h30m"`) in seconds, None where it has no end.

    Raises:
        ValueError: it is neither a number of seconds nor a duration of Go, or more than the controller can hold.

    """
    if duration is None:
        return None
    text = str(duration)
    if text.isdecimal():
        text += "s"
    found = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if not _DURATION.fullmatch(text) or found > MAX_SECONDS:
        raise ValueError(f"{shown(duration)} is no duration, such as 30 or 1h30m, of at most {MAX_SECONDS} seconds")
    return found


def timestamp(moment: float) -> str:
    """Return seconds since 1970 as the API writes a time, which knows whole seconds only; the next one where needed."""
    return dt.datetime.fromtimestamp(ceil(moment), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_of(text: str) -> float:
    """Return the seconds since 1970 of a time of the API."""
    return dt.datetime.fromisoformat(text).timestamp()


class RolloutReader:
    """The questions; each property is what the field means to the controller."""

    def __init__(self, raw: JsonObject) -> None:
        self.raw = raw
        self.metadata: JsonObject = raw["metadata"]
        self.spec: JsonObject = raw["spec"]
        self.status: JsonObject = raw.get("status") or {}
        self.canary: JsonObject = self.spec["strategy"]["canary"]

    @property
    def replicas(self) -> int:
        """`spec.replicas`."""
        replicas = self.spec.get("replicas")
        return 1 if replicas is None else int(replicas)

    @property
    def steps(self) -> list[JsonObject]:
        """The canary's steps."""
        return self.canary.get("steps") or []

    @property
    def index(self) -> int | None:
        """`status.currentStepIndex`; None without steps. It can be larger than their number."""
        return int(self.status.get("currentStepIndex") or 0) if self.steps else None

    @property
    def step(self) -> JsonObject | None:
        """The step at the index, None past the end."""
        index = self.index
        return self.steps[index] if index is not None and index < len(self.steps) else None

    @property
    def traffic_routing(self) -> JsonObject:
        """`trafficRouting`."""
        return self.canary.get("trafficRouting") or {}

    @property
    def max_weight(self) -> int:
        """The weight that means everything."""
        return int(self.traffic_routing.get("maxTrafficWeight") or 100)

    @property
    def dynamic(self) -> bool:
        """`dynamicStableScale`."""
        return bool(self.canary.get("dynamicStableScale"))

    @property
    def aborted(self) -> bool:
        """`status.abort`."""
        return bool(self.status.get("abort"))

    @property
    def promote_full(self) -> bool:
        """`status.promoteFull`."""
        return bool(self.status.get("promoteFull"))

    @property
    def stable_hash(self) -> str:
        """`status.stableRS`."""
        return self.status.get("stableRS") or ""

    @property
    def current_hash(self) -> str:
        """`status.currentPodHash`."""
        return self.status.get("currentPodHash") or ""

    @property
    def pod_hash(self) -> str:
        """The hash of the template that the spec asks for."""
        return short_hash(self.spec.get("template"))

    @property
    def changed(self) -> bool:
        """Whether template or steps are not those of the status."""
        return self.current_hash != self.pod_hash or self.status.get("currentStepHash") != short_hash(self.steps)

    @property
    def fully_promoted(self) -> bool:
        """Whether the stable ReplicaSet is the wanted one."""
        return self.stable_hash == self.current_hash

    @property
    def revision(self) -> int | None:
        """The revision annotation."""
        text = (self.metadata.get("annotations") or {}).get(REVISION_ANNOTATION)
        return None if text is None else int(text)

    @property
    def weights(self) -> JsonObject | None:
        """`status.canary.weights`."""
        return (self.status.get("canary") or {}).get("weights")

    @property
    def canary_weight(self) -> int | None:
        """The canary's weight of the previous reconcile."""
        return None if self.weights is None else int((self.weights.get("canary") or {}).get("weight") or 0)

    @property
    def ping_pong(self) -> bool:
        """Whether two Services take turns."""
        return bool(self.canary.get("pingPong"))

    def services(self) -> tuple[str, str]:
        """Return the names of the stable and the canary Service; of ping and pong where they are in use."""
        if not self.ping_pong:
            return self.canary.get("stableService") or "", self.canary.get("canaryService") or ""
        ping, pong = (self.canary["pingPong"].get(name) or "" for name in ("pingService", "pongService"))
        stable_ping = (self.status.get("canary") or {}).get("stablePingPong") == "ping"
        return (ping, pong) if stable_ping else (pong, ping)

    def last_weight(self, index: int) -> int:
        """Return the last `setWeight` at or before the index, 0 if there is none."""
        for step in reversed(self.steps[: index + 1]):
            if step.get("setWeight") is not None:
                return int(step["setWeight"])
        return 0

    def current_set_weight(self) -> int:
        """Return the weight that the step asks for: 0 when aborted, the maximum past the end."""
        if self.aborted:
            return 0
        if self.step is None or self.index is None:
            return self.max_weight
        return self.last_weight(self.index)

    def pause_condition(self, reason: str) -> JsonObject | None:
        """Return the pause of a reason."""
        conditions = self.status.get("pauseConditions") or []
        return next((condition for condition in conditions if condition["reason"] == reason), None)
