"""What must hold on a RouteTable at every moment, judged without the plugin's own code.

The user's routes are told by their order. Weights: the sum is 100, and zero is absent, but for a pair that is back as
the user wrote it.
"""

from copy import deepcopy
from dataclasses import dataclass

from tests.service.gloo.world import HEADER_LABEL, MIRROR_LABEL
from tests.stateful.records import EXPERIMENT_PREFIX, Json, Pair, Records, is_managed

LEDGER_KEYS = ("routeTableManagedHeaderRoutes", "routeTableManagedMirrorRoutes")
SECTIONS = ("http", "tcp", "tls")
FULL = 100


def destinations(item: Json) -> list[Json]:
    """Return the destinations of a route."""
    found: list[Json] = (item.get("forwardTo") or {}).get("destinations") or []
    return found


def names(item: Json) -> list[str]:
    """Return the names behind a route."""
    return [raw["ref"]["name"] for raw in destinations(item)]


def share(item: Json, name: str) -> int:
    """Return what of 100 the destinations of that name get."""
    found = destinations(item)
    absent = [raw for raw in found if not raw.get("weight")]
    rest = max(0, FULL - sum(raw.get("weight") or 0 for raw in found))
    return sum(raw.get("weight") or rest // len(absent) for raw in found if raw["ref"]["name"] == name)


def users_of(spec: Json) -> dict[str, list[Json]]:
    """Return the user's routes by section."""
    return {section: [item for item in spec.get(section, []) if not is_managed(item)] for section in SECTIONS}


def route_of(policy: Json) -> str:
    """Return the name of the managed route that a MirrorPolicy is for."""
    return str(policy["metadata"]["annotations"]["rollouts.argoproj.io/managed-route"]).partition("/")[2]


@dataclass
class GlooJudge:
    """Checks the RouteTable after every single write."""

    pairs: tuple[Pair, ...]
    users: dict[str, list[Json]]
    records: Records

    def check(self, table: Json, policies: list[Json], ledger: Json) -> None:
        """Raise AssertionError where an invariant does not hold."""
        live = users_of(table["spec"])
        for section in SECTIONS:
            assert len(live[section]) == len(self.users[section]), f"U1: routes of {section}: {live[section]}"
            for now, wrote in zip(live[section], self.users[section], strict=True):
                self._check_users(now, wrote)
        managed = [item for item in table["spec"].get("http", []) if is_managed(item)]
        all_names = [item["name"] for item in table["spec"].get("http", []) if item.get("name")]
        assert len(all_names) == len(set(all_names)), f"M5: names are not unique: {all_names}"
        for item in managed:
            self._check_managed(item)
        for policy in policies:
            self._check_policy(policy)
        self.records.check({item["name"] for item in managed} | {route_of(policy) for policy in policies}, ledger)

    def _check_users(self, now: Json, wrote: Json) -> None:
        assert self._rest(now) == self._rest(wrote), f"U1: {now} was {wrote}"
        pair = next((pair for pair in self.pairs if pair.stable in names(wrote)), None)
        if pair is None:
            assert now == wrote, f"U1: {now} was {wrote}"
            return
        assert now == wrote or self._adds_up(now), f"the sum is not 100, or a zero is there: {now}"
        for name in (pair.stable, pair.canary):
            before, after = ([raw for raw in destinations(item) if raw["ref"]["name"] == name] for item in (wrote, now))
            if before and after:
                assert _bare(before[0]) == _bare(after[0]), f"U1: {name} in {now} was {wrote}"

    def _rest(self, item: Json) -> Json:
        """Return the route without the pairs' and the experiments' destinations."""
        ours = {name for pair in self.pairs for name in (pair.stable, pair.canary)}
        copy = deepcopy(item)
        if any(pair.stable in names(item) or pair.canary in names(item) for pair in self.pairs):
            kept = [
                raw
                for raw in destinations(copy)
                if raw["ref"]["name"] not in ours and not raw["ref"]["name"].startswith(EXPERIMENT_PREFIX)
            ]
            copy["forwardTo"]["destinations"] = kept
        return copy

    @staticmethod
    def _adds_up(item: Json) -> bool:
        """Whether the weights are what Gloo takes: all set, none 0, 100 in sum; or one is absent and has the rest."""
        weights = [raw["weight"] for raw in destinations(item) if "weight" in raw]
        absent = len(destinations(item)) - len(weights)
        return all(weights) and (sum(weights) == FULL if absent == 0 else absent == 1 and sum(weights) < FULL)

    def _check_managed(self, item: Json) -> None:
        labels = item.get("labels") or {}
        assert (HEADER_LABEL in labels) != (MIRROR_LABEL in labels), f"a managed route is one of both: {item}"
        if HEADER_LABEL in labels:
            assert len(destinations(item)) == 1, f"W3: a header route has one destination: {item}"
            assert names(item)[0] in {pair.canary for pair in self.pairs}, f"W3: it is the canary: {item}"
            assert "weight" not in destinations(item)[0], f"W3: it has no weight: {item}"
        else:
            assert self._adds_up(item) or self._as_somebody_wrote(item), f"W2: {item}"
        wanted = "GET" if MIRROR_LABEL in labels else None
        for matcher in item["matchers"]:
            headers = matcher.get("headers") or []
            assert headers or matcher.get("method") == wanted, f"M3: a matcher without the step's match: {item}"

    def _as_somebody_wrote(self, item: Json) -> bool:
        """Whether the destinations are those of a route of the user's, zeros included."""
        return any(destinations(item) == destinations(wrote) for wrote in self.users["http"])

    @staticmethod
    def _check_policy(policy: Json) -> None:
        labels = [entry["route"]["labels"] for entry in policy["spec"]["applyToRoutes"]]
        assert labels, f"a policy of the whole workspace: {policy}"
        assert all(MIRROR_LABEL in found for found in labels), f"a policy of many routes: {policy}"


def _bare(raw: Json) -> Json:
    return {key: value for key, value in raw.items() if key != "weight"}
