"""The order of the checks: what everything else needs comes first, and ends the checkup where it fails."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rollouts_gwapi_plugin.cli.connection import Connection, connected
from rollouts_gwapi_plugin.cli.controller_versions import needed_versions
from rollouts_gwapi_plugin.cli.doctor.access import Reviewer, check_rights
from rollouts_gwapi_plugin.cli.doctor.installation import check_configuration, check_file
from rollouts_gwapi_plugin.cli.doctor.kinds import check_kinds
from rollouts_gwapi_plugin.cli.doctor.record import check_record
from rollouts_gwapi_plugin.cli.doctor.standing_routes import check_routes
from rollouts_gwapi_plugin.cli.findings import Finding, Severity, failed, noted, passed, warned
from rollouts_gwapi_plugin.cli.leftovers import GONE, Leftover, leftovers
from rollouts_gwapi_plugin.cli.lint.step_checks import check_steps
from rollouts_gwapi_plugin.cli.options import Place
from rollouts_gwapi_plugin.cli.subject import Subject, chosen_rollouts, subject_of
from rollouts_gwapi_plugin.cli.survey import survey
from rollouts_gwapi_plugin.errors import NotFound, PluginError
from rollouts_gwapi_plugin.model.rollout import Rollout

API = "API server"


@dataclass(frozen=True)
class Order:
    """The command line."""

    place: Place
    rollouts: tuple[str, ...]
    service_account: str
    plugin_name: str | None
    plugin_file: Path | None
    sha256: str | None


def check_up(order: Order) -> list[Finding]:
    """Check everything."""
    findings: list[Finding] = []
    if order.plugin_file is not None:
        findings += check_file(order.plugin_file, order.sha256)
    try:
        with connected(order.place) as connection:
            # One by one: what was found before an error is kept.
            for finding in _in_cluster(connection, order):
                findings.append(finding)
    except PluginError as error:
        findings.append(failed(API, "connection", str(error)))
    return findings


def _in_cluster(connection: Connection, order: Order) -> Iterator[Finding]:
    config = connection.config
    version = connection.cluster.client.raw_get("/version", deadline=connection.deadline())
    yield passed(
        API, "connection", f"{version.get('gitVersion', 'unknown version')} at {config.server} ({config.source})"
    )
    subjects = []
    try:
        raws = chosen_rollouts(connection, order.rollouts, order.plugin_name)
    except PluginError as error:
        unnamed = isinstance(error, NotFound) and not order.rollouts
        yield (warned if unnamed else failed)(f"namespace {connection.namespace}", "Rollouts", str(error))
        raws = []
    for raw in raws:
        try:
            subjects.append(subject_of(connection, raw, order.plugin_name))
        except PluginError as error:
            metadata = raw["metadata"]
            yield failed(f"Rollout {metadata['namespace']}/{metadata['name']}", "configuration", str(error))
    yield from check_kinds(connection, subjects)
    reviewer = Reviewer.of(connection, order.service_account)
    rollouts = [subject.rollout for subject in subjects if subject.rollout is not None]
    yield from check_configuration(connection, reviewer, order.plugin_name, order.plugin_file, rollouts)
    for subject in subjects:
        yield from _of_rollout(connection, subject, reviewer)
    yield from _gone(connection, subjects, order.plugin_name)


def _of_rollout(connection: Connection, subject: Subject, reviewer: Reviewer) -> Iterator[Finding]:
    name = f"Rollout {subject.key}"
    for key in subject.config.unknown_keys:
        yield warned(name, "configuration", f"{key} is no key that this plugin knows, and has no effect (see `lint`)")
    if subject.rollout is not None:
        yield from needed_versions(subject.rollout, name)
        yield from _refused_steps(subject, subject.rollout, name)
    yield from check_rights(subject, reviewer)
    try:
        routes = survey(connection, subject)
    except PluginError as error:
        yield failed(name, "routes", str(error))
        return
    yield from check_routes(connection, subject, routes)
    yield from check_record(subject, routes)


def _refused_steps(subject: Subject, rollout: Rollout, name: str) -> Iterator[Finding]:
    """Check what the controller refuses or reads otherwise; the other checks of `lint` are made on the live routes."""
    for one in check_steps(rollout, subject.raw or {}, subject.config, name):
        if one.check in {"weight", "managed route"} and one.severity is not Severity.INFO:
            yield one


def _gone(connection: Connection, subjects: list[Subject], plugin_name: str | None) -> Iterator[Finding]:
    namespaces: dict[str, list[str]] = {connection.namespace: []}
    for subject in subjects:
        namespaces.setdefault(subject.namespace, []).append(subject.config.config_map)
    for namespace, names in namespaces.items():
        try:
            for left in leftovers(connection, namespace, plugin_name, names):
                yield warned(f"Rollout {left.key}", "left over", _left_over(left))
        except PluginError as error:
            yield noted(
                f"namespace {namespace}", "left over", f"what is left of Rollouts that are gone is not known: {error}"
            )


def _left_over(left: Leftover) -> str:
    how = "is gone" if left.absence == GONE else left.absence
    return (
        f"it {how}, and something of it is left ({left.where}): `{left.cleanup}` gives it back, with"
        " `--weights --stable SERVICE --canary SERVICE` the traffic, too"
    )
