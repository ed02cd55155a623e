"""What the machines know without the plugin's own code: whose Services, which routes are managed, what is recorded.

Managed routes bear names with a prefix that the users of these tests never give to a route, and experiment Services
theirs: so the models tell ours from the user's by themselves, however the plugin does it.
"""

import json
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
MANAGED_PREFIX = "m-"
# Services of the experiments of `web` have the names that the controller gives them: known without a record, too.
EXPERIMENT_PREFIX = "web-hash-"


@dataclass(frozen=True)
class Pair:
    """A Rollout and its Services."""

    rollout: str
    stable: str
    canary: str


PAIRS = (Pair("web", "s", "c"), Pair("side", "t", "d"))


def is_managed(item: Json) -> bool:
    """Whether the route is the plugin's."""
    return str(item.get("name", "")).startswith(MANAGED_PREFIX)


@dataclass
class Records:
    """What the ledger must record at every moment (M4)."""

    # Those of the ledger's keys that speak of the machine's kind of route.
    keys: tuple[str, ...]
    # Managed routes whose record somebody destroyed; until it is made anew they have none.
    unrecorded: set[str] = field(default_factory=set)

    def check(self, managed: set[str], ledger: Json) -> None:
        """Raise AssertionError where one of the managed routes has no record."""
        recorded = self._names(ledger)
        self.unrecorded -= recorded
        orphans = managed - recorded - self.unrecorded
        assert not orphans, f"M4: without a record: {orphans}, ledger {ledger}"

    def _names(self, ledger: Json) -> set[str]:
        found: set[str] = set()
        for key in self.keys:
            value = json.loads(ledger[key]) if key in ledger else {"rollouts": {}}
            for entries in value["rollouts"].values():
                for managed in entries["routes"].values():
                    for record in managed.values():
                        found |= {rule["name"] for rule in record["rules"]}
        return found
