"""What must hold on an HTTPRoute at every moment, judged without the plugin's own code."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass

from tests.stateful.records import EXPERIMENT_PREFIX, Json, Pair, Records, is_managed

LEDGER_KEYS = ("httpManagedHeaderRoutes", "httpManagedMirrorRoutes")
MAX_RULES = 16


def backends(rule: Json) -> list[str]:
    """Return the names behind a rule."""
    return [ref["name"] for ref in rule.get("backendRefs") or []]


def has_pair(rule: Json, pair: Pair) -> bool:
    """Whether the rule has both of the pair."""
    return {pair.stable, pair.canary} <= set(backends(rule))


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
        if any(has_pair(rule, pair) for pair in pairs):
            for ref in kept:
                if ref["name"] in names:
                    ref["weight"] = None
        result.append({**copy, "backendRefs": kept})
    return result


@dataclass
class HttpJudge:
    """Checks the route after every single write."""

    pairs: tuple[Pair, ...]
    users: list[Json]
    records: Records

    def check(self, route: Json, ledger: Json) -> None:
        """Raise AssertionError where an invariant does not hold."""
        rules = route["spec"]["rules"]
        assert user_part(rules, self.pairs) == user_part(self.users, self.pairs), "U1: the user's part was changed"
        assert len(rules) <= MAX_RULES, "M5: more rules than the API takes"
        names = [rule["name"] for rule in rules if rule.get("name")]
        assert len(names) == len(set(names)), f"M5: rule names are not unique: {names}"
        for rule in rules:
            self._check_rule(rule)
        self.records.check({rule["name"] for rule in rules if is_managed(rule)}, ledger)

    def _check_rule(self, rule: Json) -> None:
        weights = [ref.get("weight", 1) for ref in rule.get("backendRefs") or []]
        touched = is_managed(rule) or any(has_pair(rule, pair) for pair in self.pairs)
        assert not touched or any(weight > 0 for weight in weights), f"W2: all weights are zero: {rule}"
        if is_managed(rule) and not any("requestMirror" in item for item in rule.get("filters") or []):
            canaries = {pair.canary for pair in self.pairs}
            assert len(weights) == 1, f"W3: a header rule has one backend: {rule}"
            assert set(backends(rule)) <= canaries, f"W3: a header rule goes to the canary: {rule}"
            assert weights[0] >= 1, f"W3: a header rule keeps its weight: {rule}"
