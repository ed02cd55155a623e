"""What must hold on a route at every moment, judged without the plugin's own code.

Managed rules bear names with a prefix that the user of these tests never gives to a rule, and experiment Services
theirs: so this model tells ours from the user's by itself, however the plugin does it.
"""

import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
MANAGED_PREFIX = "m-"
EXPERIMENT_PREFIX = "exp-"
LEDGER_KEYS = ("httpManagedHeaderRoutes", "httpManagedMirrorRoutes")
MAX_RULES = 16


@dataclass(frozen=True)
class Pair:
    """One Rollout's Services, and the names of its managed routes."""

    rollout: str
    stable: str
    canary: str

    def weights(self, rule: Json) -> bool:
        """Whether the rule has both."""
        return {self.stable, self.canary} <= set(backends(rule))


def backends(rule: Json) -> list[str]:
    """Return the names behind a rule."""
    return [ref["name"] for ref in rule.get("backendRefs") or []]


def is_managed(rule: Json) -> bool:
    """Whether the rule is the plugin's."""
    return str(rule.get("name", "")).startswith(MANAGED_PREFIX)


def weight_of(rule: Json, name: str) -> int:
    """Return the weight of the first backend of that name."""
    return next(int(ref.get("weight", 1)) for ref in rule["backendRefs"] if ref["name"] == name)


def user_part(rules: Iterable[Json], pairs: tuple[Pair, ...]) -> list[Json]:
    """Return the rules without ours, without the pairs' weights and without experiment backends (invariant U1)."""
    names = {name for pair in pairs for name in (pair.stable, pair.canary)}
    result = []
    for rule in rules:
        if is_managed(rule):
            continue
        copy = deepcopy(rule)
        kept = [ref for ref in copy.get("backendRefs") or [] if not ref["name"].startswith(EXPERIMENT_PREFIX)]
        if any(pair.weights(rule) for pair in pairs):
            for ref in kept:
                if ref["name"] in names:
                    ref["weight"] = None
        result.append({**copy, "backendRefs": kept})
    return result


@dataclass
class Judge:
    """Checks the route after every single write."""

    pairs: tuple[Pair, ...]
    users: list[Json]
    # Managed rules whose record somebody destroyed; until it is made anew they have none.
    unrecorded: set[str] = field(default_factory=set)

    def check(self, route: Json, ledger: Json) -> None:
        """Raise AssertionError where an invariant does not hold."""
        rules = route["spec"]["rules"]
        assert user_part(rules, self.pairs) == user_part(self.users, self.pairs), "U1: the user's part was changed"
        assert len(rules) <= MAX_RULES, "M5: more rules than the API takes"
        names = [rule["name"] for rule in rules if rule.get("name")]
        assert len(names) == len(set(names)), f"M5: rule names are not unique: {names}"
        for rule in rules:
            self._check_rule(rule)
        self._check_records([name for name in names if name.startswith(MANAGED_PREFIX)], ledger)

    def _check_rule(self, rule: Json) -> None:
        weights = [ref.get("weight", 1) for ref in rule.get("backendRefs") or []]
        touched = is_managed(rule) or any(pair.weights(rule) for pair in self.pairs)
        assert not touched or any(weight > 0 for weight in weights), f"W2: all weights are zero: {rule}"
        if is_managed(rule) and not any("requestMirror" in item for item in rule.get("filters") or []):
            canaries = {pair.canary for pair in self.pairs}
            assert len(weights) == 1, f"W3: a header rule has one backend: {rule}"
            assert set(backends(rule)) <= canaries, f"W3: a header rule goes to the canary: {rule}"
            assert weights[0] >= 1, f"W3: a header rule keeps its weight: {rule}"

    def _check_records(self, managed: list[str], ledger: Json) -> None:
        recorded = recorded_names(ledger)
        self.unrecorded -= recorded
        orphans = set(managed) - recorded - self.unrecorded
        assert not orphans, f"M4: rules without a record: {orphans}, ledger {ledger}"


def recorded_names(ledger: Json) -> set[str]:
    """Return the rule names that the ledger records."""
    names: set[str] = set()
    for key in LEDGER_KEYS:
        value = json.loads(ledger[key]) if key in ledger else {"rollouts": {}}
        for entries in value["rollouts"].values():
            for managed in entries["routes"].values():
                for record in managed.values():
                    names |= {rule["name"] for rule in record["rules"]}
    return names
