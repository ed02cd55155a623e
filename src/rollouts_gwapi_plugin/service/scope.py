"""How a route takes part in a call: what its configuration wants on it, and what the installed CRD keeps and takes.

The API server is asked only where the answer can matter: for a step that mirrors a part, and for a route that may have
no room (decisions D18, D22).
"""

from collections import Counter
from dataclasses import replace
from math import prod

from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.rollout import SetMirrorRoute
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.limits import MATCHES_OF_ALL_RELEASES, MAX_RULES
from rollouts_gwapi_plugin.routes.mirror import percent_sample, rules_of
from rollouts_gwapi_plugin.routes.reconcile import Scope
from rollouts_gwapi_plugin.service.cluster import Cluster
from rollouts_gwapi_plugin.service.targets import Target


def scope_of(cluster: Cluster, target: Target, desired: Desired, deadline: Deadline) -> Scope:
    """Return how the route takes part."""
    plain = Scope(target.kind, target.takes_headers)
    # A kind with companions has its mirrors in them.
    if target.kind.match is None or target.kind.companion is not None or target.resource is None:
        return plain
    doubt = ""
    if _mirrors_a_part(desired):
        doubt = cluster.loses_mirror_percent(target.resource, deadline, percent_sample(target.raw or {}))
    rules = len(rules_of(target.raw or {}))
    # Each managed route has a rule for each of the user's at most; the API is asked only where that may be many.
    crowded = rules * (1 + len(desired.managed_names)) > MAX_RULES
    most = cluster.most_rules(target.resource, deadline) if crowded else None
    many = _matches_at_most(target, desired) > MATCHES_OF_ALL_RELEASES
    matches = cluster.most_matches(target.resource, deadline) if many else None
    return replace(plain, keeps_mirror_percent=not doubt, percent_doubt=doubt, most_rules=most, most_matches=matches)


def _matches_at_most(target: Target, desired: Desired) -> int:
    """Return how many matches a rule may get: its own, for each way that a step gives to match, in a mirror or not."""
    headers, mirrors = 1, 1
    for step in (*desired.all_steps, *desired.steps.values()):
        if isinstance(step, SetMirrorRoute):
            mirrors = max(mirrors, len(step.match))
        else:
            names = Counter(entry.header_name.lower() for entry in step.match)
            headers = max(headers, len(step.match) if desired.match_any else prod(names.values()))
    lists = [rule.get("matches") for rule in rules_of(target.raw or {}) if isinstance(rule, dict)]
    longest = max((len(matches) for matches in lists if isinstance(matches, list)), default=0)
    return longest * headers * mirrors


def _mirrors_a_part(desired: Desired) -> bool:
    steps = (*desired.all_steps, *desired.steps.values())
    return any(isinstance(step, SetMirrorRoute) and step.percentage not in (None, 0, 100) for step in steps)
