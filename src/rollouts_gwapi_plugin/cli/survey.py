"""What stands on the routes of a Rollout: read once, for every command that looks at a cluster. It writes nothing.

A route is surveyed if the configuration names it, or if it left the configuration and something still tells of the
Rollout: the record, the annotation, or weights of the pair that are not those of rest (decision D29).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.cli.standing import BackendFound, Known, Role, RouteFound, RuleFound
from rollouts_gwapi_plugin.cli.subject import Subject
from rollouts_gwapi_plugin.cli.table_survey import kept_for, look_at_table
from rollouts_gwapi_plugin.errors import Forbidden, NotFound, RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import BackendRef, Rule, parse_route
from rollouts_gwapi_plugin.routes.canonical import backend_identity, fingerprint
from rollouts_gwapi_plugin.routes.gloo.kept import ANNOTATION as KEPT
from rollouts_gwapi_plugin.routes.kinds import GLOO_GROUP, KINDS, RouteKind
from rollouts_gwapi_plugin.routes.label import ANNOTATION
from rollouts_gwapi_plugin.routes.managed import (
    Owned,
    Purpose,
    has_headers_of,
    is_generated,
    mirrors_to_canary,
    only_canary,
)
from rollouts_gwapi_plugin.routes.pair import Pair, find_pair
from rollouts_gwapi_plugin.routes.standing import Standing, take_apart
from rollouts_gwapi_plugin.service.plugin_key import KNOWN_KEYS
from rollouts_gwapi_plugin.service.targets import Target, find_targets, read_target


def survey(connection: Connection, subject: Subject) -> list[RouteFound]:
    """Look at every route of the Rollout, those that left its configuration behind the others."""
    subject.renew(connection)
    deadline = connection.deadline()
    configured = find_targets(connection.cluster, subject.config, subject.namespace, deadline)
    places = {(target.kind.family, target.name) for target in configured}
    left = [found for found in _left(connection, subject) if (found[0].kind.family, found[0].name) not in places]
    return [*(look_at(subject, target) for target in configured), *(look_at(subject, *found) for found in left)]


def look_at(subject: Subject, target: Target, sign: str = "") -> RouteFound:
    """Look at one route that was read."""
    view, _ = subject.session.view(target.kind.family, target.name)
    if target.raw is None:
        return RouteFound(target, sign, target.error, view)
    try:
        route = parse_route(target.raw)
        if target.kind.group == GLOO_GROUP:
            return look_at_table(subject, target, route, view, sign)
    except RouteError as error:
        return RouteFound(target, sign, error, view)
    standing = take_apart(route, subject.desired, view, target.kind)
    pair: Pair | None = None
    problem = ""
    try:
        pair, _ = find_pair(route, standing.selected(), subject.desired)
    except RouteError as error:
        problem = str(error)
    look = _Look(subject, standing, pair)
    rules = tuple(look.at(index) for index in range(len(route.rules)))
    names = (pair.stable, pair.canary) if pair else None
    return RouteFound(target, sign, None, view, route, rules, names, problem)


@dataclass(frozen=True)
class _Look:
    """The look at the rules of one route of the Gateway API."""

    subject: Subject
    standing: Standing
    pair: Pair | None

    def at(self, index: int) -> RuleFound:
        """Look at one rule."""
        rule, owner = self.standing.route.rules[index], self.standing.owners[index]
        backends = tuple(BackendFound(ref.name, ref.effective_weight, self._role(ref)) for ref in rule.backends)
        found = RuleFound(index, str(index), rule.name, backends, matches=tuple(rule.matches or ()))
        if owner is not None:
            return replace(found, owner=owner, known=self._known(owner, rule), fingerprint=self._fingerprint(rule))
        selected = self.standing.desired.selects(rule.name)
        weighted = self.pair is not None and self.pair.weights(rule) and selected
        return self._alike(replace(found, weighted=weighted), rule) if self.standing.kind.match is not None else found

    def _known(self, owner: Owned, rule: Rule) -> Known:
        record = self.standing.view.record
        if owner.name in (record.headers if owner.purpose is Purpose.HEADER else record.mirrors):
            return Known.RECORD
        return Known.OLD_ENTRY if rule.name is None and owner.name in self.standing.view.legacy else Known.NAME

    def _role(self, ref: BackendRef) -> Role:
        if self.pair is not None and self.pair.is_stable(ref):
            return "stable"
        if self.pair is not None and self.pair.is_canary(ref):
            return "canary"
        identity = backend_identity(ref, self.standing.namespace)
        return "experiment" if identity in self.standing.recorded_experiments else "other"

    def _alike(self, found: RuleFound, rule: Rule) -> RuleFound:
        """Say why a rule of nobody looks like ours; a name that we would not give says that it is the user's."""
        desired, namespace = self.subject.desired, self.standing.namespace
        named = [name for name in desired.managed_names if is_generated(rule.name, name)]
        if rule.name is not None and not named:
            return found
        headers: list[str] = []
        purpose = Purpose.HEADER
        if only_canary(rule, desired, namespace):
            reasons = [f"only the canary {desired.canary} is behind it"]
            headers = [name for name in desired.managed_names if has_headers_of(rule, desired.all_steps, name)]
            reasons += [f"it has the headers of setHeaderRoute {name}" for name in headers]
        elif mirrors_to_canary(rule, desired, namespace):
            reasons, purpose = [f"it mirrors to the canary {desired.canary}"], Purpose.MIRROR
        else:
            return found
        reasons += [f"it bears the name of managed route {name}" for name in named]
        likely, print_ = bool(headers or named), self._fingerprint(rule)
        return replace(found, alike="; ".join(reasons), likely=likely, fingerprint=print_, purpose=purpose)

    def _fingerprint(self, rule: Rule) -> str:
        standing = self.standing
        return fingerprint(rule, standing.kind.kind, standing.namespace, standing.recorded_experiments)


def _left(connection: Connection, subject: Subject) -> Iterator[tuple[Target, str]]:
    """Yield routes of any kind that tell of the Rollout, with the sign by which they do."""
    for family in _families(subject):
        kind = KINDS[family]
        readable = subject.session.trouble(family) is None
        recorded = subject.session.ledger(family).routes_of(subject.key) if readable else ()
        listed = listed_routes(connection, subject.namespace, kind)
        for name in recorded:
            target = Target(kind, subject.namespace, name, takes_headers=False)
            if name in listed:
                resource = connection.cluster.resource(kind, connection.deadline())
                yield replace(target, raw=listed[name], resource=resource), "on record"
            else:
                yield read_target(connection.cluster, target, connection.deadline()), "on record"
        for name, raw in listed.items():
            sign = _sign(subject, raw)
            if sign and name not in recorded:
                resource = connection.cluster.resource(kind, connection.deadline())
                yield Target(kind, subject.namespace, name, takes_headers=False, resource=resource, raw=raw), sign


def _families(subject: Subject) -> tuple[str, ...]:
    """Return the kinds on which something may be left; of a Rollout with several keys, those of the one looked at."""
    named = subject.rollout.traffic_routing.plugins if subject.rollout is not None else {}
    several = sum(key in named for key in KNOWN_KEYS) > 1
    return subject.config.known_families if several else tuple(KINDS)


def listed_routes(connection: Connection, namespace: str, kind: RouteKind) -> dict[str, JsonObject]:
    """Return the routes of a kind by name; none where it is not served or we may not list them.

    Raises:
        Unavailable: the API server gives no answer, which is not the same as that there are none.

    """
    deadline = connection.deadline()
    try:
        resource = connection.cluster.resource(kind, deadline)
        found = connection.cluster.client.list(resource, namespace, deadline=deadline)
    except (NotFound, Forbidden):
        return {}
    return {str(raw["metadata"]["name"]): raw for raw in found}


def _sign(subject: Subject, raw: JsonObject) -> str:
    if subject.key in annotated(raw):
        return f"annotation {ANNOTATION}"
    if subject.key in kept_for(raw):
        return f"annotation {KEPT}"
    try:
        route = parse_route(raw)
        pair, _ = find_pair(route, route.rules, subject.desired)
    except RouteError:
        return ""
    weights = [ref.effective_weight for rule in route.rules for ref in rule.backends if pair.is_canary(ref)]
    return "the canary has weight on it" if any(weights) else ""


def annotated(raw: JsonObject) -> list[str]:
    """Return the Rollouts that the route's annotation lists."""
    annotations = (raw.get("metadata") or {}).get("annotations") or {}
    entries = (entry.strip() for entry in str(annotations.get(ANNOTATION, "")).split(","))
    return [entry for entry in entries if entry]
