"""Which rules of a route are ours (decisions D7, D30).

Takes the route and the ledger's view, returns for each rule whose managed route it is, or None for a user's. A recorded
rule matches by its name, or by fingerprint where the installed CRD prunes rule names; where there is no record, only
rules of exactly the names that we generate, with only this Rollout's canary behind them, are ours.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, StringMatch
from rollouts_gwapi_plugin.model.routes import BackendRef, Route, Rule
from rollouts_gwapi_plugin.routes.canonical import BackendIdentity, fingerprint
from rollouts_gwapi_plugin.routes.desired import Desired, ManagedStep
from rollouts_gwapi_plugin.routes.names import is_named_after
from rollouts_gwapi_plugin.routes.record import ManagedRecord, ManagedRecords, RecordView, RouteRecord, RuleMark

# SectionName of the Gateway API, a DNS subdomain, has at most 253 characters. Room is kept for a suffix.
MAX_BASE_NAME: Final = 243
_ILLEGAL = re.compile(r"[^a-z0-9.-]+")


class Purpose(Enum):
    """What a managed rule is for."""

    HEADER = "header"
    MIRROR = "mirror"


@dataclass(frozen=True)
class Owned:
    """A rule of ours: what for, and whose managed route it is; `mark` is the name that it is recorded under."""

    purpose: Purpose
    name: str
    mark: str = field(default="", compare=False)


def records_of(record: RouteRecord, purpose: Purpose) -> ManagedRecords:
    """Return the records of the managed routes of a purpose."""
    return record.headers if purpose is Purpose.HEADER else record.mirrors


def record_of_rule(owned: Owned, mark: RuleMark, step: ManagedStep | None) -> RouteRecord:
    """Return the record of one rule; those of a route are united."""
    managed = {owned.name: ManagedRecord((mark,), step)}
    return RouteRecord(headers=managed) if owned.purpose is Purpose.HEADER else RouteRecord(mirrors=managed)


@dataclass(frozen=True)
class Claim:
    """Everything by which rules are recognised as ours on one route."""

    route: Route
    desired: Desired
    view: RecordView
    experiments: frozenset[BackendIdentity]
    # Managed routes that this call sets: unrecorded rules of their generated names are taken over (D15).
    setting: frozenset[str] = frozenset()

    @property
    def namespace(self) -> str:
        """The route's namespace."""
        return self.route.metadata.namespace or self.desired.namespace


def base_name(managed: str) -> str:
    """Return the legal rule name for a managed route's name; a name that is legal already is kept."""
    text = _ILLEGAL.sub("-", managed.lower()).strip("-.")[:MAX_BASE_NAME].strip("-.")
    # Each part between dots must begin and end with a letter or digit.
    return re.sub(r"-*\.[-.]*", ".", text) or "managed"


def is_generated(rule_name: str | None, managed: str) -> bool:
    """Whether we would give this name to a rule of that managed route."""
    return is_named_after(rule_name, base_name(managed))


def ownership(claim: Claim) -> list[Owned | None]:
    """Tell for each rule of the route whose it is."""
    owners: list[Owned | None] = [None] * len(claim.route.rules)
    _claim_recorded(claim, owners)
    names = claim.setting if claim.view.known else claim.setting | frozenset(claim.desired.managed_names)
    # Of names that look like each other's numbered ones the longest is meant.
    for name in sorted(names, key=lambda name: (-len(name), name)):
        for index, rule in enumerate(claim.route.rules):
            free = owners[index] is None and not _is_foreign(claim, rule)
            purpose_by_name = _by_name(claim, rule, name) if free else None
            if purpose_by_name is not None:
                owners[index] = Owned(purpose_by_name, name)
    for index, name in _legacy(claim):
        owners[index] = owners[index] or Owned(Purpose.HEADER, name)
    return owners


def _claim_recorded(claim: Claim, owners: list[Owned | None]) -> None:
    """Find the rule of each mark, the surest first: while a header route becomes a mirror route both have one name."""
    marks = list(_marks(claim.view.record))
    for sign in Sign:
        left = []
        for owned, mark in marks:
            index = _find(claim, owned.purpose, mark, owners, sign)
            if index is None:
                left.append((owned, mark))
            else:
                owners[index] = replace(owned, mark=mark.name)
        marks = left


def _marks(record: RouteRecord) -> Iterator[tuple[Owned, RuleMark]]:
    for purpose in Purpose:
        for name, managed in records_of(record, purpose).items():
            for mark in managed.rules:
                yield Owned(purpose, name), mark


class Sign(Enum):
    """By what a recorded rule is recognised, the surest first."""

    NAME_AND_PRINT = 1
    NAME_AND_SHAPE = 2
    PRINT = 3


def _find(claim: Claim, purpose: Purpose, mark: RuleMark, owners: list[Owned | None], sign: Sign) -> int | None:
    """Return the place of the mark's rule; a mark claims at most one."""
    found = [
        index
        for index, rule in enumerate(claim.route.rules)
        if owners[index] is None and _shows(claim, rule, purpose, mark, sign)
    ]
    if not found:
        return None
    # Of equal unnamed rules ours is the one behind the user's, or before them where the config says so.
    return found[-1] if sign is Sign.PRINT and not claim.desired.managed_first else found[0]


def _shows(claim: Claim, rule: Rule, purpose: Purpose, mark: RuleMark, sign: Sign) -> bool:
    if rule.name != (None if sign is Sign.PRINT else mark.name):
        return False
    if _is_foreign(claim, rule):
        return False
    return _has_shape(claim, rule, purpose) if sign is Sign.NAME_AND_SHAPE else _print(claim, rule) in mark.fingerprints


def _is_foreign(claim: Claim, rule: Rule) -> bool:
    """Whether another Rollout has the rule on record: it is not ours, whatever its name is (D16)."""
    marks = [mark for mark in claim.view.foreign if rule.name in (None, mark.name)]
    # Fingerprints leave out experiments: theirs the other's, which its own call may have put into the rule.
    known = (claim.experiments, *claim.view.foreign_experiments) if marks else ()
    prints = {fingerprint(rule, claim.route.kind, claim.namespace, experiments) for experiments in known}
    return any(prints & set(mark.fingerprints) for mark in marks)


def _print(claim: Claim, rule: Rule) -> str:
    return fingerprint(rule, claim.route.kind, claim.namespace, claim.experiments)


def _has_shape(claim: Claim, rule: Rule, purpose: Purpose) -> bool:
    """Whether a rule that bears a recorded name can be ours; after a ping-pong the canary's name is stable's."""
    pair = (claim.desired.canary, claim.desired.stable)
    mirrors = any(target.name in pair for target in mirror_targets(rule))
    if purpose is Purpose.HEADER:
        ours = bool(rule.backends) and all(ref.name in pair for ref in rule.backends)
        # A mirror rule has both; a header rule can have a mirror of its source's.
        return ours and (not mirrors or len(rule.backends) == 1)
    return mirrors


def mirror_targets(rule: Rule) -> list[BackendRef]:
    """Return the targets of the rule's RequestMirror filters."""
    mirrors = [item.get("requestMirror") for item in rule.filters or []]
    targets = [mirror.get("backendRef") or {} for mirror in mirrors if mirror]
    fields = ("group", "kind", "namespace", "name")
    return [BackendRef.model_validate({name: target[name] for name in fields if name in target}) for target in targets]


def only_canary(rule: Rule, desired: Desired, route_namespace: str) -> bool:
    """Whether this Rollout's canary is all that stands behind the rule."""
    return bool(rule.backends) and all(_is_canary(ref, desired, route_namespace) for ref in rule.backends)


def mirrors_to_canary(rule: Rule, desired: Desired, route_namespace: str) -> bool:
    """Whether the rule mirrors to this Rollout's canary."""
    return any(_is_canary(target, desired, route_namespace) for target in mirror_targets(rule))


def _is_canary(ref: BackendRef, desired: Desired, route_namespace: str) -> bool:
    return ref.name == desired.canary and (ref.namespace or route_namespace) in {desired.namespace, route_namespace}


def _by_name(claim: Claim, rule: Rule, name: str) -> Purpose | None:
    if not is_generated(rule.name, name):
        return None
    for desired in _turns(claim.desired):
        if only_canary(rule, desired, claim.namespace):
            return Purpose.HEADER
        has_pair = {desired.stable, desired.canary} <= {ref.name for ref in rule.backends}
        if has_pair and mirrors_to_canary(rule, desired, claim.namespace):
            return Purpose.MIRROR
    return None


def _turns(desired: Desired) -> tuple[Desired, ...]:
    """Return what is wanted with each Service that may have been the canary when the rule was made."""
    if not desired.ping_pong:
        return (desired,)
    return desired, replace(desired, stable=desired.canary, canary=desired.stable)


def _legacy(claim: Claim) -> Iterable[tuple[int, str]]:
    """Yield rules that the Go plugin (up to 0.12) recorded by index, where that rule still is what it made (D30)."""
    rules = claim.route.rules
    for name, index in claim.view.legacy.items():
        if name not in claim.desired.managed_names or not 0 <= index < len(rules):
            continue
        rule = rules[index]
        if (
            rule.name is None
            and only_canary(rule, claim.desired, claim.namespace)
            and has_headers_of(rule, claim.desired.all_steps, name)
        ):
            yield index, name


def settled_entries(route: Route, desired: Desired, view: RecordView) -> frozenset[str]:
    """Return the managed routes whose old entry of the Go plugin is done with once this Rollout's call is.

    Two Rollouts that named a managed route alike shared one entry: one that points at what may be the other's rule is
    left to it.
    """
    return frozenset(
        name
        for name, index in view.legacy.items()
        if name in desired.managed_names and not _may_be_anothers(route, index, desired)
    )


def _may_be_anothers(route: Route, index: int, desired: Desired) -> bool:
    """Whether an old entry points at a rule such as the Go plugin made, with another Rollout's Service."""
    if not 0 <= index < len(route.rules):
        return False
    rule = route.rules[index]
    only_one = len(rule.backends) == 1 and rule.backends[0].name not in (desired.stable, desired.canary)
    return rule.name is None and only_one and all(match.get("headers") for match in rule.matches or [{}])


def has_headers_of(rule: Rule, steps: Iterable[ManagedStep], name: str) -> bool:
    """Whether every match of the rule has every header of some step of that name, in the Go plugin's spelling."""
    there = [
        {(str(entry.get("name", "")).lower(), str(entry.get("value", ""))) for entry in match.get("headers") or []}
        for match in rule.matches or [{}]
    ]
    for step in steps:
        if isinstance(step, SetHeaderRoute) and step.name == name and step.match:
            wanted = {(entry.header_name.lower(), _peer_value(entry.header_value)) for entry in step.match}
            if all(wanted <= headers for headers in there):
                return True
    return False


def _peer_value(asked: StringMatch | None) -> str:
    value = asked or StringMatch()
    return value.exact or (f"{value.prefix}.*" if value.prefix else value.regex)
