"""What stands on the routes of a Rollout: read once, for every command that looks at a cluster. It writes nothing.

A route is surveyed if the configuration names it, or if it left the configuration and something still tells of the
Rollout: the record, the annotation, or weights of the pair that are not those of rest (decision D29).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.cli.subject import Subject
from rollouts_gwapi_plugin.errors import PluginError, RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Route, Rule, parse_route
from rollouts_gwapi_plugin.routes.kinds import KINDS, RouteKind
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
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView
from rollouts_gwapi_plugin.routes.standing import Standing, take_apart
from rollouts_gwapi_plugin.service.targets import Target, find_targets, read_target


class Known(Enum):
    """By what a rule is known to be the Rollout's."""

    RECORD = "record"
    NAME = "name"
    OLD_ENTRY = "old entry"


@dataclass(frozen=True)
class RuleSurvey:
    """One rule and whose it is; `alike` says why one of nobody looks like ours, `likely` whether much speaks for it."""

    index: int
    rule: Rule
    owner: Owned | None = None
    known: Known | None = None
    alike: str = ""
    likely: bool = False


@dataclass(frozen=True)
class RouteSurvey:
    """One route; `sign` says why it is here although the configuration does not name it."""

    target: Target
    sign: str = ""
    error: PluginError | None = None
    view: RecordView = NOTHING_RECORDED
    standing: Standing | None = None
    rules: tuple[RuleSurvey, ...] = ()
    pair: Pair | None = None
    pair_error: str = ""

    @property
    def route(self) -> Route | None:
        """The route, if it could be read."""
        return self.standing.route if self.standing else None

    @property
    def alikes(self) -> list[RuleSurvey]:
        """The rules that look like ours and are not known to be."""
        return [rule for rule in self.rules if rule.alike]

    @property
    def stale(self) -> list[str]:
        """What the record says and the route does not have; the next call sweeps it."""
        record = self.view.record
        present = {rule.owner for rule in self.rules if rule.owner}
        names = [
            f"managed route {name}"
            for purpose, records in ((Purpose.HEADER, record.headers), (Purpose.MIRROR, record.mirrors))
            for name in records
            if Owned(purpose, name) not in present
        ]
        there = {ref.name for rule in self.rules for ref in rule.rule.backends}
        return names + [f"experiment backend {name}" for _, _, _, name in record.experiments if name not in there]


def survey(connection: Connection, subject: Subject) -> list[RouteSurvey]:
    """Look at every route of the Rollout, those that left its configuration behind the others."""
    deadline = connection.deadline()
    configured = find_targets(connection.cluster, subject.config, subject.namespace, deadline)
    places = {(target.kind.family, target.name) for target in configured}
    left = [found for found in _left(connection, subject) if (found[0].kind.family, found[0].name) not in places]
    return [*(look_at(subject, target) for target in configured), *(look_at(subject, *found) for found in left)]


def look_at(subject: Subject, target: Target, sign: str = "") -> RouteSurvey:
    """Look at one route that was read."""
    view = subject.session.view(target.kind.family, target.name)
    if target.raw is None:
        return RouteSurvey(target, sign, target.error, view)
    try:
        route = parse_route(target.raw)
    except RouteError as error:
        return RouteSurvey(target, sign, error, view)
    standing = take_apart(route, subject.desired, view, target.kind)
    rules = tuple(
        _look_at_rule(subject, standing, index, rule, owner)
        for index, (rule, owner) in enumerate(zip(route.rules, standing.owners, strict=True))
    )
    found = RouteSurvey(target, sign, None, view, standing, rules)
    try:
        return replace(found, pair=find_pair(route, selected(standing), subject.desired)[0])
    except RouteError as error:
        return replace(found, pair_error=str(error))


def selected(standing: Standing) -> list[Rule]:
    """Return the user's rules that the configuration means.

    Raises:
        RouteError: there is none of the configured name.

    """
    name = standing.desired.rule_name
    rules = [rule for rule in standing.users if name in ("", rule.name)]
    if name and not rules:
        raise RouteError(f"{standing.route}: ruleName {name!r} was not found")
    return rules


def _look_at_rule(subject: Subject, standing: Standing, index: int, rule: Rule, owner: Owned | None) -> RuleSurvey:
    if owner is not None:
        records = standing.view.record.headers if owner.purpose is Purpose.HEADER else standing.view.record.mirrors
        if owner.name in records:
            known = Known.RECORD
        else:
            known = Known.OLD_ENTRY if rule.name is None and owner.name in standing.view.legacy else Known.NAME
        return RuleSurvey(index, rule, owner, known)
    why, likely = _alike(subject, standing, rule) if standing.kind.match is not None else ("", False)
    return RuleSurvey(index, rule, alike=why, likely=likely)


def _alike(subject: Subject, standing: Standing, rule: Rule) -> tuple[str, bool]:
    """Tell why a rule of nobody looks like ours; a name that we would not give says that it is the user's."""
    desired = subject.desired
    named = [name for name in desired.managed_names if is_generated(rule.name, name)]
    if rule.name is not None and not named:
        return "", False
    if only_canary(rule, desired, standing.namespace):
        reasons = [f"only the canary {desired.canary} is behind it"]
        headers = [name for name in desired.managed_names if has_headers_of(rule, desired.all_steps, name)]
        reasons += [f"it has the headers of setHeaderRoute {name}" for name in headers]
    elif mirrors_to_canary(rule, desired, standing.namespace):
        reasons, headers = [f"it mirrors to the canary {desired.canary}"], []
    else:
        return "", False
    reasons += [f"it bears the name of managed route {name}" for name in named]
    return "; ".join(reasons), bool(headers or named)


def _left(connection: Connection, subject: Subject) -> Iterator[tuple[Target, str]]:
    """Yield routes of any kind that tell of the Rollout, with the sign by which they do."""
    for family, kind in KINDS.items():
        ledger = subject.session.ledger(family)
        recorded = ledger.routes_of(subject.key) if ledger else ()
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


def listed_routes(connection: Connection, namespace: str, kind: RouteKind) -> dict[str, JsonObject]:
    """Return the routes of a kind by name; none where it is not served or we may not list them."""
    deadline = connection.deadline()
    try:
        resource = connection.cluster.resource(kind, deadline)
        found = connection.cluster.client.list(resource, namespace, deadline=deadline)
    except PluginError:
        return {}
    return {str(raw["metadata"]["name"]): raw for raw in found}


def _sign(subject: Subject, raw: JsonObject) -> str:
    if subject.key in annotated(raw):
        return f"annotation {ANNOTATION}"
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
