"""What a telling leaves behind in its folder: a graph, a summary, and for a failed case all that explains it."""

from pathlib import Path
from typing import Any

import yaml

from e2e.load.graph import Picture, draw
from e2e.load.traffic import versions
from e2e.runner.api import Api, ApiTrouble, JsonObject
from e2e.runner.target import Target
from e2e.runner.telling import Telling

# What one reads first fits on two screens; the whole log and all objects lie beside it.
_LOG_LINES = 40
_LINE_LENGTH = 400
_EVENTS = 15
_EVENT_LENGTH = 300
_KINDS = ("Rollout", "HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute", "ConfigMap", "Event")


def write_graph(telling: Telling, folder: Path) -> None:
    """Draw the traffic."""
    if telling.traffic is None:
        return
    case = telling.case
    line = [(at, asked(state, case.watch.canary)) for at, state in telling.route_states]
    stages = [(told.began, told.stage.name) for told in telling.stages if told.began >= telling.traffic_began]
    draw(Picture(f"{case.name}: {case.description}", telling.traffic.records, line, stages), folder / "traffic.svg")


def asked(route: JsonObject, canary: str) -> float:
    """Return the canary's percent in the first rule that has it beside another."""
    for rule in route.get("spec", {}).get("rules", []):
        weights: dict[str, int] = {item["name"]: int(item.get("weight", 1)) for item in rule.get("backendRefs", [])}
        if canary in weights and len(weights) > 1 and (total := sum(weights.values())):
            return 100 * weights[canary] / total
    return 0.0


def summary(telling: Telling) -> str:
    """Return the story as a table: each stage, how long it took, who got what."""
    lines = [f"{telling.case.name}: {telling.case.description}"]
    for told in telling.stages:
        took = f"{told.fulfilled - told.began:5.1f} s" if told.fulfilled else "  never "
        settled = f"+{1000 * (told.settled - told.fulfilled):.0f} ms" if told.fulfilled else ""
        lines.append(f"  {took} {settled:>9}  {told.stage.name}{_shares(telling, told.settled, told.ended)}")
    if telling.traffic is not None:
        records = telling.traffic.records
        lost = len(telling.traffic.losses())
        slowest = max((record.took for record in records), default=0.0)
        lines.append(
            f"  {len(records)} requests, {lost} failed, slowest {1000 * slowest:.0f} ms; "
            f"{len(telling.route_states)} states of the route"
        )
        if telling.case.losses:
            lines.append(f"  losses allowed up to {telling.case.losses.percent} %: {telling.case.losses.reason}")
    if telling.again and telling.case.again:
        lines.append(f"  to be told again: {telling.case.again.reason}")
    return "\n".join([*lines, *(f"  WRONG: {finding}" for finding in telling.findings)])


def _shares(telling: Telling, since: float, until: float) -> str:
    if telling.traffic is None or not since:
        return ""
    parts = []
    for cohort in sorted({record.cohort for record in telling.traffic.records}):
        counted = versions(telling.traffic.window(cohort, since, until or float("inf")))
        if counted:
            shares = ", ".join(
                f"{name} {100 * number / counted.total():.1f} %" for name, number in sorted(counted.items())
            )
            parts.append(f"; {cohort} ({counted.total()}): {shares}")
    return "".join(parts)


def explain(telling: Telling, target: Target, api: Api, folder: Path) -> str:
    """Write all objects of the case and the log; return what one reads first."""
    log = target.controller_log()
    (folder / "controller.log").write_text(log)
    objects = {kind: _objects(api, kind, telling.namespace) for kind in _KINDS}
    (folder / "objects.yaml").write_text(yaml.safe_dump(objects, sort_keys=False))
    lines = log.splitlines()
    # The controller's own patches are long, and say what the objects say.
    short = [line[:_LINE_LENGTH] for line in lines if 'msg="Patched: ' not in line]
    plugin = [line for line in short if "plugin" in line][-_LOG_LINES // 2 :]
    route = [state for _, state in telling.route_states[-1:]]
    parts = [
        "## the route, last state",
        yaml.safe_dump(_without_noise(route), sort_keys=False),
        "## Events",
        *(f"{item.get('reason')}: {item.get('message', '')[:_EVENT_LENGTH]}" for item in objects["Event"][-_EVENTS:]),
        "## the plugin's last log lines",
        *plugin,
        "## the controller's last log lines",
        *short[-_LOG_LINES:],
        f"## more in {folder}",
    ]
    return "\n".join(parts)


def _objects(api: Api, kind: str, namespace: str) -> list[JsonObject]:
    try:
        return _without_noise(api.all_of(kind, namespace))
    except ApiTrouble:
        return []


def _without_noise(objects: list[Any]) -> list[Any]:
    for item in objects:
        item.get("metadata", {}).pop("managedFields", None)
    return objects
