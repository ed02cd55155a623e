"""What pods received, answered to anybody or not: the only way to see mirrored requests.

The pods' counters are read twice, with enough requests of the cohort between; what each version received is compared
with how many requests the cohort sent in that time. Copies are chosen by chance, so the tolerance is chance's, and
those under way at either reading are allowed for.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping

from e2e.load.traffic import SIGMAS, Traffic, version_of
from e2e.runner.actions import Scene
from e2e.waiting import NotYet, until

# Requests and copies that are under way while the counters are read.
UNDER_WAY = 8


def wrong_received(
    scene: Scene, traffic: Traffic, cohort: str, expected: Mapping[str, float], requests: int, seconds: float
) -> str:
    """Say what is wrong with what was received, in percent of what was sent; empty if it fits."""
    before, began = _received(scene, cohort), time.monotonic()

    def enough() -> bool:
        traffic.refresh()
        sent = len(traffic.window(cohort, began))
        if sent < requests:
            raise NotYet(f"{sent} of {requests} requests")
        return True

    until(enough, f"requests of cohort {cohort}", seconds=seconds)
    sent = len(traffic.window(cohort, began))
    counted = _received(scene, cohort) - before
    for version in sorted({*counted, *expected}):
        share = expected.get(version, 0.0) / 100
        allowed = UNDER_WAY + SIGMAS * math.sqrt(sent * share * (1 - min(share, 1.0)))
        if abs(counted[version] - sent * share) > (allowed if share else 0):
            return f"{version} received {counted[version]} of {sent} requests instead of {100 * share:g} %"
    return ""


def _received(scene: Scene, cohort: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for item in scene.target.counts():
        if item["namespace"] == scene.namespace and item["cohort"] == cohort:
            counts[version_of(item["pod"], item["version"], scene.case.pods)] += int(item["received"])
    return counts
