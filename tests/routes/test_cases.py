"""Reconciler cases as files that a user can read: before.yaml, call.yaml, after.yaml.

`call.yaml` says in `about` what is true, names public cases in `cases`, and lists the calls. The route after the last
call must be `after.yaml` (no such file: as before.yaml), and making the last call again must change nothing. A call
`foreignWrite` is somebody else's: its keys replace the route's. `pytest --update-cases` rewrites the after.yaml files;
the diff is to be reviewed.

Keys of call.yaml: `rollout` (status, steps, managedRoutes, maxTrafficWeight, …), `config` (the plugin's), `ledger`
(`lost`: the record is thrown away before the last call), `takesHeaders`, `keepsMirrorPercent`, `services` (their
ports), `legacy` (the Go plugin's old entries), `calls`, and what is expected beside the route: `error` or `problem` (a
part of the text), `notes` (reasons), `record` (managed routes and experiments), `policies` (a RouteTable's
MirrorPolicies: destination and percentage by the managed route's name), `obsolete` (how many of them are to go).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollouts_gwapi_plugin.errors import PluginError
from rollouts_gwapi_plugin.model.configuration import Configuration, parse_configuration
from rollouts_gwapi_plugin.model.rollout import (
    Rollout,
    SetHeaderRoute,
    SetMirrorRoute,
    WeightDestination,
    parse_rollout,
)
from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.companions import NO_COMPANIONS, Companions
from rollouts_gwapi_plugin.routes.desired import (
    Desired,
    ServicePort,
    base_desired,
    clamp_weight,
    destinations_of,
    progressing,
)
from rollouts_gwapi_plugin.routes.dispatch import reconciler_of
from rollouts_gwapi_plugin.routes.kinds import GLOO_GROUP, KINDS, RouteKind
from rollouts_gwapi_plugin.routes.notes import Note
from rollouts_gwapi_plugin.routes.reconcile import Outcome, Scope
from rollouts_gwapi_plugin.routes.record import NOTHING_RECORDED, RecordView, RouteRecord

CASES = Path(__file__).parent / "cases"
KEYS = {
    "about", "cases", "rollout", "config", "ledger", "takesHeaders", "keepsMirrorPercent", "calls", "error", "problem",
    "notes", "record", "services", "legacy", "policies", "obsolete",
}  # fmt: skip


def _folders() -> list[Path]:
    return sorted(file.parent for file in CASES.glob("*/*/*/call.yaml"))


def _rollout(asked: Mapping[str, Any]) -> Rollout:
    """Fill in a Rollout shop/web of revision 2 in the middle of an update, with the Services `s` and `c`."""
    canary = {
        "stableService": "s",
        "canaryService": "c",
        "steps": asked.get("steps", []),
        **asked.get("canary", {}),
        "trafficRouting": {
            "managedRoutes": [{"name": name} for name in asked.get("managedRoutes", [])],
            "maxTrafficWeight": asked.get("maxTrafficWeight"),
        },
    }
    return parse_rollout(
        {
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "annotations": {"rollout.argoproj.io/revision": str(asked.get("revision", 2))},
                **asked.get("metadata", {}),
            },
            "spec": {"strategy": {"canary": canary}},
            "status": {"stableRS": "old", "currentPodHash": "new", **asked.get("status", {})},
        }
    )


@dataclass
class Story:
    """The state that goes from call to call."""

    route: Route
    record: RouteRecord
    known: bool = False
    notes: tuple[Note, ...] = ()
    problem: str = ""
    companions: Companions = NO_COMPANIONS


def _config(asked: Mapping[str, Any], group: str) -> Configuration:
    if group == GLOO_GROUP:
        return parse_configuration({"routeTableName": "web", **asked}, "solo-io/glooplatform")
    return parse_configuration({"httpRoute": "web", **asked}, "argoproj-labs/gatewayAPI")


def _desired(case: Mapping[str, Any], call: Mapping[str, Any], group: str) -> tuple[Desired, tuple[Note, ...]]:
    rollout = _rollout({**case.get("rollout", {}), **call.get("rollout", {})})
    config = _config(case.get("config", {}), group)
    desired = base_desired(rollout, config)
    weight, clamped = clamp_weight(call.get("setWeight") or 0, desired.max_weight, desired.rollout)
    asked = [WeightDestination(service_name=name, weight=w) for name, w in (call.get("destinations") or {}).items()]
    pair = (desired.stable, desired.canary)
    destinations, over = destinations_of(tuple(asked), desired.rollout, desired.max_weight, weight, pair)
    ports = {
        name: tuple(ServicePort(str(port_name), port) for port_name, port in listed.items())
        for name, listed in (case.get("services") or {}).items()
    }
    resolved = tuple(replace(item, ports=ports.get(item.name, (ServicePort("", 80),))) for item in destinations)
    heal = config.self_heal and progressing(rollout) and not call.get("rightAfterRemove", False)
    wanted = replace(
        desired, weight=weight, destinations=resolved, heal=heal, stable_ports=ports.get(desired.stable, ())
    )
    return wanted, (*clamped, *over)


def _run(case: Mapping[str, Any], call: Mapping[str, Any], scope: Scope, story: Story) -> Outcome:
    desired, notes = _desired(case, call, scope.kind.group)
    reconcile = reconciler_of(story.route)
    view = RecordView(story.record, story.known, legacy=case.get("legacy") or {})
    if "setWeight" in call:
        outcome = reconcile.set_weight(story.route, desired, view, scope)
    elif "setHeaderRoute" in call:
        step = SetHeaderRoute.model_validate(call["setHeaderRoute"])
        outcome = reconcile.set_managed_route(story.route, step, desired, view, scope)
    elif "setMirrorRoute" in call:
        mirror = SetMirrorRoute.model_validate(call["setMirrorRoute"])
        outcome = reconcile.set_managed_route(story.route, mirror, desired, view, scope)
    elif "giveBack" in call:
        outcome = reconcile.give_back(story.route, desired, view, scope, weights=call["giveBack"])
    else:
        assert "removeManagedRoutes" in call, f"unknown call {call}"
        outcome = reconcile.remove_managed_routes(story.route, desired, view, scope)
    return replace(outcome, notes=(*notes, *outcome.notes))


def _play(case: Mapping[str, Any], before: Mapping[str, Any], kind: RouteKind) -> Story:
    scope = Scope(kind, case.get("takesHeaders", True), case.get("keepsMirrorPercent", True))
    story = Story(parse_route(dict(before)), RouteRecord())
    for number, call in enumerate(case["calls"]):
        if "foreignWrite" in call:
            story.route = parse_route({**story.route.dump(), **call["foreignWrite"]})
            continue
        if number == len(case["calls"]) - 1 and case.get("ledger") == "lost":
            story.record, story.known = RouteRecord(), False
        outcome = _run(case, call, scope, story)
        problem = str(outcome.problem) if outcome.problem else ""
        known = not outcome.record.empty
        story = Story(outcome.route, outcome.record, known, outcome.notes, problem, outcome.companions)
    if story.problem:
        # The call lowered the canary in spite of it; there is nothing left to lower, so now it is an error (D31).
        with pytest.raises(PluginError):
            _run(case, case["calls"][-1], scope, story)
        return story
    again = _run(case, case["calls"][-1], scope, story)
    assert again.route is story.route, "the last call, made again, changes the route once more"
    assert again.record == story.record
    return story


def _summary(record: RouteRecord) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "headers": {name: [mark.name for mark in item.rules] for name, item in record.headers.items()},
        "mirrors": {name: [mark.name for mark in item.rules] for name, item in record.mirrors.items()},
        "experiments": [name for _, _, _, name in record.experiments],
    }
    return {key: value for key, value in parts.items() if value}


def _policies(story: Story) -> dict[str, Any]:
    """Return each policy's destination and percentage by the one route that it selects."""
    result = {}
    for policy in story.companions.wanted:
        (selected,) = policy["spec"]["applyToRoutes"]
        (found,) = [
            item["name"]
            for item in story.route.dump()["spec"]["http"]
            if selected["route"]["labels"].items() <= item.get("labels", {}).items()
        ]
        config = policy["spec"]["config"]
        result[found] = f"{config['destination']['ref']['name']} {config.get('percentage', 100)}"
    return result


@pytest.mark.parametrize("folder", _folders(), ids=lambda folder: "-".join(folder.parts[-3:]))
def test_case(folder: Path, update_cases: Callable[[Path, Any], None] | None) -> None:
    """The calls bring before.yaml to after.yaml, say what is expected, and are idempotent."""
    case = yaml.safe_load((folder / "call.yaml").read_text())
    assert set(case) <= KEYS, f"unknown keys in call.yaml: {set(case) - KEYS}"
    before = yaml.safe_load((folder / "before.yaml").read_text())
    kind = next(kind for kind in KINDS.values() if kind.kind == before["kind"])
    original = parse_route(dict(before))
    if "error" in case:
        with pytest.raises(PluginError) as raised:
            _play(case, before, kind)
        assert case["error"] in str(raised.value)
        return
    story = _play(case, before, kind)
    after_file = folder / "after.yaml"
    if update_cases is not None:
        update_cases(after_file, None if story.route == original else story.route.dump())
    wanted = yaml.safe_load(after_file.read_text()) if after_file.exists() else before

    assert wanted == story.route.dump()
    assert case.get("record", {}) == _summary(story.record)
    assert case.get("notes", []) == [note.reason for note in story.notes]
    assert case.get("policies", {}) == _policies(story)
    assert case.get("obsolete", 0) == len(story.companions.obsolete)
    assert case.get("problem", "") in story.problem
    assert bool(case.get("problem")) == bool(story.problem)


def test_there_are_cases_of_every_kind_and_call() -> None:
    """The folders are found at all, and each kind has one for weights."""
    kinds = {folder.parts[-3] for folder in _folders()}

    assert {"http", "grpc", "tcp", "tls", "udp", "gloo"} <= kinds
    assert NOTHING_RECORDED.record.empty
