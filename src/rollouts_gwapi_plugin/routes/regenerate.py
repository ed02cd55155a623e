"""Make all managed rules anew from the user's rules and the steps, so that they follow an edited source rule (D12)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Rule
from rollouts_gwapi_plugin.routes.assemble import ManagedRule, in_order, name_rules
from rollouts_gwapi_plugin.routes.crossing import crossing_notes, crossings
from rollouts_gwapi_plugin.routes.headers import header_rules
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose
from rollouts_gwapi_plugin.routes.mirror import mirror_rules
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.pair import Pair
from rollouts_gwapi_plugin.routes.precedence import Placed, overtaken, overtaking_notes
from rollouts_gwapi_plugin.routes.sources import Made, MadeRules, Source
from rollouts_gwapi_plugin.routes.standing import Standing
from rollouts_gwapi_plugin.routes.steps import Steps
from rollouts_gwapi_plugin.routes.weights import Split, weigh


@dataclass(frozen=True)
class Managed:
    """All managed rules of a Rollout on a route, in order, and what was left out of them."""

    rules: tuple[ManagedRule, ...]
    notes: tuple[Note, ...]


def regenerate(standing: Standing, users: Sequence[Rule], pair: Pair, steps: Steps, split: Split | None) -> Managed:
    """Make the managed rules of the steps; a managed route without a step keeps its rules as they are.

    Raises:
        RouteError: a step asks for what the kind of route can't match.

    """
    sources = [
        Source(rule, index) for index, rule in enumerate(users) if pair.weights(rule) and standing.is_source(index)
    ]
    mirrors = _mirrors(standing, sources, pair, steps)
    # A mirror rule would beat a header rule by a method or a longer path: header rules are made from it, too (D14).
    derived = [Source(made.basis, made.index, mirrored=True) for _, made in mirrors.made if made.basis is not None]
    headers = _headers(standing, [*sources, *derived], pair, steps)
    kept = [item for item in standing.managed_rules() if item.owned.name in steps and steps[item.owned.name] is None]
    kept = [replace(item, rule=_follow(item, standing, pair, split)) for item in kept]
    made = in_order([*mirrors.made, *headers.made], standing.desired.managed_names)
    taken = frozenset(rule.name for rule in users if rule.name) | {item.name for item in kept}
    named = name_rules(made, standing.owned_rules(), taken, standing.kind.kind)
    rules = [*(replace(item, step=steps[item.owned.name]) for item in named), *kept]
    return Managed(tuple(rules), (*mirrors.notes, *headers.notes, *_overtaking(standing, users, sources, named)))


@dataclass
class _AllMade:
    """What has been made of all steps of one purpose, with whose it is."""

    made: list[tuple[Owned, Made]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def add(self, owned: Owned, result: MadeRules) -> None:
        self.made += [(owned, item) for item in result.made]
        self.notes += result.notes


def _mirrors(standing: Standing, sources: Sequence[Source], pair: Pair, steps: Steps) -> _AllMade:
    match_kind = standing.kind.match
    result = _AllMade()
    for name, step in steps.items():
        if isinstance(step, SetMirrorRoute) and match_kind is not None:
            made = mirror_rules(step, sources, pair, match_kind, standing.kind.kind)
            result.add(Owned(Purpose.MIRROR, name), made)
    return replace(result, made=in_order(result.made, standing.desired.managed_names))


def _headers(standing: Standing, sources: Sequence[Source], pair: Pair, steps: Steps) -> _AllMade:
    result = _AllMade()
    for name, step in steps.items():
        if isinstance(step, SetHeaderRoute):
            made = header_rules(step, sources, pair, kind=standing.kind.kind, match_any=standing.desired.match_any)
            result.add(Owned(Purpose.HEADER, name), made)
    return result


def _overtaking(
    standing: Standing, users: Sequence[Rule], sources: Sequence[Source], managed: Sequence[ManagedRule]
) -> tuple[Note, ...]:
    """Warn of rules of the user's that lose requests to managed rules, or to those of another source."""
    block = 0 if standing.desired.managed_first else len(users)
    placed = [
        Placed(item.name, item.rule, item.source, block if item.before is None else item.before)
        for item in managed
        if item.source is not None
    ]
    # What other Rollouts' managed rules lose is no affair of the user's.
    weighted = frozenset(source.index for source in sources)
    told = weighted | standing.foreign
    kind, route = standing.kind.kind, str(standing.route)
    lost = overtaken(users, told, placed, kind)
    families = [item.owned.name for item in managed if item.source is not None]
    crossed = crossings(users, weighted, list(zip(families, placed, strict=True)), kind)
    return (*overtaking_notes(users, lost, route), *crossing_notes(users, crossed, route))


def _follow(item: ManagedRule, standing: Standing, pair: Pair, split: Split | None) -> Rule:
    """Return a kept rule; a mirror rule's weights follow its source's."""
    if split is None or item.owned.purpose is not Purpose.MIRROR or not pair.weights(item.rule):
        return item.rule
    return weigh(item.rule, pair, split, standing.desired)
