"""What the ledger says about one Rollout on one route: which rules and backends are ours (decision D5).

A rule is known by its name and by fingerprints (more than one while a change is under way), never by an index.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollouts_gwapi_plugin.routes.canonical import BackendIdentity
from rollouts_gwapi_plugin.routes.desired import ManagedStep


@dataclass(frozen=True)
class RuleMark:
    """How one rule of ours is recognised."""

    name: str
    fingerprints: tuple[str, ...]


@dataclass(frozen=True)
class ManagedRecord:
    """One managed route on one route: its rules, and the step that made them (`None` where it is not known)."""

    rules: tuple[RuleMark, ...]
    step: ManagedStep | None = None

    def union(self, other: "ManagedRecord") -> "ManagedRecord":
        """Return a record that recognises what either does; the step is the other's."""
        marks = {mark.name: mark.fingerprints for mark in self.rules}
        for mark in other.rules:
            marks[mark.name] = tuple(dict.fromkeys(marks.get(mark.name, ()) + mark.fingerprints))
        return ManagedRecord(tuple(RuleMark(name, prints) for name, prints in marks.items()), other.step or self.step)

    def minus(self, other: "ManagedRecord") -> "ManagedRecord | None":
        """Return what this recognises and the other does not; None where that is nothing."""
        known = {mark.name: set(mark.fingerprints) for mark in other.rules}
        marks = []
        for mark in self.rules:
            rest = tuple(print_ for print_ in mark.fingerprints if print_ not in known.get(mark.name, ()))
            if rest:
                marks.append(RuleMark(mark.name, rest))
        return ManagedRecord(tuple(marks), self.step) if marks else None


ManagedRecords = Mapping[str, ManagedRecord]


def _union(left: ManagedRecords, right: ManagedRecords) -> ManagedRecords:
    merged = dict(left)
    for name, record in right.items():
        merged[name] = merged[name].union(record) if name in merged else record
    return merged


def _minus(left: ManagedRecords, right: ManagedRecords) -> ManagedRecords:
    rest = {name: record.minus(right[name]) if name in right else record for name, record in left.items()}
    return {name: record for name, record in rest.items() if record is not None}


@dataclass(frozen=True)
class RouteRecord:
    """Everything of one Rollout on one route."""

    headers: ManagedRecords = field(default_factory=dict)
    mirrors: ManagedRecords = field(default_factory=dict)
    experiments: tuple[BackendIdentity, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing of the Rollout on the route."""
        return not (self.headers or self.mirrors or self.experiments)

    def union(self, other: "RouteRecord") -> "RouteRecord":
        """Return a record that recognises what either does: the one to stand while a write is under way (D6)."""
        return RouteRecord(
            headers=_union(self.headers, other.headers),
            mirrors=_union(self.mirrors, other.mirrors),
            experiments=tuple(dict.fromkeys(self.experiments + other.experiments)),
        )

    def minus(self, other: "RouteRecord") -> "RouteRecord":
        """Return what this recognises and the other does not: what somebody else has recorded meanwhile."""
        return RouteRecord(
            headers=_minus(self.headers, other.headers),
            mirrors=_minus(self.mirrors, other.mirrors),
            experiments=tuple(identity for identity in self.experiments if identity not in other.experiments),
        )


@dataclass(frozen=True)
class RecordView:
    """What a reconciler may know of the ledger.

    `known` is whether the ledger could be read and has an entry of this Rollout; where it has not, rules are recognised
    by their generated names (D7). `foreign` are other Rollouts' marks on the same route, `foreign_experiments` the sets
    of experiment backends that their fingerprints may leave out, `legacy` the Go plugin's old entries (managed route ->
    index of a rule).
    """

    record: RouteRecord = RouteRecord()
    known: bool = False
    foreign: tuple[RuleMark, ...] = ()
    foreign_experiments: tuple[frozenset[BackendIdentity], ...] = ()
    legacy: Mapping[str, int] = field(default_factory=dict)


NOTHING_RECORDED = RecordView()
