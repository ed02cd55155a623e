"""Which rules of a Rollout's routes look like the plugin's, and putting one on record.

Only the record is written, and it knows the rule by its fingerprint, never by its place: a route that changes meanwhile
can't make it claim another rule.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import click
from rich.text import Text

from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.cli.printing import console, joined, print_json
from rollouts_gwapi_plugin.cli.standing import RouteFound, RuleFound
from rollouts_gwapi_plugin.cli.subject import Subject
from rollouts_gwapi_plugin.cli.survey import survey
from rollouts_gwapi_plugin.errors import ConfigError, LedgerError, PluginError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.routes.managed import Owned, Purpose, base_name
from rollouts_gwapi_plugin.routes.record import ManagedRecord, RouteRecord, RuleMark


@dataclass(frozen=True)
class Choice:
    """The rule that was chosen, and for which managed route."""

    route: str
    rule: int
    managed_route: str
    yes: bool


def show_alikes(connection: Connection, subject: Subject, output: str) -> int:
    """Print every rule that looks like the plugin's; return the exit code."""
    routes = survey(connection, subject)
    if output == "json":
        print_json([_json(found, rule) for found in routes for rule in found.alikes])
        return 1 if any(found.error for found in routes) else 0
    to = console()
    for found in routes:
        if found.error is not None:
            to.print(Text(f"{found.target.ref}: {found.error}", style="red"), soft_wrap=True)
        for rule in found.alikes:
            head = f"{found.target.ref} rule {rule.index}" + (f" ({rule.name})" if rule.name else "")
            to.print(Text(head, style="bold"), soft_wrap=True)
            to.print(f"  {'likely' if rule.likely else 'maybe'}: {rule.alike}", soft_wrap=True)
            for line in match_lines(rule.matches):
                to.print(f"  matches {line}", soft_wrap=True)
            to.print(f"  {command_line(subject, found, rule)}", soft_wrap=True)
    if not any(found.alikes for found in routes):
        to.print(f"Rollout {subject.key}: no rule looks like the plugin's without being known as such", soft_wrap=True)
    return 1 if any(found.error for found in routes) else 0


def adopt_rule(connection: Connection, subject: Subject, choice: Choice, output: str) -> int:
    """Put the chosen rule on record; return the exit code.

    Raises:
        PluginError: there is no such rule, it does not look like the plugin's, or it can't be recorded.

    """
    found, rule = _chosen(survey(connection, subject), choice)
    mark = RuleMark(rule.name or _free_name(found, choice.managed_route), (rule.fingerprint,))
    known = choice.managed_route in subject.desired.managed_names
    if output == "text":
        to = console()
        to.print(f"{found.target.ref} rule {rule.index}: {rule.alike}", soft_wrap=True)
        if not known:
            names = joined(subject.desired.managed_names, "none")
            to.print(f"note: {choice.managed_route} is none of the Rollout's managed routes ({names})", soft_wrap=True)
    _ask(choice, subject)
    record = _record(rule.purpose, choice, mark)
    subject.renew(connection)
    subject.session.put(found.target.kind.family, found.target.name, lambda there: there.union(record))
    subject.session.forget()
    _check(survey(connection, subject), found, rule, Owned(rule.purpose, choice.managed_route), mark)
    if output == "json":
        print_json(_json(found, rule) | {"managedRoute": choice.managed_route, "recorded": str(subject.session)})
    else:
        text = f"on record in {subject.session} as managed route {choice.managed_route}; the next call takes it over"
        console().print(text, soft_wrap=True)
    return 0


def command_line(subject: Subject, found: RouteFound, rule: RuleFound) -> str:
    """Return the command that adopts the rule."""
    likely = [name for name in subject.desired.managed_names if f"setHeaderRoute {name}" in rule.alike]
    name = likely[0] if likely else "NAME"
    rollout = subject.desired
    return (
        f"rollouts-gwapi-plugin adopt -n {rollout.namespace} {rollout.rollout_name}"
        f" --route {found.target.kind.kind}/{found.target.name} --rule {rule.index} --managed-route {name}"
    )


def match_lines(matches: Sequence[JsonObject]) -> Iterator[str]:
    """Yield each match in one line."""
    for match in matches or [{}]:
        path, method = match.get("path") or {}, match.get("method")
        parts = [f"path {path.get('type', 'PathPrefix')} {path['value']}"] if path.get("value") else []
        if isinstance(method, dict):
            parts.append(f"method {method.get('service', '*')}/{method.get('method', '*')}")
        elif method:
            parts.append(f"method {method}")
        for field in ("headers", "queryParams"):
            for entry in match.get(field) or []:
                sign = "~" if entry.get("type") == "RegularExpression" else "="
                parts.append(
                    f"{field.removesuffix('s').removesuffix('Param')} {entry.get('name')}{sign}{entry.get('value')}"
                )
        yield joined(parts, "everything")


def _chosen(routes: Sequence[RouteFound], choice: Choice) -> tuple[RouteFound, RuleFound]:
    kind, _, name = choice.route.partition("/")
    for found in routes:
        target = found.target
        if target.name != name or kind.lower() not in {target.kind.kind.lower(), target.kind.plural}:
            continue
        if found.error is not None:
            raise found.error
        if choice.rule >= len(found.rules):
            raise ConfigError(f"{target.ref} has {len(found.rules)} rules; there is none with index {choice.rule}")
        rule = found.rules[choice.rule]
        if not rule.alike:
            raise ConfigError(f"{target.ref} rule {choice.rule} {_why_not(rule)}; it is left alone")
        return found, rule
    names = joined((f"{found.target.kind.kind}/{found.target.name}" for found in routes), "none")
    raise ConfigError(f"--route {choice.route!r} is none of the Rollout's routes: {names}")


def _why_not(rule: RuleFound) -> str:
    if rule.owner is not None and rule.known is not None:
        return f"is managed route {rule.owner.name} already (known by {rule.known.value})"
    named = f"bears the name {rule.name}, which the plugin would not give" if rule.name else "has no name"
    backends = joined(backend.name for backend in rule.backends)
    return f"does not look like the plugin's: it {named}, and its backends are {backends}"


def _record(purpose: Purpose, choice: Choice, mark: RuleMark) -> RouteRecord:
    records = {choice.managed_route: ManagedRecord((mark,))}
    return RouteRecord(headers=records) if purpose is Purpose.HEADER else RouteRecord(mirrors=records)


def _free_name(found: RouteFound, managed: str) -> str:
    """Return a name for the record that no rule and no other mark has."""
    record = found.view.record
    marks = [mark for one in (*record.headers.values(), *record.mirrors.values()) for mark in one.rules]
    used = {mark.name for mark in (*marks, *found.view.foreign)} | {rule.name for rule in found.rules}
    base = base_name(managed)
    names = (base if number == 0 else f"{base}-{number}" for number in count())
    return next(name for name in names if name not in used)


def _ask(choice: Choice, subject: Subject) -> None:
    if choice.yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("nothing was recorded: there is no terminal to ask on; add --yes")
    click.confirm(f"Record it in {subject.session} as managed route {choice.managed_route}?", abort=True, err=True)


def _check(routes: Sequence[RouteFound], before: RouteFound, rule: RuleFound, owner: Owned, mark: RuleMark) -> None:
    """See that the rule is known by its mark, which somebody else's write in between may have undone.

    Raises:
        PluginError: it is not.

    """
    after = next((found for found in routes if found.target.ref == before.target.ref), None)
    if after is None or after.error is not None:
        raise (after.error if after is not None and after.error else PluginError(f"{before.target.ref} is gone"))
    known = [one for one in after.rules if one.owner == owner]
    if not any(one.fingerprint in mark.fingerprints or one.name == mark.name for one in known):
        raise LedgerError(
            f"{before.target.ref} rule {rule.index} was changed meanwhile; look again, and adopt it again"
        )


def _json(found: RouteFound, rule: RuleFound) -> JsonObject:
    return {
        "kind": found.target.kind.kind,
        "namespace": found.target.namespace,
        "name": found.target.name,
        "rule": rule.index,
        "ruleName": rule.name,
        "purpose": rule.purpose.value,
        "likely": rule.likely,
        "why": rule.alike,
        "matches": list(rule.matches),
    }
