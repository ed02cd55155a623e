"""Put managed rules where they belong among the user's (decision D14).

Takes the route as it is with the owner of each rule, the user's rules as they should be, and the managed rules in
order; returns the list of rules. An existing rule that is the same modulo defaults is kept as the very object it is,
so that a route which is as it should be comes out unchanged.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.canonical import same_rule
from rollouts_gwapi_plugin.routes.desired import ManagedStep
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose, base_name
from rollouts_gwapi_plugin.routes.names import free_name
from rollouts_gwapi_plugin.routes.sources import Made


@dataclass(frozen=True)
class ManagedRule:
    """A managed rule, to be recorded under `name`; it stands before the user's rule `before`, None: with the block.

    `rule.name` differs from `name` only where the installed CRD prunes rule names. `source` is the place of the user's
    rule that it was made from; a rule that is kept as it is has none.
    """

    owned: Owned
    name: str
    rule: Rule
    before: int | None
    step: ManagedStep | None = None
    source: int | None = None


def name_rules(
    made: Sequence[tuple[Owned, Made]], existing: Sequence[tuple[Owned, Rule]], taken: frozenset[str], kind: str
) -> list[ManagedRule]:
    """Give each made rule its name, and put the existing rule in its place where it is the same.

    Names are the managed route's, then with -1, -2, …; a name that somebody else's rule bears is stepped over.
    """
    used = set(taken)
    left = list(existing)
    result = []
    for owned, item in made:
        name = free_name(base_name(owned.name), used)
        used.add(name)
        rule = item.rule.replace(name=name)
        for index, (other_owned, other) in enumerate(left):
            if other_owned == owned and other.name in (name, None) and same_rule(other, rule, kind):
                rule = other
                del left[index]
                break
        result.append(ManagedRule(owned, name, rule, item.before, source=item.index))
    return result


@dataclass(frozen=True)
class Block:
    """Where the block of managed header rules goes: behind the user's rules, or before them.

    `foreign` are the places of other Rollouts' managed rules.
    """

    first: bool
    foreign: frozenset[int]
    # Where others' rules can't be known (no ledger), ours stay where they are.
    stays: bool = False


def assemble(
    owners: Sequence[Owned | None], users: Sequence[Rule], managed: Sequence[ManagedRule], block: Block
) -> list[Rule]:
    """Return the rules in order: each of the user's with what stands before it, the header block last or first.

    Between a source and ours another Rollout's managed rules may stand: ours keep their place among them, or two
    Rollouts would move each other for ever.
    """
    rules: list[Rule] = []
    for index, rule in enumerate(users):
        before = [item for item in managed if item.before == index]
        # A header rule that matches just what a mirror rule does must be the first of the two.
        before.sort(key=lambda item: item.owned.purpose is Purpose.MIRROR)
        place = len(rules) - (_foreign_behind(index, owners, block.foreign) if before else 0)
        rules[place:place] = [item.rule for item in before]
        rules.append(rule)
    header_block = [item.rule for item in managed if item.before is None]
    if not header_block:
        return rules
    place = _place(owners, block)
    # `place` counts the user's rules before the block; each brings along what stands before it.
    position = place + sum(1 for item in managed if item.before is not None and item.before < place)
    return [*rules[:position], *header_block, *rules[position:]]


def _place(owners: Sequence[Owned | None], block: Block) -> int:
    """Return how many of the user's rules stand before the block.

    Another Rollout's managed rules may stand on the same side, before or behind ours: the block stays where it is then,
    or two Rollouts would move each other for ever.
    """
    users = [index for index, owner in enumerate(owners) if owner is None]
    ours = [index for index, owner in enumerate(owners) if owner is not None and owner.purpose is Purpose.HEADER]
    end = 0 if block.first else len(users)
    if not ours:
        return end
    # Rules that tie with their source stand before it: the block is the first, or the last, that stand together.
    start = ours[0]
    if not block.first:
        start = ours[-1]
        while start - 1 in ours:
            start -= 1
    before = [index for index in users if index < start]
    outside = before if block.first else users[len(before) :]
    settled = block.stays or all(index in block.foreign for index in outside)
    return len(before) if settled else end


def _foreign_behind(index: int, owners: Sequence[Owned | None], foreign: frozenset[int]) -> int:
    """Return how many managed rules of others stand between ours and the user's rule of that index."""
    end = [place for place, owner in enumerate(owners) if owner is None][index]
    for behind, place in enumerate(range(end - 1, -1, -1)):
        if owners[place] is not None:
            return behind
        if place not in foreign:
            break
    return 0


def in_order(made: Sequence[tuple[Owned, Made]], names: Sequence[str]) -> list[tuple[Owned, Made]]:
    """Return the made rules in managedRoutes order; names that are not listed stand behind, in their own order."""
    rank = {name: index for index, name in enumerate(names)}
    return sorted(made, key=lambda item: rank.get(item[0].name, len(rank)))
