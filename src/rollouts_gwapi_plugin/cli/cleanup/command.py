"""The command's course: find the Rollouts, show what would change, ask, write, tell what became of it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import click
from rich.console import Console
from rich.text import Text

from rollouts_gwapi_plugin.cli.cleanup.empty_records import EmptyRecord, empty_records
from rollouts_gwapi_plugin.cli.cleanup.giving import Giving, RoutePlan
from rollouts_gwapi_plugin.cli.connection import Connection, split_name
from rollouts_gwapi_plugin.cli.leftovers import GONE, Leftover, leftovers, remaining, remaining_of, without_plugin
from rollouts_gwapi_plugin.cli.printing import console, print_json, show_difference
from rollouts_gwapi_plugin.cli.subject import Remains, Subject, has_plugin, subject_of
from rollouts_gwapi_plugin.errors import ConfigError, Forbidden, NotFound, PluginError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.config import DEFAULT_CONFIG_MAP
from rollouts_gwapi_plugin.routes.kinds import KINDS


@dataclass(frozen=True)
class Asked:
    """The command line; `rollout` is None for all that are gone."""

    rollout: str | None
    weights: bool
    dry_run: bool
    yes: bool
    routes: tuple[str, ...]
    remains: Remains
    plugin_name: str | None
    output: str


@dataclass
class Case:
    """One Rollout: what is planned for it, and in the end what became of it."""

    giving: Giving
    plans: list[RoutePlan]
    # The ConfigMap is empty already, and goes.
    record_is_empty: bool = False
    warnings: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    written: bool = False
    record_deleted: bool = False

    @property
    def does_something(self) -> bool:
        """Whether anything would be written."""
        return self.record_is_empty or any(plan.does_something for plan in self.plans)

    @property
    def errors(self) -> list[str]:
        """What can't be, or could not be, given back."""
        trouble = self.giving.subject.session.trouble(*KINDS)
        record = [f"{self.giving.subject.session} is left as it is: {trouble}"] if trouble else []
        return [plan.error for plan in self.plans if plan.error] + record + self.wrong


def clean_up(connection: Connection, asked: Asked) -> int:
    """Run the command; return its exit code.

    Raises:
        PluginError: nothing can be said of the Rollout at all.

    """
    cases = [_planned(connection, subject, asked) for subject in _subjects(connection, asked)]
    empty = _empty(connection, asked, cases)
    if asked.output == "text":
        _show_plans(cases, empty)
    if not asked.dry_run and (empty or any(case.does_something for case in cases)):
        _ask(asked)
    if not asked.dry_run:
        for case in cases:
            _carry_out(case)
        for record in empty:
            record.delete(connection)
    if asked.output == "json":
        print_json([*(_json(case) for case in cases), *(_json_of_record(record) for record in empty)])
    else:
        _show_results(cases, empty, asked.remains.route_namespace or connection.namespace)
    return 1 if any(case.errors for case in cases) or any(record.errors for record in empty) else 0


def _empty(connection: Connection, asked: Asked, cases: Sequence[Case]) -> list[EmptyRecord]:
    """Return the empty records of the namespace that no case tells of."""
    if asked.rollout is not None:
        return []
    namespace = asked.remains.route_namespace or connection.namespace
    names = [asked.remains.config_map] if asked.remains.config_map else []
    told = {(case.giving.subject.session.namespace, case.giving.subject.session.name) for case in cases}
    found = empty_records(connection, namespace, names)
    return [record for record in found if (record.namespace, record.name) not in told]


def _subjects(connection: Connection, asked: Asked) -> list[Subject]:
    remains = asked.remains
    if asked.rollout is None:
        namespace = remains.route_namespace or connection.namespace
        names = [remains.config_map] if remains.config_map else []
        return [
            remaining_of(connection, left, remains)
            for left in leftovers(connection, namespace, asked.plugin_name, names)
        ]
    namespace, name = split_name(asked.rollout, connection.namespace)
    there = replace(connection, namespace=namespace)
    try:
        raw = there.rollout(name)
    except NotFound:
        return [remaining(there, namespace, name, remains)]
    if has_plugin(raw, asked.plugin_name):
        return [subject_of(there, raw, asked.plugin_name)]
    return [without_plugin(there, raw, remains)]


def _planned(connection: Connection, subject: Subject, asked: Asked) -> Case:
    giving = Giving(connection, subject, asked.weights)
    case = Case(giving, giving.plan(asked.routes))
    if asked.weights and not (subject.desired.stable and subject.desired.canary):
        unknown = f"Rollout {subject.key} is gone and its Services are not known, so its weights"
        if not case.plans:
            case.warnings.append(f"{unknown} can't be looked for; --stable and --canary name them")
        elif asked.rollout is not None:
            raise ConfigError(f"{unknown} can't be given back; name them by --stable and --canary")
        else:
            # The others are given back all the same.
            text = f"{unknown} are left as they are; `{_by_name(subject)}` gives them back"
            case.wrong.append(text)
    try:
        case.record_is_empty = giving.empty_record() is not None
    except Forbidden as error:
        case.warnings.append(f"{subject.session} can't be read: {error}")
    except PluginError as error:
        # Whether it is to be deleted is not known, so that not all is given back.
        case.wrong.append(f"{subject.session} can't be read: {error}")
    if subject.rollout is not None and case.does_something:
        case.warnings.append(
            "this Rollout names the plugin: its next reconcile puts things back, unless the plugin is taken out of it"
        )
    return case


def _by_name(subject: Subject) -> str:
    """Return the command that gives back the weights, too."""
    desired, session = subject.desired, subject.session
    config_map = session.name if session.name != DEFAULT_CONFIG_MAP else ""
    left = Leftover(desired.namespace, desired.rollout_name, session.namespace, config_map, "", GONE)
    return f"{left.cleanup} --weights --stable SERVICE --canary SERVICE"


def _ask(asked: Asked) -> None:
    if asked.yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("nothing was written: there is no terminal to ask on; add --yes, or --dry-run")
    click.confirm("Write this?", abort=True, err=True)


def _carry_out(case: Case) -> None:
    if not case.does_something:
        return
    case.wrong += case.giving.carry_out(case.plans)
    case.written = True
    try:
        case.record_deleted = case.giving.delete_empty_record()
    except PluginError as error:
        case.wrong.append(str(error))


def _show_plans(cases: Sequence[Case], empty: Sequence[EmptyRecord]) -> None:
    to = console()
    for case in cases:
        to.print(Text(f"Rollout {case.giving.subject.key}", style="bold"), soft_wrap=True)
        for plan in case.plans:
            _show_plan(to, plan)
        for line in case.warnings:
            to.print(Text(f"  {line}", style="yellow"), soft_wrap=True)
        if case.record_is_empty:
            to.print(f"  {case.giving.subject.session} is empty, and is deleted", soft_wrap=True)
        if not case.does_something:
            to.print(f"  {_nothing(case.giving.subject)}", soft_wrap=True)
    for record in empty:
        to.print(f"{record} is empty, and is deleted", soft_wrap=True)


def _nothing(subject: Subject) -> str:
    """Say that nothing was found, and where it was looked for: routes may be elsewhere."""
    if subject.rollout is not None:
        return "nothing of it was found"
    return f"nothing of it was found on routes of namespace {subject.namespace}; --route-namespace names another"


def _show_plan(to: Console, plan: RoutePlan) -> None:
    sign = f" ({plan.found.sign})" if plan.found.sign else ""
    if plan.does_something or plan.notes:
        to.print(f"  {plan.found.target.ref}{sign}", soft_wrap=True)
    show_difference(to, plan.diff)
    if plan.drops_record:
        to.print("    its record goes")
    for line in plan.notes:
        to.print(Text(f"    {line}", style="yellow"), soft_wrap=True)


def _show_results(cases: Sequence[Case], empty: Sequence[EmptyRecord], namespace: str) -> None:
    to = console()
    if not cases and not empty:
        text = (
            f"no Rollout that is gone has left anything behind on routes of namespace {namespace};"
            " --route-namespace names another"
        )
        to.print(text, soft_wrap=True)
    for case in cases:
        for line in case.errors:
            to.print(Text(f"error: {line}", style="bold red"), soft_wrap=True)
        if case.record_deleted:
            to.print(f"{case.giving.subject.session} was empty and is deleted", soft_wrap=True)
        if case.written and not case.errors:
            to.print(f"Rollout {case.giving.subject.key}: all is given back", soft_wrap=True)
    for record in empty:
        for line in record.errors:
            to.print(Text(f"error: {record} is left: {line}", style="bold red"), soft_wrap=True)
        if record.deleted:
            to.print(f"{record} was empty and is deleted", soft_wrap=True)


def _json(case: Case) -> JsonObject:
    subject = case.giving.subject
    return {
        "rollout": subject.key,
        "configMap": f"{subject.session.namespace}/{subject.session.name}",
        "written": case.written,
        "configMapDeleted": case.record_deleted,
        "warnings": case.warnings,
        "errors": case.errors,
        "routes": [
            {
                "kind": plan.found.target.kind.kind,
                "namespace": plan.found.target.namespace,
                "name": plan.found.target.name,
                "sign": plan.found.sign,
                "diff": plan.diff,
                "dropsRecord": plan.drops_record,
                "notes": list(plan.notes),
                "error": plan.error,
            }
            for plan in case.plans
        ],
    }


def _json_of_record(record: EmptyRecord) -> JsonObject:
    return {
        "rollout": None,
        "configMap": f"{record.namespace}/{record.name}",
        "written": record.deleted,
        "configMapDeleted": record.deleted,
        "warnings": [],
        "errors": record.errors,
        "routes": [],
    }
