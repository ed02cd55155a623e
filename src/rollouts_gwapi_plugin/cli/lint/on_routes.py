"""Checks of a Rollout on its routes: whether they are among the files, and all steps played on each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rollouts_gwapi_plugin.cli.findings import Finding, Severity, failed, noted, passed, warned
from rollouts_gwapi_plugin.cli.manifests import Manifest
from rollouts_gwapi_plugin.cli.printing import counted
from rollouts_gwapi_plugin.cli.rehearsal import Act, Rehearsal, kinds_of, rehearsal_findings, rule_counts, together
from rollouts_gwapi_plugin.embedded.apiserver.selectors import label_selector
from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.configuration import Configuration
from rollouts_gwapi_plugin.model.rollout import Rollout
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.kinds import RouteKind
from rollouts_gwapi_plugin.routes.reconcile import Scope


def lint_on_routes(
    manifest: Manifest, rollout: Rollout, config: Configuration, manifests: Sequence[Manifest]
) -> Iterator[Finding]:
    """Check the Rollout on its routes; without any route among the files this says so and nothing else."""
    subject = f"{manifest} ({manifest.where})"
    namespace = config.namespace or rollout.metadata.namespace
    kinds = kinds_of(config)
    if not any(one.kind in {kind.kind for kind in kinds.values()} for one in manifests):
        text = "none of its routes is among the files, so nothing was played on them"
        yield noted(subject, "route", text)
        return
    plays: list[_Play] = []
    all_known = True
    for family, kind in kinds.items():
        routes = _routes(family, kind, config, namespace, manifests)
        for text in routes.absent:
            yield warned(subject, "route", text)
        all_known = all_known and routes.all_known
        for found, takes_headers in routes.found:
            on = f"{found} ({found.where}), of {manifest}"
            try:
                route = parse_route(found.value)
            except RouteError as error:
                yield failed(on, "route", str(error))
                continue
            acts = Rehearsal(route, rollout, manifest.value, config, Scope(kind, takes_headers)).play()
            plays.append(_Play(on, route, kind, acts))
    judged = together([play.acts for play in plays], all_known=all_known)
    for play, acts in zip(plays, judged, strict=True):
        yield from _findings(replace(play, acts=acts))


@dataclass(frozen=True)
class _Routes:
    """The routes of a kind among the files, each with whether it takes header routes, and what is not among them."""

    found: Sequence[tuple[Manifest, bool]]
    absent: Sequence[str]
    # Whether every route that is configured by its name is there.
    all_known: bool


def _routes(
    family: str, kind: RouteKind, config: Configuration, namespace: str, manifests: Sequence[Manifest]
) -> _Routes:
    routes = [one for one in manifests if _is_of(one, kind, namespace)]
    chosen: dict[str, tuple[Manifest, bool]] = {}
    absent: list[str] = []
    selector = config.selector(family)
    if selector is not None:
        matches = label_selector(selector.text)
        chosen = {_name(one): (one, config.use_header_routes) for one in routes if matches(one.value)}
        if not chosen:
            chosen_by = f"{config.selector_key(family)} ({selector.text or 'everything'})"
            absent.append(f"{chosen_by} matches no {kind.kind} of the files")
    all_known = True
    for entry in config.entries(family):
        found = next((one for one in routes if _name(one) == entry.name), None)
        if found is None:
            hint = _namesake(manifests, kind, entry.name)
            absent.append(f"{kind.kind} {namespace}/{entry.name} is not among the files{hint}")
            all_known = False
        else:
            wants = entry.use_header_routes or chosen.get(entry.name, (found, False))[1]
            chosen[entry.name] = (found, wants)
    return _Routes(list(chosen.values()), absent, all_known)


def _namesake(manifests: Sequence[Manifest], kind: RouteKind, name: str) -> str:
    """Return a hint where a route of the name is in another namespace."""
    for one in manifests:
        if one.kind == kind.kind and _name(one) == name:
            namespace = one.value["metadata"].get("namespace", "")
            if _is_of(one, kind, namespace):
                return f"; {namespace}/{name} is: is namespace: {namespace} meant?"
    return ""


@dataclass(frozen=True)
class _Play:
    """All steps, played on one route."""

    subject: str
    route: Route
    kind: RouteKind
    acts: list[Act]


def _findings(play: _Play) -> list[Finding]:
    findings = [*_version(play.route, play.kind, play.subject), *rehearsal_findings(play.acts, play.subject)]
    if not any(finding.severity is Severity.ERROR for finding in findings):
        now, most = rule_counts(play.route, play.acts)
        text = f"all steps can be taken; the route has {counted(now, 'rule')}, at most {most} on the way"
        findings.append(passed(play.subject, "steps", text))
    return findings


def _version(route: Route, kind: RouteKind, subject: str) -> Iterator[Finding]:
    version = route.api_version.rpartition("/")[2]
    if version not in kind.versions:
        text = f"apiVersion {route.api_version} is none that this plugin knows ({', '.join(kind.versions)})"
        yield warned(subject, "route", text)


def _is_of(manifest: Manifest, kind: RouteKind, namespace: str) -> bool:
    group = str(manifest.value.get("apiVersion", "")).rpartition("/")[0]
    own = manifest.value["metadata"].get("namespace", "")
    return manifest.kind == kind.kind and group == kind.group and own == namespace


def _name(manifest: Manifest) -> str:
    return str(manifest.value["metadata"].get("name", ""))
