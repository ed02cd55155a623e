"""What `status` tells, as values: a Rollout, its routes, their rules; and how that is printed."""

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.cli.leftovers import (
    GONE,
    WITHOUT_PLUGIN,
    Absence,
    absence,
    leftovers,
    remaining,
    remaining_of,
    traces,
    without_plugin,
)
from rollouts_gwapi_plugin.cli.printing import console, joined, print_json, table
from rollouts_gwapi_plugin.cli.standing import Role, RouteFound, RuleFound
from rollouts_gwapi_plugin.cli.subject import Remains, Subject, chosen_rollouts, subject_of
from rollouts_gwapi_plugin.cli.survey import annotated, survey
from rollouts_gwapi_plugin.errors import NotFound, PluginError
from rollouts_gwapi_plugin.model.base import Frozen, JsonObject
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.dispatch import reconciler_of
from rollouts_gwapi_plugin.routes.kinds import KINDS

What = Literal["weighted", "managed", "look-alike", "user's"]
LabelOwner = Literal["plugin", "user", "none"]


class BackendStatus(Frozen):
    """One backend of a rule."""

    name: str
    weight: int
    role: Role


class RuleStatus(Frozen):
    """One rule; `why` is by what a managed rule is known, or why a look-alike is one."""

    index: int
    place: str
    name: str | None
    what: What
    managed_route: str = ""
    purpose: str = ""
    why: str = ""
    backends: tuple[BackendStatus, ...] = ()


class RouteStatus(Frozen):
    """One route; `sign` says why it is told of although the configuration does not name it."""

    kind: str
    namespace: str
    name: str
    configured: bool
    sign: str = ""
    error: str = ""
    generation: int = 0
    gateways: str = ""
    label: LabelOwner = "none"
    in_progress: tuple[str, ...] = ()
    problem: str = ""
    rules: tuple[RuleStatus, ...] = ()
    recorded: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()


class RolloutStatus(Frozen):
    """One Rollout; `gone` where it does not exist, or does not name the plugin, any more: `absence` says which."""

    rollout: str
    gone: bool = False
    absence: Literal["", "gone", "does not name the plugin any more", "does not exist"] = ""
    config_map: str = ""
    ledger_error: str = ""
    error: str = ""
    routes: tuple[RouteStatus, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether something of it could not be read."""
        return bool(self.error or self.ledger_error or any(route.error for route in self.routes))


def statuses(connection: Connection, names: Sequence[str], plugin_name: str | None) -> list[RolloutStatus]:
    """Look at the named Rollouts, or at all of the namespace and at what is left of others.

    Raises:
        PluginError: Rollouts can't be read at all.

    """
    if names:
        return [_named(connection, name, plugin_name) for name in names]
    nothing: NotFound | None = None
    raws: list[JsonObject] = []
    try:
        raws = chosen_rollouts(connection, (), plugin_name)
    except NotFound as error:
        nothing = error
    found = [_status(connection, raw, plugin_name) for raw in raws]
    found += [
        _of_subject(remaining_of(connection, left, Remains()), connection, left.absence)
        for left in leftovers(connection, connection.namespace, plugin_name)
    ]
    if not found and nothing is not None:
        _check_nothing(connection, nothing)
    return found


def _check_nothing(connection: Connection, nothing: NotFound) -> None:
    """Do nothing where the plugin has no trace in the namespace, which is as it should be after all was cleaned up.

    Raises:
        PluginError: there is something nevertheless, or it can't be said.

    """
    connection.rollouts()
    found = traces(connection, connection.namespace)
    if found:
        raise NotFound(f"{nothing}; there is nevertheless {joined(found)}")


def _named(connection: Connection, name: str, plugin_name: str | None) -> RolloutStatus:
    try:
        raw = connection.rollout(name)
    except NotFound as error:
        gone = _of_subject(remaining(connection, connection.namespace, name, Remains()), connection, GONE)
        if gone.routes:
            return gone
        return RolloutStatus(rollout=gone.rollout, gone=True, absence="does not exist", error=str(error))
    except PluginError as error:
        return RolloutStatus(rollout=f"{connection.namespace}/{name}", error=str(error))
    return _status(connection, raw, plugin_name)


def _status(connection: Connection, raw: JsonObject, plugin_name: str | None) -> RolloutStatus:
    metadata = raw["metadata"]
    try:
        if absence(connection, f"{metadata.get('namespace')}/{metadata.get('name')}", plugin_name) == WITHOUT_PLUGIN:
            left = _of_subject(without_plugin(connection, raw, Remains()), connection, WITHOUT_PLUGIN)
            if left.routes:
                return left
        return _of_subject(subject_of(connection, raw, plugin_name), connection)
    except PluginError as error:
        return RolloutStatus(rollout=f"{metadata.get('namespace')}/{metadata.get('name')}", error=str(error))


def _of_subject(subject: Subject, connection: Connection, how: Absence | None = None) -> RolloutStatus:
    routes = survey(connection, subject)
    trouble = subject.session.trouble(*KINDS)
    return RolloutStatus(
        rollout=subject.key,
        gone=how is not None,
        absence=how or "",
        config_map=f"{subject.session.namespace}/{subject.session.name}",
        ledger_error=str(trouble) if trouble else "",
        routes=tuple(route_status(subject, found) for found in routes),
    )


def route_status(subject: Subject, found: RouteFound) -> RouteStatus:
    """Return what is told of one route."""
    target, route = found.target, found.route
    record = found.view.record
    recorded = [f"header route {name}" for name in record.headers] + [f"mirror route {name}" for name in record.mirrors]
    recorded += [f"experiment backend {name}" for _, _, _, name in record.experiments]
    told = RouteStatus(
        kind=target.kind.kind,
        namespace=target.namespace,
        name=target.name,
        configured=not found.sign,
        sign=found.sign,
        error=str(found.error) if found.error else "",
        recorded=tuple(recorded),
        stale=tuple(found.stale),
    )
    if route is None:
        return told
    verdict = reconciler_of(route).verdict(route, frozenset({subject.desired.stable, subject.desired.canary}))
    listed = annotated(route.dump())
    return told.model_copy(
        update={
            "generation": route.metadata.generation,
            "gateways": verdict.text or verdict.standing.name.lower(),
            "label": _label_owner(subject, route, listed),
            "in_progress": tuple(listed),
            "problem": "" if found.sign else found.pair_error,
            "rules": tuple(_rule_status(rule) for rule in found.rules),
        }
    )


def _label_owner(subject: Subject, route: Route, listed: Sequence[str]) -> LabelOwner:
    if subject.config.label_key not in (route.metadata.labels or {}):
        return "none"
    return "plugin" if listed else "user"


def _rule_status(rule: RuleFound) -> RuleStatus:
    what: What = "weighted" if rule.weighted else "user's"
    why = rule.alike
    if rule.owner is not None and rule.known is not None:
        what, why = "managed", f"known by {rule.known.value}"
    elif rule.alike:
        what = "look-alike"
    return RuleStatus(
        index=rule.index,
        place=rule.place,
        name=rule.name,
        what=what,
        managed_route=rule.owner.name if rule.owner else "",
        purpose=rule.owner.purpose.value if rule.owner else "",
        why=why,
        backends=tuple(BackendStatus(name=one.name, weight=one.weight, role=one.role) for one in rule.backends),
    )


def print_statuses(found: Sequence[RolloutStatus], output: str, namespace: str) -> None:
    """Print all."""
    if output == "json":
        print_json([one.model_dump(mode="json", by_alias=True) for one in found])
        return
    to = console()
    if not found:
        to.print(f"nothing of this plugin in namespace {namespace}", soft_wrap=True)
    for one in found:
        title = f"Rollout {one.rollout}" + (f" ({one.absence})" if one.absence else "")
        to.print(Text(title, style="bold"), soft_wrap=True)
        for line in (one.error, one.ledger_error and f"ConfigMap {one.config_map}: {one.ledger_error}"):
            if line:
                to.print(Text(f"  {line}", style="red"), soft_wrap=True)
        for route in one.routes:
            _print_route(to, route)


def _print_route(to: Console, route: RouteStatus) -> None:
    name = f"{route.kind} {route.namespace}/{route.name}"
    state = f"generation {route.generation}, gateways: {route.gateways}" if not route.error else route.error
    aside = f"; not in the configuration ({route.sign})" if route.sign else ""
    to.print(Text(f"  {name}", style="bold").append(f"  {state}{aside}", style="not bold"), soft_wrap=True)
    if route.problem:
        to.print(Text(f"    {route.problem}", style="red"), soft_wrap=True)
    if route.rules:
        rows = table("rule", "name", "backends", "what")
        for rule in route.rules:
            rows.add_row(rule.place, rule.name or "-", _backends(rule), _what(rule))
        to.print(Padding(rows, (0, 0, 0, 4), expand=False))
    for line in _lines(route):
        to.print(f"    {line}", soft_wrap=True)


def _backends(rule: RuleStatus) -> str:
    return joined(
        f"{one.name}={one.weight}" + (f" ({one.role})" if one.role == "experiment" else "") for one in rule.backends
    )


def _what(rule: RuleStatus) -> str:
    if rule.what == "managed":
        return f"managed {rule.purpose} route {rule.managed_route}, {rule.why}"
    return f"{rule.what}: {rule.why}" if rule.why else rule.what


def _lines(route: RouteStatus) -> Iterator[str]:
    if route.label != "none":
        whose = f"the label is on, for {joined(route.in_progress)}"
        yield whose if route.label == "plugin" else "the label is the user's own, since no annotation is beside it"
    elif route.in_progress:
        yield f"in progress, by the annotation: {joined(route.in_progress)}"
    if route.stale:
        yield f"on record and not on the route: {joined(route.stale)}"
