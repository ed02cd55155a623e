"""Whether the record of managed rules can be used and says what is on the routes (D5, D7, D8, D30)."""

from collections.abc import Iterator, Sequence

from rollouts_gwapi_plugin.cli.findings import Finding, failed, noted, passed, warned
from rollouts_gwapi_plugin.cli.standing import Known, RouteFound
from rollouts_gwapi_plugin.cli.subject import Subject
from rollouts_gwapi_plugin.errors import LedgerError
from rollouts_gwapi_plugin.routes.kinds import KINDS


def check_record(subject: Subject, routes: Sequence[RouteFound]) -> Iterator[Finding]:
    """Check the record of one Rollout; a Rollout that needs none has no findings unless it is broken."""
    name, session = f"Rollout {subject.key}", subject.session
    needs = bool(subject.desired.managed_names or subject.desired.template_names)
    broken = False
    for family in KINDS:
        trouble = session.trouble(family)
        if trouble is not None:
            broken = True
            # A broken key holds up only the kind that it is of; a ConfigMap that can't be read holds up all.
            stops = needs and (family in subject.config.families or not isinstance(trouble, LedgerError))
            if stops:
                effect = "managed routes and experiments can't be set"
            else:
                effect = "no configured route is of that kind" if needs else "weights are set all the same"
            yield (failed if stops else warned)(name, "record", f"{session}: {trouble}; {effect}")
            if not isinstance(trouble, LedgerError):
                # The whole ConfigMap can't be read, and with it no key.
                return
    for found in routes:
        yield from _on_route(subject, found)
    if needs and not broken:
        count = sum(rule.known is Known.RECORD for found in routes for rule in found.rules)
        yield passed(name, "record", f"{session} can be read; managed rules on record: {count}")


def _on_route(subject: Subject, found: RouteFound) -> Iterator[Finding]:
    route = str(found.target.ref)
    for what in found.stale:
        text = f"{what} of {subject.key} is on record and not on the route; the next call sweeps the record"
        yield noted(route, "record", text)
    for rule in found.rules:
        if rule.owner is not None and rule.known is Known.NAME:
            text = f"rule {rule.place} ({rule.name}) is on no record and known by its name; the next call records it"
            yield noted(route, "record", text)
        if rule.alike:
            text = f"rule {rule.place} looks like the plugin's and is left alone: {rule.alike} (see `adopt`)"
            yield (warned if rule.likely else noted)(route, "look-alike", text)
    taken = {rule.owner.name for rule in found.rules if rule.owner is not None and rule.known is Known.OLD_ENTRY}
    for name, index in found.view.legacy.items():
        entry = f"the Go plugin's old entry {name} (rule {index})"
        if name in taken:
            yield noted(route, "old entry", f"{entry} is taken over by the next call")
        elif name in subject.desired.managed_names:
            text = f"{entry} does not fit the rule there; the next call drops the entry and keeps the rule"
            yield warned(route, "old entry", text)
        else:
            yield noted(route, "old entry", f"{entry} is of no managed route of {subject.key}, and is left")
