"""The reconcilers of RouteTables: one function a call, as `routes.reconcile` has them for the Gateway API.

Weights are those of `weights`, managed routes those of `managed`; http, tcp and tls routes are found and weighed by the
same code. The very same object comes back where nothing changes, and twice is once.
"""

from collections.abc import Sequence
from dataclasses import replace

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.gloo_config import GlooConfig
from rollouts_gwapi_plugin.model.rollout import SetMirrorRoute
from rollouts_gwapi_plugin.model.route_tables import SECTIONS
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.desired import Desired, ManagedStep
from rollouts_gwapi_plugin.routes.gloo.destination import SERVICE, effective_weights, kind_of, name_of, without_weight
from rollouts_gwapi_plugin.routes.gloo.kept import Kept
from rollouts_gwapi_plugin.routes.gloo.managed import Managed, ManagedRoute, Source, Workshop
from rollouts_gwapi_plugin.routes.gloo.marks import is_marked
from rollouts_gwapi_plugin.routes.gloo.outcome import Weighted, as_they_are, finish
from rollouts_gwapi_plugin.routes.gloo.pair import GlooPair, names
from rollouts_gwapi_plugin.routes.gloo.standing import TableStanding, take_apart
from rollouts_gwapi_plugin.routes.gloo.table import TableRoute, read_table
from rollouts_gwapi_plugin.routes.gloo.weights import Role, Scale, seen_in, weigh
from rollouts_gwapi_plugin.routes.managed import Purpose
from rollouts_gwapi_plugin.routes.mirror import mirrors_nothing
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.reconcile import Outcome, Scope
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView
from rollouts_gwapi_plugin.routes.steps import Steps, other_steps, possible_steps, refusal
from rollouts_gwapi_plugin.routes.weights import ExperimentError


def set_weight(route: Route, desired: Desired, view: RecordView, scope: Scope) -> Outcome:
    """Bring weights, experiments and (in heal) managed routes to what is wanted.

    A managed route that can't be restored never holds back the weights: it is told in a note.

    Raises:
        RouteError: no route has stable's destination; or an experiment can't be set and the canary's weight is not
            lowered (D31).

    """
    del scope
    return _set_weight(route, desired, view)


def _set_weight(route: Route, desired: Desired, view: RecordView) -> Outcome:
    healed = {name for name, step in desired.steps.items() if step.match} if desired.heal else set()
    standing = take_apart(route, desired, view, setting=frozenset(healed))
    pair, notes = standing.find_pair()
    try:
        outcome = _weigh_and_heal(standing, Scale(pair, desired, standing.experiments))
    except ExperimentError as error:
        named = RouteError(f"{route}: {error}")
        scale = Scale(pair, desired, standing.experiments, with_experiments=False)
        if not _lowers(standing, scale):
            raise named from error
        outcome = replace(_weigh_and_heal(standing, scale), problem=named)
    return outcome.with_notes(*notes)


def set_managed_route(route: Route, step: ManagedStep, desired: Desired, view: RecordView, scope: Scope) -> Outcome:
    """Set the managed route of the step's name, or remove it where the step has no match (D16).

    Raises:
        RouteError: the RouteTable can't take it; nothing is to be written.
        StepNotTakenError: it has no request that the step means.

    """
    del scope
    if not step.name:
        raise RouteError(f"{route}: a managed route can't be set: the step has no name")
    standing = take_apart(route, desired, view, setting=frozenset({step.name}))
    if not step.match:
        return _unset(standing, step.name)
    if isinstance(step, SetMirrorRoute) and standing.config.mirror == "off":
        return _left_as_it_is(standing).with_notes(_mirror_is_off(standing, step))
    pair, notes = standing.find_pair()
    scale = Scale(pair, desired, standing.experiments)
    steps = {**other_steps(standing.steps(), step.name, desired), step.name: step}
    sources = _sources(standing, standing.candidates, scale)
    managed = _make(standing, steps, sources)
    if step.name not in {item.owned.name for item in managed.routes} and not mirrors_nothing(step):
        alone = _make(standing, {step.name: step}, sources)
        nothing = "no http route and the step have requests in common" if sources else "no http route is weighted here"
        raise refusal(step.name, alone.notes, nothing, str(route))
    outcome = finish(standing, as_they_are(standing), managed, pair)
    companions = replace(outcome.companions, required=isinstance(step, SetMirrorRoute))
    return replace(outcome, companions=companions).with_notes(*notes)


def remove_managed_routes(route: Route, desired: Desired, view: RecordView, scope: Scope) -> Outcome:
    """Remove every managed route of the Rollout, and nothing of anyone else (D16); experiments stay."""
    del scope
    standing = take_apart(route, desired, view)
    return finish(standing, as_they_are(standing), Managed(), _pair_or_none(standing))


def give_back(route: Route, desired: Desired, view: RecordView, scope: Scope, *, weights: bool) -> Outcome:
    """Remove everything of the Rollout from a RouteTable that left the configuration (D29).

    The pair is put back as the user wrote it wherever the annotation says what that was, which is wherever we changed
    it: so it need not be known whether this process wrote the live weights (`weights`).
    """
    del scope, weights
    standing = take_apart(route, replace(desired, weight=0, destinations=(), resting=True), view)
    pair = _pair_or_none(standing)
    if pair is None:
        return finish(standing, as_they_are(standing), Managed(), None)
    scale = Scale(pair, standing.desired, standing.experiments, gives_back=True)
    returned = [_given_back(standing, index, scale) for index in range(len(standing.candidates))]
    return finish(standing, Weighted(returned, (), _copies(standing, returned, scale)), Managed(), pair)


def adds(before: Route, outcome: Outcome) -> bool:
    """Whether a managed route or an experiment's destination is there that was not."""
    old, new = read_table(before), read_table(outcome.route)
    names_before = {item.name for item in old["http"]}
    if any(is_marked(item) and item.name not in names_before for item in new["http"]):
        return True
    experiments = {name for _, _, _, name in outcome.record.experiments}
    counts = [
        sum(name_of(raw) in experiments for section in SECTIONS for item in table[section] for raw in item.destinations)
        for table in (old, new)
    ]
    return counts[1] > counts[0]


def is_at(route: Route, desired: Desired, weight: int) -> bool:
    """Whether the live weights are those of this weight."""
    at = replace(desired, weight=weight, destinations=(), heal=False)
    try:
        return not _difference(route, _set_weight(route, at, NOTHING_RECORDED))
    except RouteError:
        return False


def shows_traces(route: Route, desired: Desired) -> bool:
    """Whether the RouteTable itself gives a reason to read the ledger (D8).

    A route with our label, or a Service beside the pair, can be of ours.
    """
    table = read_table(route)
    stable, canary = names(desired, desired.gloo or GlooConfig())
    for item in (item for section in SECTIONS for item in table[section]):
        there = {name_of(raw) for raw in item.destinations if kind_of(raw) == SERVICE}
        if is_marked(item) or (there & {stable, canary} and there - {stable, canary}):
            return True
    return False


def services_needed(route: Route, desired: Desired, view: RecordView, scope: Scope) -> tuple[str, ...]:
    """Return the experiment Services that must be read before `set_weight` can put them on this RouteTable."""
    del scope
    if not desired.destinations:
        return ()
    standing = take_apart(route, desired, view)
    pair, _ = standing.find_pair()
    needed: dict[str, None] = {}
    for index, item in enumerate(standing.candidates):
        if standing.is_weighted(index, pair):
            there = {name_of(raw) for raw in item.destinations}
            absent = [one for one in desired.destinations if one.weight and one.name not in there and one.ports is None]
            needed.update(dict.fromkeys(one.name for one in absent))
    return tuple(needed)


def wrong_weights(route: Route, desired: Desired, view: RecordView, scope: Scope) -> str:
    """Tell how the live weights differ from the wanted ones; empty where they do not. For VerifyWeight (D19).

    Raises:
        RouteError: no route has stable's destination.

    """
    absent = services_needed(route, desired, view, scope)
    if absent:
        return f"{route}: experiment destinations {', '.join(absent)} are not on every weighted route"
    return _difference(route, _set_weight(route, replace(desired, heal=False, keep_managed=True), view))


def _difference(route: Route, outcome: Outcome) -> str:
    live, wanted = read_table(route), read_table(outcome.route)
    for section in SECTIONS:
        for old, new in zip(live[section], wanted[section], strict=False):
            have, want = _weights(old), _weights(new)
            if have != want:
                return f"{route}: {old} has {_text(have)}, wanted {_text(want)}"
        if len(live[section]) != len(wanted[section]):
            return f"{route}: {section} has {len(live[section])} routes, wanted {len(wanted[section])}"
    return ""


def _weights(item: TableRoute) -> list[tuple[str, int]]:
    return list(zip(map(name_of, item.destinations), effective_weights(item.destinations), strict=True))


def _text(pairs: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name}={weight}" for name, weight in pairs) or "no destinations"


def _pair_or_none(standing: TableStanding) -> GlooPair | None:
    try:
        return standing.find_pair()[0]
    except RouteError:
        return None


def _left_as_it_is(standing: TableStanding) -> Outcome:
    return finish(standing, as_they_are(standing), Managed(tuple(standing.managed_routes())), _pair_or_none(standing))


def _mirror_is_off(standing: TableStanding, step: ManagedStep) -> Note:
    text = f"{standing.route}: managed route {step.name} is not set, since mirroring is switched off (mirror: off)"
    return Note("MirrorIsOff", text)


def _unset(standing: TableStanding, name: str) -> Outcome:
    """Remove one managed route; what is gone already, or stands where no route has the pair, can be removed, too."""
    if name not in standing.owned_names:
        return _left_as_it_is(standing)
    rest = tuple(item for item in standing.managed_routes() if item.owned.name != name)
    return finish(standing, as_they_are(standing), Managed(rest), _pair_or_none(standing))


def _weigh_and_heal(standing: TableStanding, scale: Scale) -> Outcome:
    if scale.with_experiments and standing.desired.destination_problem:
        raise ExperimentError(standing.desired.destination_problem)
    candidates: list[TableRoute] = []
    kept: list[Kept] = []
    notes: list[Note] = []
    for index, item in enumerate(standing.candidates):
        if not standing.is_weighted(index, scale.pair):
            candidates.append(_given_back(standing, index, replace(scale, gives_back=True)))
            continue
        weighed = weigh(item, standing.kept.get(index), scale, f"{standing.route}: {item}")
        candidates.append(weighed.route)
        kept += [weighed.kept] if weighed.kept is not None else []
        notes += weighed.notes
    weighted = Weighted(candidates, tuple(kept), _copies(standing, candidates, scale))
    sources = _sources(standing, candidates, scale)

    def done(steps: Steps) -> Outcome:
        return finish(standing, weighted, _make(standing, steps, sources), scale.pair)

    wanted = _wanted(standing)
    try:
        outcome = done(wanted)
    except RouteError:
        possible, told = possible_steps(wanted, standing.steps(), done, str(standing.route))
        outcome, notes = done(possible), [*notes, *told]
    return outcome.with_notes(*notes)


def _wanted(standing: TableStanding) -> Steps:
    """Return the managed routes that there should be, each with the step that makes it (None: keep as it is)."""
    desired = standing.desired
    steps: dict[str, ManagedStep | None] = dict(standing.steps())
    for name, step in desired.steps.items() if desired.heal and not desired.keep_managed else ():
        if step.match:
            steps[name] = step
        else:
            steps.pop(name, None)
    if desired.keep_managed:
        return dict.fromkeys(steps)
    if standing.config.mirror == "off":
        return {name: step for name, step in steps.items() if not isinstance(step, SetMirrorRoute)}
    return steps


def _lowers(standing: TableStanding, scale: Scale) -> bool:
    """Whether the canary gets less in some route than it has there."""
    for index, item in enumerate(standing.candidates):
        if not standing.is_weighted(index, scale.pair):
            continue
        wanted = weigh(item, standing.kept.get(index), scale, f"{standing.route}: {item}").route
        if _canary_share(item, scale.pair) > _canary_share(wanted, scale.pair):
            return True
    return False


def _canary_share(item: TableRoute, pair: GlooPair) -> int:
    shares = zip(item.destinations, effective_weights(item.destinations), strict=True)
    return sum(share for raw, share in shares if pair.is_canary(raw))


def _given_back(standing: TableStanding, index: int, scale: Scale) -> TableRoute:
    """Return a route that is weighted no more, with the pair as the user wrote it and without experiments."""
    item = standing.candidates[index]
    has_experiments = any(scale.role(raw) is Role.EXPERIMENT for raw in item.destinations)
    if not standing.has_stable(index, scale.pair) or not (index in standing.kept or has_experiments):
        return item
    at_rest = replace(scale, desired=replace(scale.desired, weight=0, destinations=()))
    return weigh(item, standing.kept.get(index), at_rest, f"{standing.route}: {item}").route


def _copies(standing: TableStanding, candidates: Sequence[TableRoute], scale: Scale) -> dict[int, TableRoute]:
    """Return other Rollouts' mirror routes of what is weighted here: they follow their sources at once (D12).

    Their own Rollout may not be called for long, and the canary of an abort must not keep its requests meanwhile.
    """
    copies: dict[int, TableRoute] = {}
    for index in range(len(standing.user_places)):
        old, new = standing.candidates[index], candidates[index]
        if new is old and not standing.is_weighted(index, scale.pair):
            continue
        for place in standing.copies_of(index):
            item, _ = standing.others[place]
            if _rest(item, scale) == _rest(old, scale):
                copies[place] = item.with_destinations(new.destinations)
    return copies


def _rest(item: TableRoute, scale: Scale) -> list[JsonObject]:
    """Return the destinations that are not this Rollout's, without weights: a copy has those of its source."""
    return [without_weight(raw) for raw in item.destinations if scale.role(raw) is Role.OTHER]


def _sources(standing: TableStanding, candidates: Sequence[TableRoute], scale: Scale) -> list[Source]:
    """Return the weighted HTTP routes, each with the canary's destination: live, kept or derived."""
    sources = []
    for index, (item, place) in enumerate(zip(candidates, standing.user_places, strict=False)):
        if standing.is_weighted(index, scale.pair):
            sources.append(Source(item, _canary_of(standing, index, scale), place))
    return sources


def _canary_of(standing: TableStanding, index: int, scale: Scale) -> JsonObject:
    item = standing.candidates[index]
    seen = seen_in(item, standing.kept.get(index), scale, f"{standing.route}: {item}")
    stable = next(one.raw for one in seen if one.role is Role.STABLE)
    live = next((one.raw for one in seen if one.role is Role.CANARY), None)
    return scale.pair.derive_canary(stable) if live is None else live


def _make(standing: TableStanding, steps: Steps, sources: Sequence[Source]) -> Managed:
    stay = [item for item in standing.managed_routes() if item.owned.name in steps and steps[item.owned.name] is None]
    taken = frozenset(item.name for item in standing.users(standing.candidates)["http"] if item.name)
    return Workshop(standing.desired, standing.key, taken, standing.managed_routes()).make(
        steps, sources, [_followed(one, sources) for one in stay]
    )


def _followed(managed: ManagedRoute, sources: Sequence[Source]) -> ManagedRoute:
    """Return a managed route that is kept as it is; a mirror route's weights follow its source's."""
    source = next((one for one in sources if one.index == managed.before), None)
    if source is None or managed.owned.purpose is not Purpose.MIRROR:
        return managed
    return replace(managed, item=managed.item.with_destinations(source.item.destinations))
