"""The reconcilers: one function a call, route in, route out (decisions D9 to D17, D31, D32).

Each takes a route, what is wanted and the ledger's view, and returns an `Outcome`: the same route object where nothing
changes, the Rollout's record on this route as it should be afterwards, notes, and a problem that is to be reported
although the rest was done. The input is never changed, and twice is once. An error that makes the whole call void on
this route is raised.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.model.routes import Route, Rule
from rollouts_gwapi_plugin.routes.companions import NO_COMPANIONS, Companions
from rollouts_gwapi_plugin.routes.desired import Desired, ManagedStep
from rollouts_gwapi_plugin.routes.kinds import RouteKind
from rollouts_gwapi_plugin.routes.label import mark_in_progress
from rollouts_gwapi_plugin.routes.limits import check_limits
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose, mirrors_to_canary, only_canary
from rollouts_gwapi_plugin.routes.mirror import ALL, mirrors_nothing
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.pair import Pair, find_pair
from rollouts_gwapi_plugin.routes.record import RecordView, RouteRecord
from rollouts_gwapi_plugin.routes.regenerate import Managed, regenerate
from rollouts_gwapi_plugin.routes.standing import Standing, take_apart
from rollouts_gwapi_plugin.routes.steps import Steps, other_steps, possible_steps, refusal
from rollouts_gwapi_plugin.routes.weights import ExperimentError, Split, split_of, unresolved, weigh, weigh_copy


@dataclass(frozen=True)
class Scope:
    """How this route takes part: its kind, whether header routes are wanted on it, and what its CRD keeps and takes.

    `percent_doubt` says why a mirror's percentage is not kept, where that is more than that the CRD drops it;
    `most_rules` is how many rules the CRD takes, `most_matches` how many matches a rule; None where that is not known.
    """

    kind: RouteKind
    takes_headers: bool = False
    keeps_mirror_percent: bool = True
    percent_doubt: str = ""
    most_rules: int | None = None
    most_matches: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What one call makes of one route."""

    route: Route
    record: RouteRecord
    notes: tuple[Note, ...] = ()
    problem: RouteError | None = None
    companions: Companions = NO_COMPANIONS

    def with_notes(self, *notes: Note) -> "Outcome":
        """Return the outcome with notes of what was found before it."""
        return replace(self, notes=(*notes, *self.notes))


def set_weight(route: Route, desired: Desired, view: RecordView, scope: Scope) -> Outcome:
    """Bring weights, experiments and (in heal) managed routes to what is wanted.

    A managed route that can't be restored never holds back the weights: it is told in a note.

    Raises:
        RouteError: no rule has the pair; or an experiment can't be set and the canary's weight is not lowered (D31).

    """
    standing = take_apart(route, desired, view, scope.kind, setting=_healed(desired, scope))
    pair, notes = find_pair(route, standing.selected(), desired)
    try:
        outcome = _weigh_and_heal(standing, pair, scope, experiments=True)
    except ExperimentError as error:
        named = RouteError(f"{route}: {error}")
        if not _lowers(standing, pair):
            raise named from error
        outcome = replace(_weigh_and_heal(standing, pair, scope, experiments=False), problem=named)
    return outcome.with_notes(*notes)


def set_managed_route(route: Route, step: ManagedStep, desired: Desired, view: RecordView, scope: Scope) -> Outcome:
    """Set the managed route of the step's name, or remove it where the step has no match (D16).

    Raises:
        RouteError: the route can't take it; nothing is to be written.
        StepNotTakenError: the route has no request that it means, or its kind can't say it.

    """
    if not step.name:
        raise RouteError(f"{route}: a managed route can't be set: the step has no name")
    standing = take_apart(route, desired, view, scope.kind, setting=frozenset({step.name}))
    if not step.match:
        return _unset(standing, step.name, scope)
    _refuse_silent_full_mirror(route, step, scope)
    pair, notes = find_pair(route, standing.selected(), desired)
    steps = {**other_steps(standing.steps(), step.name, desired), step.name: step}
    managed = regenerate(standing, standing.users, pair, steps, None)
    names = {item.owned.name for item in managed.rules}
    if step.name not in names and not mirrors_nothing(step):
        alone = regenerate(standing, standing.users, pair, {step.name: step}, None)
        raise refusal(step.name, alone.notes, "no rule and the step have requests in common", str(route))
    outcome = _finish(standing, scope, standing.users, managed, pair)
    return outcome.with_notes(*notes)


def _unset(standing: Standing, name: str, scope: Scope) -> Outcome:
    """Remove one managed route; what is gone already, or stands on a rule that lost its pair, can be removed, too."""
    if name not in standing.owned_names:
        return Outcome(standing.route, standing.record_of(standing.managed_rules()))
    try:
        pair, notes = find_pair(standing.route, standing.selected(), standing.desired)
    except RouteError:
        rest = tuple(item for item in standing.managed_rules() if item.owned.name != name)
        return _finish(standing, scope, standing.users, Managed(rest, ()), None)
    others = other_steps(standing.steps(), name, standing.desired)
    managed = regenerate(standing, standing.users, pair, others, None)
    outcome = _finish(standing, scope, standing.users, managed, pair)
    return outcome.with_notes(*notes)


def remove_managed_routes(route: Route, desired: Desired, view: RecordView, scope: Scope) -> Outcome:
    """Remove every managed route of the Rollout, and nothing of anyone else (D16); experiments stay."""
    standing = take_apart(route, desired, view, scope.kind)
    return _finish(standing, scope, standing.users, Managed((), ()), _pair_or_none(standing))


def give_back(route: Route, desired: Desired, view: RecordView, scope: Scope, *, weights: bool) -> Outcome:
    """Remove everything of the Rollout from a route that left the configuration (D29); the weights only if told to."""
    standing = take_apart(route, replace(desired, weight=0, destinations=()), view, scope.kind)
    # Without the pair there are no weights to give back; what we added goes all the same.
    pair = _pair_or_none(standing) if weights else None
    if pair is None:
        users = [
            rule if index in standing.foreign else _without_experiments(rule, standing)
            for index, rule in enumerate(standing.users)
        ]
    else:
        split = split_of(standing.desired, pair, standing.recorded_experiments)
        users = [_weighed(index, pair, split, standing) for index in range(len(standing.users))]
    given_back = route.with_rules(standing.assemble(users, ()))
    unmarked = mark_in_progress(given_back, desired.label, desired.rollout, standing=False)
    return Outcome(unmarked, standing.record_of((), users))


def adds(before: Route, outcome: Outcome) -> bool:
    """Whether a rule or a backend is on the route that was not: what must not be there without a record."""
    after = outcome.route
    names = {rule.name for rule in before.rules}
    backends = [sum(len(rule.backends) for rule in route.rules) for route in (before, after)]
    return any(rule.name not in names for rule in after.rules) or backends[1] > backends[0]


def is_at(route: Route, desired: Desired, weight: int) -> bool:
    """Whether the canary has this weight in every rule that the pair has, by name: the user did not change it since."""
    pair = {desired.stable, desired.canary}
    weighted = [rule for rule in route.rules if pair <= {ref.name for ref in rule.backends}]
    selected = [rule for rule in weighted if desired.on(route).selects(rule.name)]
    weights = {ref.effective_weight for rule in selected for ref in rule.backends if ref.name == desired.canary}
    return weights == {weight}


def shows_traces(route: Route, desired: Desired) -> bool:
    """Whether the route itself gives a reason to read the ledger (D8).

    A rule with only the canary, a mirror to the canary, or a backend beside the pair can be ours.
    """
    namespace = route.metadata.namespace or desired.namespace
    pair = {desired.stable, desired.canary}
    for rule in route.rules:
        names = {ref.name for ref in rule.backends}
        if only_canary(rule, desired, namespace) or mirrors_to_canary(rule, desired, namespace):
            return True
        if pair < names:
            return True
    return False


def services_needed(route: Route, desired: Desired, view: RecordView, scope: Scope) -> tuple[str, ...]:
    """Return the experiment Services that must be read before `set_weight` can put them on this route."""
    if not desired.destinations:
        return ()
    standing = take_apart(route, desired, view, scope.kind)
    rules = standing.selected()
    pair, _ = find_pair(route, rules, desired)
    return unresolved(_weighted(rules, pair, standing.desired), pair, desired)


def wrong_weights(route: Route, desired: Desired, view: RecordView, scope: Scope) -> str:
    """Tell how the live weights differ from the wanted ones; empty where they do not. For VerifyWeight (D19).

    Raises:
        RouteError: no rule has the pair.

    """
    absent = services_needed(route, desired, view, scope)
    if absent:
        return f"{route}: experiment backends {', '.join(absent)} are not on every weighted rule"
    outcome = set_weight(route, replace(desired, heal=False, keep_managed=True), view, scope)
    for index, (live, wanted) in enumerate(zip(route.rules, outcome.route.rules, strict=False)):
        have = [(ref.name, ref.effective_weight) for ref in live.backends]
        want = [(ref.name, ref.effective_weight) for ref in wanted.backends]
        if have != want:
            return f"{route}: rule {index} has {_weights(have)}, wanted {_weights(want)}"
    return ""


def _weights(pairs: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name}={weight}" for name, weight in pairs) or "no backendRefs"


def _pair_or_none(standing: Standing) -> Pair | None:
    try:
        return find_pair(standing.route, standing.selected(), standing.desired)[0]
    except RouteError:
        return None


def _weighted(rules: Sequence[Rule], pair: Pair, desired: Desired) -> list[Rule]:
    return [rule for rule in rules if pair.weights(rule) and desired.selects(rule.name)]


def _healed(desired: Desired, scope: Scope) -> frozenset[str]:
    if not desired.heal or scope.kind.match is None:
        return frozenset()
    return frozenset(name for name, step in desired.steps.items() if step.match)


def _weigh_and_heal(standing: Standing, pair: Pair, scope: Scope, *, experiments: bool) -> Outcome:
    if experiments and standing.desired.destination_problem:
        raise ExperimentError(standing.desired.destination_problem)
    split = split_of(standing.desired, pair, standing.recorded_experiments, experiments=experiments)
    users = [_weighed(index, pair, split, standing) for index in range(len(standing.users))]
    wanted, notes = _wanted(standing, scope)

    def finish(steps: Steps) -> Outcome:
        return _finish(standing, scope, users, regenerate(standing, users, pair, steps, split), pair, split)

    try:
        outcome = finish(wanted)
    except RouteError:
        possible, told = possible_steps(wanted, standing.steps(), finish, str(standing.route))
        outcome, notes = finish(possible), (*notes, *told)
    return outcome.with_notes(*notes)


def _weighed(index: int, pair: Pair, split: Split, standing: Standing) -> Rule:
    """Return a rule that is not ours as it should be; another Rollout's mirror rule follows its source (D12)."""
    rule = standing.users[index]
    if pair.weights(rule) and standing.is_copy(index, pair):
        return weigh_copy(rule, pair, split, standing.desired.namespace)
    if pair.weights(rule) and standing.is_source(index):
        return weigh(rule, pair, split, standing.desired)
    return rule if index in standing.foreign else _left(rule, pair, standing)


def _left(rule: Rule, pair: Pair, standing: Standing) -> Rule:
    """Return a rule that is not weighted; one that was, until another was configured, is given back (D29)."""
    former = standing.desired.former
    if former is None or not pair.weights(rule) or not former.selects(rule.name):
        return _without_experiments(rule, standing)
    if set(_canary_weights([rule], pair)) != {former.weight}:
        return _without_experiments(rule, standing)
    return _at_rest(rule, pair, standing)


def _at_rest(rule: Rule, pair: Pair, standing: Standing) -> Rule:
    """Return a rule of the pair's with everything on stable, and without experiments."""
    resting = replace(standing.desired, weight=0, destinations=())
    return weigh(rule, pair, split_of(resting, pair, standing.recorded_experiments), resting)


def _without_experiments(rule: Rule, standing: Standing) -> Rule:
    """Take recorded experiment backends off a rule that is not weighted any more."""
    if not standing.recorded_experiments:
        return rule
    return rule.with_backends([ref for ref in rule.backends if not standing.is_recorded_experiment(ref)])


def _wanted(standing: Standing, scope: Scope) -> tuple[Steps, tuple[Note, ...]]:
    """Return the managed routes that the route should have, each with the step that makes it (None: keep as it is)."""
    if scope.kind.match is None:
        return {}, ()
    desired = standing.desired
    steps: dict[str, ManagedStep | None] = dict(standing.steps())
    notes: list[Note] = []
    for name, step in desired.steps.items() if desired.heal and not desired.keep_managed else ():
        if not step.match:
            steps.pop(name, None)
            continue
        try:
            _refuse_silent_full_mirror(standing.route, step, scope)
        except RouteError as error:
            notes.append(Note("ManagedRouteNotRestored", str(error)))
            continue
        steps[name] = step
    if not scope.takes_headers:
        steps = {name: step for name, step in steps.items() if not _is_header(standing, name, step)}
    return dict.fromkeys(steps) if desired.keep_managed else steps, tuple(notes)


def _is_header(standing: Standing, name: str, step: ManagedStep | None) -> bool:
    if step is not None:
        return isinstance(step, SetHeaderRoute)
    return any(owned == Owned(Purpose.HEADER, name) for owned in standing.owners)


def _refuse_silent_full_mirror(route: Route, step: ManagedStep, scope: Scope) -> None:
    """Refuse a percentage that the installed CRD would drop, and so mirror everything (D18)."""
    if isinstance(step, SetMirrorRoute) and not scope.keeps_mirror_percent:
        percent = ALL if step.percentage is None else step.percentage
        if 0 < percent < ALL:
            why = scope.percent_doubt or f"the installed {scope.kind.kind} CRD drops requestMirror.percent"
            raise RouteError(
                f"{route}: managed route {step.name} asks to mirror {percent} %, but {why}; without it everything would"
                " be mirrored. Install Gateway API 1.3 or later, or mirror 100 %"
            )


def _lowers(standing: Standing, pair: Pair) -> bool:
    weights = _canary_weights(_weighted(standing.users, pair, standing.desired), pair)
    return max(weights, default=0) > standing.desired.weight


def _canary_weights(rules: Sequence[Rule], pair: Pair) -> list[int]:
    return [ref.effective_weight for rule in rules for ref in rule.backends if pair.is_canary(ref)]


def _finish(
    standing: Standing,
    scope: Scope,
    users: Sequence[Rule],
    managed: Managed,
    pair: Pair | None,
    split: Split | None = None,
) -> Outcome:
    """Put rules and label together, check the limits, and say what the record should be."""
    rules = standing.assemble(users, managed.rules)
    route = standing.route.with_rules(rules)
    record = standing.record_of(managed.rules, users, split)
    weighted = pair is not None and any(_canary_weights(_weighted(users, pair, standing.desired), pair))
    stands = weighted or not record.empty
    route = mark_in_progress(route, standing.desired.label, standing.desired.rollout, standing=stands)
    check_limits(standing.route, route, standing.kind, scope.most_rules, scope.most_matches)
    return Outcome(route, record, (*managed.notes, *_old_entries(standing), *_look_alikes(standing)))


def _look_alikes(standing: Standing) -> tuple[Note, ...]:
    text = (
        "{}: rule {} has neither name nor record, and looks like one of managed route {}; it is left alone."
        " If it is not yours, rollouts-gwapi-plugin adopt makes it the plugin's, which removes it with the others"
    )
    found = standing.look_alikes() if standing.kind.match is not None else ()
    return tuple(Note("LookAlikeLeft", text.format(standing.route, index, name)) for index, name in found)


def _old_entries(standing: Standing) -> tuple[Note, ...]:
    text = (
        "{}: the Go plugin's old entry of managed route {} points at no rule that this step makes; the entry is dropped"
        " and the rule kept"
    )
    names = standing.old_entries_of_nothing()
    return tuple(Note("OldEntryDropped", text.format(standing.route, name), warning=False) for name in names)
