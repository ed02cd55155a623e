"""Checks of a Rollout's steps: weights, managed routes, and whether any configured kind of route can take them."""

from collections.abc import Iterator
from dataclasses import dataclass

from rollouts_gwapi_plugin.cli.findings import Finding, failed, noted, warned
from rollouts_gwapi_plugin.cli.rehearsal import experiment_shares, kinds_of, raw_steps
from rollouts_gwapi_plugin.errors import RouteError, StepNotTakenError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.configuration import Configuration
from rollouts_gwapi_plugin.model.rollout import Rollout, SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.routes.desired import MAX_API_WEIGHT, ManagedStep
from rollouts_gwapi_plugin.routes.kinds import RouteKind
from rollouts_gwapi_plugin.routes.l7 import header_alternatives, mirror_headers
from rollouts_gwapi_plugin.routes.managed import base_name
from rollouts_gwapi_plugin.routes.mirror import mirror_percent

_TESTS = ("exact", "prefix", "regex")


@dataclass(frozen=True)
class _Steps:
    rollout: Rollout
    raw: JsonObject
    config: Configuration
    subject: str

    @property
    def managed(self) -> list[tuple[int, ManagedStep]]:
        """All header and mirror steps with their indices."""
        return [
            (index, managed)
            for index, step in enumerate(self.rollout.canary.steps)
            for managed in (step.set_header_route, step.set_mirror_route)
            if managed is not None
        ]


def check_steps(rollout: Rollout, raw: JsonObject, config: Configuration, subject: str) -> list[Finding]:
    """Check all steps."""
    steps = _Steps(rollout, raw, config, subject)
    return [
        *_weights(steps),
        *_managed_routes(steps),
        *_takers(steps),
        *_matches(steps),
        *_mirrors_by_kind(steps),
    ]


def kind_text(step: ManagedStep) -> str:
    """Return the field that the step is."""
    return "setHeaderRoute" if isinstance(step, SetHeaderRoute) else "setMirrorRoute"


def _weights(steps: _Steps) -> Iterator[Finding]:
    maximum, weight = steps.rollout.max_traffic_weight, 0
    if maximum > MAX_API_WEIGHT:
        # Told by the configuration check; every weight below would repeat it.
        return
    for index, step in enumerate(steps.rollout.canary.steps):
        if step.set_weight is not None:
            weight = step.set_weight
            if not 0 <= weight <= maximum:
                text = f"steps[{index}].setWeight is {weight}; maxTrafficWeight lets it be 0 to {maximum}"
                yield failed(steps.subject, "weight", text)
        shares = experiment_shares(steps.raw, index)
        total = weight + sum(share.weight for share in shares)
        if shares and total > maximum:
            parts = ", ".join(f"{share.template} {share.weight}" for share in shares)
            text = (
                f"steps[{index}].experiment: canary {weight} and the templates ({parts}) need {total} of {maximum};"
                " stable gets 0, and the shares are not what they say"
            )
            yield warned(steps.subject, "weight", text)


def _managed_routes(steps: _Steps) -> Iterator[Finding]:
    listed = [route.name for route in steps.rollout.traffic_routing.managed_routes]
    kinds: dict[str, set[str]] = {}
    for index, step in steps.managed:
        where = f"steps[{index}].{kind_text(step)}"
        if not step.name:
            yield failed(steps.subject, "managed route", f"{where}.name is missing")
            continue
        if not step.match and step.name not in kinds:
            text = f"{where} removes {step.name}, which no step before it sets"
            yield warned(steps.subject, "managed route", text)
        if step.name not in listed:
            text = f"{where}: {step.name} is not in trafficRouting.managedRoutes; the controller refuses such a Rollout"
            yield failed(steps.subject, "managed route", text)
        kinds.setdefault(step.name, set()).add(kind_text(step))
    for name in listed:
        if name not in kinds:
            yield warned(steps.subject, "managed route", f"managedRoutes: no step sets {name}")
    for name in (name for name, found in kinds.items() if len(found) > 1):
        text = f"{name} is set by header and by mirror steps; the one replaces the other"
        yield warned(steps.subject, "managed route", text)
    yield from _rule_names(steps, list(dict.fromkeys([*listed, *kinds])))
    yield from _order(steps, listed)


def _order(steps: _Steps, listed: list[str]) -> Iterator[Finding]:
    """Note header steps whose rule comes before one that is there already: gateways may not take that well."""
    there: list[str] = []
    for index, step in steps.managed:
        if not isinstance(step, SetHeaderRoute) or step.name not in listed:
            continue
        if not step.match:
            there = [name for name in there if name != step.name]
            continue
        behind = [name for name in listed[listed.index(step.name) + 1 :] if name in there]
        if step.name not in there and behind:
            text = (
                f"steps[{index}].setHeaderRoute: the rule of {step.name} is put before {', '.join(behind)}, as"
                " managedRoutes has them. Envoy Gateway can answer 503 for some seconds where a rule is put before"
                " another; list managedRoutes in the order in which the steps set them"
            )
            yield noted(steps.subject, "managed route", text)
        there.append(step.name)


def _rule_names(steps: _Steps, names: list[str]) -> Iterator[Finding]:
    by_rule: dict[str, list[str]] = {}
    for name in names:
        by_rule.setdefault(base_name(name), []).append(name)
    for rule_name, named in by_rule.items():
        if named != [rule_name]:
            text = f"{', '.join(named)}: no legal rule name, or not the only one of it; rules are called {rule_name}"
            yield noted(steps.subject, "managed route", text)


def _takers(steps: _Steps) -> Iterator[Finding]:
    config = steps.config
    able = [family for family, kind in kinds_of(config).items() if kind.match is not None]
    header = [family for family in able if _takes_headers(config, family)]
    for kind, takers, need in (
        (SetHeaderRoute, header, "an HTTPRoute or GRPCRoute with useHeaderRoutes: true"),
        (SetMirrorRoute, able, "an HTTPRoute or GRPCRoute"),
    ):
        indices = [index for index, step in steps.managed if isinstance(step, kind)]
        if indices and not takers:
            what = kind_text(kind())
            configured = ", ".join(one.kind for one in kinds_of(config).values())
            text = (
                f"no configured route ({configured}) takes the step {what} (steps {', '.join(map(str, indices))});"
                f" it needs {need}. The step will succeed without any effect"
            )
            yield warned(steps.subject, "steps", text)


def _takes_headers(config: Configuration, family: str) -> bool:
    by_selector = config.selector(family) is not None and config.use_header_routes
    return by_selector or any(entry.use_header_routes for entry in config.entries(family))


def _matches(steps: _Steps) -> Iterator[Finding]:
    """Check what a step says by itself: one test a value, legal header names, a percentage."""
    for index, step in steps.managed:
        where = f"steps[{index}]: "
        try:
            if isinstance(step, SetHeaderRoute):
                any_ = steps.config.header_match == "any"
                header_alternatives(step.match, match_any=any_, where=f"setHeaderRoute {step.name}")
            else:
                mirror_percent(step)
                for number, asked in enumerate(step.match):
                    mirror_headers(asked.headers, f"setMirrorRoute {step.name}.match[{number}]")
        except RouteError as error:
            yield failed(steps.subject, "match", f"{where}{error}")
        yield from _several_tests(steps, index, kind_text(step))


def _several_tests(steps: _Steps, index: int, field: str) -> Iterator[Finding]:
    entries = (raw_steps(steps.raw)[index].get(field) or {}).get("match") or []
    for number, entry in enumerate(entries if isinstance(entries, list) else []):
        value = entry.get("headerValue") if isinstance(entry, dict) else None
        given = [test for test in _TESTS if isinstance(value, dict) and value.get(test)]
        if len(given) > 1:
            text = f"steps[{index}].{field}.match[{number}].headerValue has {' and '.join(given)}; give one of them"
            yield failed(steps.subject, "match", text)


def _mirrors_by_kind(steps: _Steps) -> Iterator[Finding]:
    """Check mirror steps against what each configured kind can match, which no route is needed for.

    What one kind can't match is an error only where no other one can.
    """
    kinds = [kind for kind in kinds_of(steps.config).values() if kind.match is not None]
    for index, step in steps.managed:
        if not isinstance(step, SetMirrorRoute):
            continue
        found = [(kind, list(_mirror_errors(kind, step))) for kind in kinds]
        taken = any(not errors for _, errors in found)
        for kind, errors in found:
            for error in errors:
                finding = warned if taken and isinstance(error, StepNotTakenError) else failed
                yield finding(steps.subject, "match", f"steps[{index}]: {kind.kind}: {error}")


def _mirror_errors(kind: RouteKind, step: SetMirrorRoute) -> Iterator[RouteError]:
    for number, asked in enumerate(step.match):
        try:
            if kind.match is not None:
                kind.match.intersect({}, asked, f"setMirrorRoute {step.name}.match[{number}]")
        except RouteError as error:
            yield error
