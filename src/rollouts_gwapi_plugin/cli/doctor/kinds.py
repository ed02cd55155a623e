"""Which kinds of route the API server serves, at which version, and what their definitions keep (D18, D23)."""

from collections.abc import Iterator, Sequence
from typing import Final

from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.cli.findings import Finding, failed, noted, passed, warned
from rollouts_gwapi_plugin.cli.subject import Subject
from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.model.kube import ResourceType
from rollouts_gwapi_plugin.model.rollout import SetMirrorRoute
from rollouts_gwapi_plugin.routes.kinds import KINDS, RouteKind
from rollouts_gwapi_plugin.service.cluster import MIRROR_PERCENT

RULE_NAME: Final = "spec.rules[].name"


def check_kinds(connection: Connection, subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Check the kinds that the Rollouts' configurations name."""
    for family, kind in KINDS.items():
        users = [subject for subject in subjects if family in subject.config.families]
        if not users:
            continue
        try:
            resource = connection.cluster.resource(kind, connection.deadline())
        except PluginError as error:
            yield failed(kind.kind, "version", str(error))
            continue
        yield passed(kind.kind, "version", f"served at {resource.api_version}")
        if kind.match is not None:
            yield from _fields(connection, kind, resource, users)


def _fields(
    connection: Connection, kind: RouteKind, resource: ResourceType, users: Sequence[Subject]
) -> Iterator[Finding]:
    try:
        keeps_names = connection.cluster.discovery.preserves(resource, RULE_NAME, deadline=connection.deadline())
        keeps_percent = connection.cluster.discovery.preserves(resource, MIRROR_PERCENT, deadline=connection.deadline())
    except PluginError as error:
        yield noted(kind.kind, "fields", f"what its definition keeps can't be found out: {error}")
        return
    partial = [
        f"{subject.key} ({step.name}: {step.percentage} %)"
        for subject in users
        for step in subject.desired.all_steps
        if isinstance(step, SetMirrorRoute) and step.percentage not in (None, 0, 100)
    ]
    if not keeps_names and any(subject.desired.managed_names for subject in users):
        text = "its definition drops rule names (before Gateway API 1.4): managed rules are known by their content only"
        yield warned(kind.kind, "fields", text)
    if not keeps_percent and partial:
        text = (
            f"its definition drops requestMirror.percent (before Gateway API 1.3) and would mirror everything; these"
            f" steps will be refused: {', '.join(partial)}"
        )
        yield failed(kind.kind, "fields", text)
    kept = [what for what, keeps in (("rule names", keeps_names), ("mirror percentages", keeps_percent)) if keeps]
    if kept:
        yield passed(kind.kind, "fields", f"its definition keeps {' and '.join(kept)}")
