"""A route taken apart: the user's rules, ours, and what is known of ours."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.routes import BackendRef, Route, Rule
from rollouts_gwapi_plugin.routes.assemble import Block, ManagedRule, assemble
from rollouts_gwapi_plugin.routes.canonical import BackendIdentity, backend_identity, fingerprint
from rollouts_gwapi_plugin.routes.desired import Desired
from rollouts_gwapi_plugin.routes.experiments import leftovers
from rollouts_gwapi_plugin.routes.kinds import RouteKind
from rollouts_gwapi_plugin.routes.managed import (
    Claim,
    Owned,
    base_name,
    has_headers_of,
    only_canary,
    ownership,
    record_of_rule,
    settled_entries,
)
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.record import RecordView, RouteRecord, RuleMark
from rollouts_gwapi_plugin.routes.steps import Steps, steps_there
from rollouts_gwapi_plugin.routes.weights import Split


@dataclass(frozen=True)
class Standing:
    """What stands on a route, for one Rollout."""

    route: Route
    desired: Desired
    view: RecordView
    kind: RouteKind
    owners: tuple[Owned | None, ...]
    # Experiment backends of this Rollout that are on record, or known by their names where there is no record.
    recorded_experiments: frozenset[BackendIdentity]

    @property
    def namespace(self) -> str:
        """The route's namespace."""
        return self.route.metadata.namespace or self.desired.namespace

    @cached_property
    def users(self) -> list[Rule]:
        """The rules that are not ours, in order."""
        return [rule for rule, owner in zip(self.route.rules, self.owners, strict=True) if owner is None]

    def selected(self) -> list[Rule]:
        """Return the user's rules that are to be managed: all, or the one of the configured name.

        Raises:
            RouteError: no rule has that name.

        """
        selected = [rule for index, rule in enumerate(self.users) if self.is_source(index)]
        if self.desired.rule_name and not selected:
            names = ", ".join(rule.name or f"{index} has no name" for index, rule in enumerate(self.users))
            raise RouteError(
                f"{self.route}: ruleName {self.desired.rule_name!r} was not found; the rules are: {names or 'none'}"
            )
        return selected

    @cached_property
    def foreign(self) -> frozenset[int]:
        """The places, among the rules that are not ours, of other Rollouts' managed rules."""
        places = [index for index, owner in enumerate(self.owners) if owner is None]
        foreign = self._foreign()
        return frozenset(number for number, place in enumerate(places) if place in foreign)

    def is_source(self, index: int) -> bool:
        """Whether the rule of that place is to be managed: the user's, and of the configured name."""
        return index not in self.foreign and self.desired.selects(self.users[index].name)

    def is_copy(self, index: int, pair: Pair) -> bool:
        """Whether it is another Rollout's managed rule, made from such a rule: its mirror rule is a copy.

        It stands before its source. Where somebody moved it behind all that have the pair, it is one of theirs.
        """
        if index not in self.foreign:
            return False
        sources = [place for place, rule in enumerate(self.users) if place not in self.foreign and pair.weights(rule)]
        behind = next((place for place in sources if place > index), None)
        return all(map(self.is_source, sources)) if behind is None else self.is_source(behind)

    @cached_property
    def owned_names(self) -> frozenset[str]:
        """The managed routes of which a rule is on the route, or an entry on record."""
        names = {owner.name for owner in self.owners if owner is not None}
        return frozenset(names | set(self.view.record.headers) | set(self.view.record.mirrors))

    def old_entries_of_nothing(self) -> tuple[str, ...]:
        """Return the managed routes whose old entry of the Go plugin points at no rule that it made (D30)."""
        found = {owner.name for owner in self.owners if owner is not None}
        settled = settled_entries(self.route, self.desired, self.view)
        return tuple(name for name in self.view.legacy if name in settled and name not in found)

    def look_alikes(self) -> tuple[tuple[int, str], ...]:
        """Return the rules without name and record that look like a header route's, with its name (D7)."""
        return tuple(
            (index, name)
            for index, (rule, owner) in enumerate(zip(self.route.rules, self.owners, strict=True))
            if owner is None and rule.name is None and only_canary(rule, self.desired, self.namespace)
            for name in self.desired.managed_names
            if has_headers_of(rule, self.desired.all_steps, name)
        )

    def owned_rules(self) -> list[tuple[Owned, Rule]]:
        """Return our rules with whose they are, in order."""
        pairs = zip(self.route.rules, self.owners, strict=True)
        return [(owner, rule) for rule, owner in pairs if owner is not None]

    def managed_rules(self) -> list[ManagedRule]:
        """Return our rules as they stand now."""
        result, users = [], 0
        for rule, owner in zip(self.route.rules, self.owners, strict=True):
            if owner is None:
                users += 1
            else:
                # They stay where they are: a header rule may be before one that it ties with, a mirror rule the last.
                before = users if users < len(self.users) else None
                result.append(ManagedRule(owner, rule.name or owner.mark or base_name(owner.name), rule, before))
        return result

    def steps(self) -> Steps:
        """Return the managed routes that have a rule here, each with the step that made it, None: not known."""
        return steps_there(self.owners, self.view.record, self.desired)

    def is_recorded_experiment(self, ref: BackendRef) -> bool:
        """Whether the backend is an experiment's of this Rollout."""
        return backend_identity(ref, self.namespace) in self.recorded_experiments

    def assemble(self, users: Sequence[Rule], managed: Sequence[ManagedRule]) -> list[Rule]:
        """Return all rules in order."""
        block = Block(self.desired.managed_first, self._foreign(), stays=self.desired.keep_managed)
        return assemble(self.owners, users, managed, block)

    def _foreign(self) -> frozenset[int]:
        """Return the places of other Rollouts' managed rules, known as ours are."""
        names = {mark.name for mark in self.view.foreign}
        prints = {print_ for mark in self.view.foreign for print_ in mark.fingerprints}

        def shows(rule: Rule) -> bool:
            """Whether it is another's by its print: theirs leave out experiments of their own."""
            every = self.view.foreign_experiments
            return any(fingerprint(rule, self.kind.kind, self.namespace, found) in prints for found in every)

        return frozenset(
            index
            for index, rule in enumerate(self.route.rules)
            if rule.name in names or (rule.name is None and prints and shows(rule))
        )

    def record_of(
        self, managed: Sequence[ManagedRule], users: Sequence[Rule] | None = None, split: Split | None = None
    ) -> RouteRecord:
        """Return the record of the managed rules and of the experiment backends in the user's rules."""
        ours = self.recorded_experiments | (split.ours if split else frozenset())
        every = enumerate(users or self.users)
        rules = [rule for index, rule in every if index not in self.foreign]
        present = [backend_identity(ref, self.namespace) for rule in rules for ref in rule.backends]
        record = RouteRecord(experiments=tuple(dict.fromkeys(identity for identity in present if identity in ours)))
        steps = self.steps()
        for item in managed:
            mark = RuleMark(item.name, (fingerprint(item.rule, self.kind.kind, self.namespace, ours),))
            record = record.union(record_of_rule(item.owned, mark, item.step or steps.get(item.owned.name)))
        return record


def take_apart(
    route: Route, desired: Desired, view: RecordView, kind: RouteKind, *, setting: frozenset[str] = frozenset()
) -> Standing:
    """Tell the user's rules from ours; unrecorded rules of the names that are being set are ours, too (D15)."""
    desired = desired.on(route)
    recorded = frozenset(view.record.experiments) or leftovers(route, desired)
    # A destination's own Service in a rule is an experiment backend, whether its record survived or not.
    named = {
        backend_identity(ref, route.metadata.namespace or desired.namespace)
        for rule in route.rules
        for ref in rule.backends
        if ref.name in {destination.name for destination in desired.destinations}
    }
    if kind.match is None:
        owners: Sequence[Owned | None] = [None] * len(route.rules)
    else:
        owners = ownership(Claim(route, desired, view, recorded | named, setting))
    return Standing(route, desired, view, kind, tuple(owners), recorded)
