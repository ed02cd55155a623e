"""Which backendRefs are the Rollout's pair (decisions D9, D10).

Takes the user's rules, returns one `Pair` for the whole route: the identity that both Services have there. A rule is
weighted if it has both; a rule with one of the two is the user's own and stays as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.routes import BackendRef, Route, Rule
from rollouts_gwapi_plugin.routes.canonical import BackendIdentity, backend_identity
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.notes import Note

SERVICE = ("", "Service")


@dataclass(frozen=True)
class Pair:
    """The two backends as this route refers to them: group, kind and namespace are the same for both."""

    group: str
    kind: str
    namespace: str
    stable: str
    canary: str
    route_namespace: str

    def identity(self, name: str) -> BackendIdentity:
        """Return the identity that a backend of this name has beside the pair."""
        return self.group, self.kind, self.namespace, name

    def experiment(self, name: str, namespace: str) -> BackendIdentity:
        """Return the identity of an experiment's Service: it is in the Rollout's namespace, wherever the pair is."""
        return (*SERVICE, namespace, name) if (self.group, self.kind) == SERVICE else self.identity(name)

    def is_stable(self, ref: BackendRef) -> bool:
        """Whether the reference is stable's."""
        return backend_identity(ref, self.route_namespace) == self.identity(self.stable)

    def is_canary(self, ref: BackendRef) -> bool:
        """Whether the reference is the canary's."""
        return backend_identity(ref, self.route_namespace) == self.identity(self.canary)

    def weights(self, rule: Rule) -> bool:
        """Whether the rule has both, and so is weighted."""
        return any(map(self.is_stable, rule.backends)) and any(map(self.is_canary, rule.backends))


def _pair_places(rules: Sequence[Rule], desired: Desired, route_namespace: str) -> list[tuple[str, str, str]]:
    """Return each (group, kind, namespace) in which some rule has both names, in order of appearance."""
    places: dict[tuple[str, str, str], None] = {}
    for rule in rules:
        names: dict[tuple[str, str, str], set[str]] = {}
        for ref in rule.backends:
            group, kind, namespace, name = backend_identity(ref, route_namespace)
            names.setdefault((group, kind, namespace), set()).add(name)
        places.update(
            dict.fromkeys(place for place, found in names.items() if {desired.stable, desired.canary} <= found)
        )
    return list(places)


def find_pair(route: Route, rules: Sequence[Rule], desired: Desired) -> tuple[Pair, tuple[Note, ...]]:
    """Find the pair among the rules.

    The order: Services in the Rollout's namespace; Services of exactly one other namespace; one other kind.

    Raises:
        RouteError: no rule has both, or it is not clear which are meant; the text lists what each rule has.

    """
    route_namespace = route.metadata.namespace or desired.namespace
    places = _pair_places(rules, desired, route_namespace)

    def pair(place: tuple[str, str, str]) -> Pair:
        return Pair(*place, desired.stable, desired.canary, route_namespace)

    own = (*SERVICE, desired.namespace)
    if own in places:
        return pair(own), ()
    candidates = [place for place in places if place[:2] == SERVICE] or places
    others = [place for place in candidates if place[2] == desired.namespace] or candidates
    if len(others) == 1:
        group, kind, namespace = others[0]
        what = f"{group}/{kind}" if group else kind
        text = (
            f"{route}: backendRefs {desired.stable} and {desired.canary} are taken as {what} in namespace {namespace},"
            f" since there is no pair of Services in {desired.namespace}"
        )
        return pair(others[0]), (Note("PairByName", text),)
    raise RouteError(_not_found(route, rules, desired, others))


def _not_found(route: Route, rules: Sequence[Rule], desired: Desired, others: list[tuple[str, str, str]]) -> str:
    if others:
        found = ", ".join(f"{kind} in namespace {namespace}" for _, kind, namespace in others)
        return (
            f"{route}: backendRefs {desired.stable} and {desired.canary} are there several times ({found}) and none in"
            f" the Rollout's namespace {desired.namespace}; give them the Rollout's namespace, or move the Rollout"
        )
    names = {ref.name for rule in rules for ref in rule.backends}
    missing = [
        f"{role} Service {name}"
        for role, name in (("stable", desired.stable), ("canary", desired.canary))
        if name not in names
    ]
    what = f"{' and '.join(missing)} not found" if missing else "no rule has both"
    listing = "; ".join(f"rule {_label(index, rule)}: {_backends(rule)}" for index, rule in enumerate(rules))
    return (
        f"{route}: backendRef was not found: no rule has both stable Service {desired.stable} and canary Service"
        f" {desired.canary} of namespace {desired.namespace} ({what}); found {listing or 'no rules'}."
        " Add both as backendRefs of the rule that the rollout shall split"
    )


def _label(index: int, rule: Rule) -> str:
    return f"{index} ({rule.name})" if rule.name else str(index)


def _backends(rule: Rule) -> str:
    names = (f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name for ref in rule.backends)
    return ", ".join(names) or "no backendRefs"
