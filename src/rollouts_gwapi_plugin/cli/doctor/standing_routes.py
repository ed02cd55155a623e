"""The routes of a Rollout as they stand: found, with the pair and its Services, accepted, with room for all steps."""

from collections.abc import Iterator, Sequence

from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.cli.findings import Finding, Severity, failed, noted, passed, warned
from rollouts_gwapi_plugin.cli.printing import counted
from rollouts_gwapi_plugin.cli.rehearsal import Act, Rehearsal, rehearsal_findings, rule_counts, together
from rollouts_gwapi_plugin.cli.standing import RouteFound
from rollouts_gwapi_plugin.cli.subject import Subject
from rollouts_gwapi_plugin.cli.survey import annotated
from rollouts_gwapi_plugin.errors import NotFound, PluginError
from rollouts_gwapi_plugin.model.kube import SERVICES
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.dispatch import reconciler_of
from rollouts_gwapi_plugin.routes.status import Standing
from rollouts_gwapi_plugin.service.scope import scope_of


def check_routes(connection: Connection, subject: Subject, routes: Sequence[RouteFound]) -> Iterator[Finding]:
    """Check every route of the Rollout, and the two Services."""
    yield from _services(connection, subject)
    acts = _rehearsals(connection, subject, routes)
    for found in routes:
        if found.sign:
            yield _left(subject, found)
        else:
            yield from _configured(subject, found, acts.get(str(found.target.ref), ()))
    yield from _takers(subject, routes)


def _services(connection: Connection, subject: Subject) -> Iterator[Finding]:
    for role, name in (("stable", subject.desired.stable), ("canary", subject.desired.canary)):
        try:
            connection.cluster.client.get(SERVICES, subject.desired.namespace, name, deadline=connection.deadline())
        except NotFound as error:
            yield failed(f"Rollout {subject.key}", "services", f"{role} Service: {error}")
        except PluginError as error:
            yield noted(f"Rollout {subject.key}", "services", f"{role} Service {name} can't be looked at: {error}")


def _left(subject: Subject, found: RouteFound) -> Finding:
    what = found.error or "something of it may still stand there"
    command = f"cleanup -n {subject.desired.namespace} {subject.desired.rollout_name}"
    text = (
        f"it left the configuration of {subject.key} ({found.sign}): {what}; the next call gives back what is on"
        f" record; `{command}` gives back all but the weights, but of the configured routes, too: run it when no update"
        " is under way"
    )
    return warned(str(found.target.ref), "left the configuration", text)


def _configured(subject: Subject, found: RouteFound, acts: Sequence[Act]) -> Iterator[Finding]:
    name = str(found.target.ref)
    if found.error is not None or found.route is None:
        yield failed(name, "route", str(found.error))
        return
    if found.pair is None:
        yield failed(name, "pair", found.pair_error)
        return
    weighted = [rule.place for rule in found.rules if rule.weighted]
    yield passed(name, "pair", f"{' and '.join(found.pair)} are in {_places(weighted)}")
    yield from _gateways(subject, found.route)
    yield from _label(subject, found.route)
    if acts:
        yield from _rehearsed(found.route, acts)


def _places(places: Sequence[str]) -> str:
    """Return the places of rules, so that rule 0 is not read as none."""
    text = f"{'rule' if len(places) == 1 else 'rules'} {', '.join(places)}"
    return f"{text} (counted from 0)" if all(place.isdecimal() for place in places) else text


def _gateways(subject: Subject, route: Route) -> Iterator[Finding]:
    verdict = reconciler_of(route).verdict(route, frozenset({subject.desired.stable, subject.desired.canary}))
    if verdict.standing is Standing.REFUSED:
        yield failed(str(route), "gateways", f"{verdict.text}; no weight is verified while that is so")
    elif verdict.standing is Standing.BEHIND:
        yield warned(str(route), "gateways", verdict.text)
    elif not verdict.reported:
        text = "no gateway says anything of it, so weights count as verified once they are written"
        yield noted(str(route), "gateways", text)
    else:
        yield passed(str(route), "gateways", "accepted at this generation")


def _label(subject: Subject, route: Route) -> Iterator[Finding]:
    has_label = subject.config.label_key in (route.metadata.labels or {})
    listed = annotated(route.dump())
    label = subject.desired.label
    if has_label and not listed and label is not None and label.enabled:
        text = f"it had the label {subject.config.label_key} before the plugin: the plugin leaves it alone"
        yield noted(str(route), "label", text)


def _rehearsals(connection: Connection, subject: Subject, routes: Sequence[RouteFound]) -> dict[str, list[Act]]:
    """Play all steps on each route that can be played on, and judge them together."""
    if subject.rollout is None or subject.raw is None:
        return {}
    plays: dict[str, list[Act]] = {}
    for found in routes:
        if found.sign or found.error is not None or found.route is None or found.pair is None:
            continue
        scope = scope_of(connection.cluster, found.target, subject.desired, connection.deadline())
        rehearsal = Rehearsal(found.route, subject.rollout, subject.raw, subject.config, scope, found.view)
        plays[str(found.target.ref)] = rehearsal.play()
    return dict(zip(plays, together(list(plays.values())), strict=True))


def _rehearsed(route: Route, acts: Sequence[Act]) -> Iterator[Finding]:
    findings = rehearsal_findings(acts, str(route))
    yield from findings
    if not any(finding.severity is Severity.ERROR for finding in findings):
        now, most = rule_counts(route, acts)
        yield passed(str(route), "steps", f"all can be taken; {counted(now, 'rule')} now, at most {most} on the way")


def _takers(subject: Subject, routes: Sequence[RouteFound]) -> Iterator[Finding]:
    able = [found for found in routes if not found.sign and found.target.kind.match is not None]
    for step in subject.desired.all_steps:
        is_header = isinstance(step, SetHeaderRoute)
        if not any(found.target.takes_headers or not is_header for found in able):
            need = "an HTTPRoute or GRPCRoute" + (" with useHeaderRoutes: true" if is_header else "")
            text = f"no configured route takes the step of managed route {step.name}; it needs {need}"
            yield warned(f"Rollout {subject.key}", "steps", text)
