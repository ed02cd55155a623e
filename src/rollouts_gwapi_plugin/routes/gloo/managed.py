"""Managed HTTP routes: copies of a weighted route that stand right before it (decisions D12 to D15).

The first route that matches wins, so a copy with narrower matchers directly before its source takes just what the
source would have had: requests that an earlier route takes never get there, and all others never match the copy.
Header routes go to the canary alone, whatever its weight is; mirror routes have their source's destinations, and a
MirrorPolicy. Before one source the header routes stand first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.routes.desired import Desired, ManagedStep
from rollouts_gwapi_plugin.routes.gloo.destination import without_weight
from rollouts_gwapi_plugin.routes.gloo.marks import LABELS, identity
from rollouts_gwapi_plugin.routes.gloo.matchers import GlooMatch, changes_rewrite, matchers_of, with_headers
from rollouts_gwapi_plugin.routes.gloo.table import TableRoute
from rollouts_gwapi_plugin.routes.l7 import header_alternatives, mirror_headers
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose
from rollouts_gwapi_plugin.routes.mirror import mirror_percent
from rollouts_gwapi_plugin.routes.names import free_name
from rollouts_gwapi_plugin.routes.notes import MIRROR_LEFT_OUT, Note
from rollouts_gwapi_plugin.routes.steps import Steps


@dataclass(frozen=True)
class Source:
    """A weighted HTTP route as it is to be, and the canary's destination there."""

    item: TableRoute
    canary: JsonObject
    # Its place among the HTTP routes that are not ours.
    index: int


@dataclass(frozen=True)
class ManagedRoute:
    """A managed HTTP route, to stand before the user's route `before`; `percent` is a mirror's."""

    owned: Owned
    item: TableRoute
    before: int
    canary: JsonObject | None = None
    percent: int | None = None
    step: ManagedStep | None = None


@dataclass(frozen=True)
class Managed:
    """All managed routes of a Rollout on a RouteTable, in order, and what was left out of them."""

    routes: tuple[ManagedRoute, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Workshop:
    """What managed routes are made with."""

    desired: Desired
    # The RouteTable's `namespace/name`.
    table: str
    # Names of routes that are not ours.
    taken: frozenset[str]
    # Our managed routes as they stand: what is made anew keeps its name, whoever else comes and goes.
    existing: Sequence[ManagedRoute] = ()

    def make(self, steps: Steps, sources: Sequence[Source], kept: Sequence[ManagedRoute]) -> Managed:
        """Make the managed routes of all steps; `kept` are those whose step is not known, they stay as they are.

        Raises:
            RouteError: a step asks for what a RouteTable can't match.

        """
        made: list[ManagedRoute] = []
        notes: list[Note] = []
        for name in _in_order(steps, self.desired.managed_names):
            for source in sources if steps[name] else ():
                one, note = self._one(name, steps[name], source)
                made += [one] if one is not None else []
                notes += [note] if note else []
        routes = [*kept, *self._with_names(made, {item.item.name for item in kept})]
        # The sort is stable: of one source, header routes first, each in managedRoutes order.
        routes.sort(key=lambda item: (item.before, item.owned.purpose is Purpose.MIRROR))
        return Managed(tuple(routes), tuple(notes))

    def _with_names(self, made: Sequence[ManagedRoute], kept: set[str]) -> list[ManagedRoute]:
        """Give each its name: the one that it has, else the managed route's, numbered where that is taken."""
        used = set(self.taken) | kept
        names: list[str | None] = []
        for one in made:
            has = (
                old.item.name for old in self.existing if old.owned == one.owned and old.item.print == one.item.print
            )
            name = next((name for name in has if name and name not in used), None)
            names.append(name)
            used |= {name} if name else set()
        result = []
        for one, name in zip(made, names, strict=True):
            unique = name or free_name(one.owned.name, used)
            used.add(unique)
            result.append(self._named(one, unique))
        return result

    def _one(self, name: str, step: ManagedStep | None, source: Source) -> tuple[ManagedRoute | None, Note | None]:
        if isinstance(step, SetHeaderRoute):
            return self._header(name, step, source)
        if isinstance(step, SetMirrorRoute) and mirror_percent(step):
            return self._mirror(name, step, source)
        return None, None

    def _header(self, name: str, step: SetHeaderRoute, source: Source) -> tuple[ManagedRoute | None, Note | None]:
        where = f"setHeaderRoute {step.name}"
        alternatives = header_alternatives(step.match, match_any=self.desired.match_any, where=where)
        own = matchers_of(source.item)
        narrowed = [with_headers(matcher, headers) for matcher in own for headers in alternatives]
        matchers = _unique(matcher for matcher in narrowed if matcher is not None)
        note = _left_out(name, source, narrowed.count(None), everything=not matchers) if None in narrowed else None
        if not matchers:
            return None, note
        item = source.item.with_destinations([without_weight(source.canary)])
        item = TableRoute("http", {**item.raw, "matchers": matchers})
        return ManagedRoute(Owned(Purpose.HEADER, name), item, source.index, step=step), note

    def _mirror(self, name: str, step: SetMirrorRoute, source: Source) -> tuple[ManagedRoute | None, Note | None]:
        narrowed = []
        for matcher in matchers_of(source.item):
            for index, asked in enumerate(step.match):
                where = f"setMirrorRoute {step.name}.match[{index}]"
                inside = GlooMatch().intersect(matcher, asked, where)
                headers = mirror_headers(asked.headers, where)
                narrowed.append(None if inside is None else with_headers(inside, headers))
        matchers = _unique(matcher for matcher in narrowed if matcher is not None)
        if changes_rewrite(source.item, matchers):
            text = (
                f"managed route {name}: http route {source.item.name or source.index} is left out, since it rewrites"
                " the path that its matcher found (pathRewrite), and the step's path is another; mirror by headers or"
                " method"
            )
            return None, Note(MIRROR_LEFT_OUT, text)
        if not matchers:
            return None, None
        item = TableRoute("http", {**source.item.raw, "matchers": matchers})
        percent = mirror_percent(step)
        return ManagedRoute(Owned(Purpose.MIRROR, name), item, source.index, source.canary, percent, step), None

    def _named(self, made: ManagedRoute, name: str) -> ManagedRoute:
        label = LABELS[made.owned.purpose]
        labels = {**made.item.labels, label: identity(self.desired.rollout, self.table, name)}
        item = TableRoute("http", {**made.item.raw, "name": name, "labels": labels})
        return ManagedRoute(made.owned, item, made.before, made.canary, made.percent, made.step)


def _unique(matchers: Iterable[JsonObject]) -> list[JsonObject]:
    result: list[JsonObject] = []
    for matcher in matchers:
        if matcher not in result:
            result.append(matcher)
    return result


def _in_order(steps: Steps, names: Sequence[str]) -> list[str]:
    rank = {name: index for index, name in enumerate(names)}
    return sorted(steps, key=lambda name: rank.get(name, len(rank)))


def _left_out(name: str, source: Source, number: int, *, everything: bool) -> Note:
    what = "is left out" if everything else f"is left out in {number} of its matchers"
    text = (
        f"managed route {name}: http route {source.item.name or source.index} {what}, since its own headers contradict"
        " the step's"
    )
    return Note("HeaderContradiction", text)


@dataclass(frozen=True)
class Order:
    """The HTTP routes as they are, in order: which are managed by this Rollout, and which by another."""

    ours: tuple[bool, ...]
    foreign: tuple[bool, ...]

    def assemble(self, users: Sequence[TableRoute], managed: Sequence[ManagedRoute]) -> list[TableRoute]:
        """Return all HTTP routes: each of `users` (all that are not ours, as they should be), ours before it.

        Between a source and ours another Rollout's managed routes may stand: ours keep their place among them, or two
        Rollouts would move each other for ever.
        """
        result: list[TableRoute] = []
        for index, item in enumerate(users):
            place = len(result) - self._foreign_behind(index)
            result[place:place] = [one.item for one in managed if one.before == index]
            result.append(item)
        return result

    def _foreign_behind(self, index: int) -> int:
        """Return how many managed routes of others stand between our block and the user's route of that index."""
        end = [place for place, own in enumerate(self.ours) if not own][index]
        for behind, place in enumerate(range(end - 1, -1, -1)):
            if self.ours[place]:
                return behind
            if not self.foreign[place]:
                break
        return 0
