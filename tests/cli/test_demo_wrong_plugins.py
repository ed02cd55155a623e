"""Plugins that get an example wrong are found out by the demo, which says what was asked and what came."""

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rollouts_gwapi_plugin.cli.demo import FAST_SPEED, demo

WRONG = """#!{python}
import sys
from copy import deepcopy
from rollouts_gwapi_plugin.kube.conflicts import retry_on_conflict, under_version_of
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.model.calls import Verification
from rollouts_gwapi_plugin.model.kube import ObjectRef, ResourceType
from rollouts_gwapi_plugin.serve import run
from rollouts_gwapi_plugin.service import router
from rollouts_gwapi_plugin.service.router import TrafficRouter

ROUTES = ResourceType("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
right = TrafficRouter.set_weight
TrafficRouter.verify_weight = lambda self, call: Verification.VERIFIED


def edit(self, resource, namespace, change):
    client, deadline = self._connector.cluster().client, Deadline.after(10)

    def attempt(tries):
        read = client.get(resource, namespace, "web", deadline=deadline)
        wanted = deepcopy(read)
        change(wanted["spec"])
        if wanted != read:
            client.put(resource, under_version_of(read, wanted), deadline=deadline)

    retry_on_conflict(attempt, ObjectRef(resource.kind, namespace, "web"), deadline=deadline)


def change_route(self, call, change):
    edit(self, ROUTES, call.rollout.metadata.namespace, lambda spec: change(spec["rules"]))

{patch}

sys.exit(run(sys.argv[1:]))
"""
SKIPS_HEADERS = """
TrafficRouter.set_header_route = lambda self, call: None
router.progressing = lambda rollout: False
"""
# What the Go plugin did up to its version 0.12.
OVERWRITES_HEADERS = """
def set_weight(self, call):
    right(self, call)

    def overwrite(rules):
        for ref in (ref for rule in rules for ref in rule["backendRefs"]):
            if ref["name"] == call.rollout.canary.canary_service:
                ref["weight"] = call.desired_weight

    change_route(self, call, overwrite)

TrafficRouter.set_weight = set_weight
"""
IGNORES_EXPERIMENTS = """
TrafficRouter.set_weight = lambda self, call: right(self, call.model_copy(update={"additional_destinations": ()}))
"""
# What the Go plugin does up to its version 0.15.
KEEPS_EXPERIMENTS = """
added = []

def set_weight(self, call):
    right(self, call)
    if call.additional_destinations:
        added[:] = [one.service_name for one in call.additional_destinations]
        return

    def keep(rules):
        rules[0]["backendRefs"] += [{"name": name, "port": 8080, "weight": 0} for name in added]

    if added:
        change_route(self, call, keep)

TrafficRouter.set_weight = set_weight
TrafficRouter.remove_managed_routes = lambda self, call: None
"""
MIRRORS_ALL = """
mirror = TrafficRouter.set_mirror_route

def set_mirror_route(self, call):
    mirror(self, call.model_copy(update={"mirror_route": call.mirror_route.model_copy(update={"percentage": 100})}))

TrafficRouter.set_mirror_route = set_mirror_route
router.progressing = lambda rollout: False
"""


# The proof-of-concept plugin for RouteTables: the step's matcher beside the route's own, each of which is enough.
MATCHES_EITHER = """
from rollouts_gwapi_plugin.routes.gloo import managed

managed.with_headers = lambda matcher, headers: matcher
"""
# Weight 0 is no weight in Gloo: a route with it beside a full 100 is refused, and answers 500.
WRITES_ZEROS = """
TABLES = ResourceType("networking.gloo.solo.io", "v2", "routetables", "RouteTable")

def set_weight(self, call):
    right(self, call)

    def add_zero(spec):
        for route in spec["http"]:
            found = route.get("forwardTo", {}).get("destinations", [])
            if [one["ref"]["name"] for one in found] == ["web-stable"]:
                found[0]["weight"] = 100
                found.append({"ref": {"name": "web-canary"}, "port": {"number": 80}, "weight": 0})

    edit(self, TABLES, "gloo", add_zero)

TrafficRouter.set_weight = set_weight
"""
LEAVES_POLICIES = """
from rollouts_gwapi_plugin.kube.client import KubeClient

KubeClient.delete = lambda self, *arguments, **options: None
"""


@pytest.mark.parametrize(
    ("example", "patch", "problems"),
    [
        (
            "header-routing",
            SKIPS_HEADERS,
            [r"weight 0, testers, testers: 0.0% of \d+ requests met yellow, asked were 100"],
        ),
        ("header-routing", OVERWRITES_HEADERS, [r"\d+ requests were lost"]),
        (
            "experiment",
            IGNORES_EXPERIMENTS,
            [
                r"weight 0, experiment: HTTPRoute web has the weights web-stable 100, web-canary 0, asked were",
                r"weight 0, experiment, everyone: 100.0% of \d+ requests met blue, asked were 70.0%",
                r"weight 0, experiment, everyone: 0.0% of \d+ requests met candidate, asked were 25.0%",
            ],
        ),
        (
            "experiment",
            KEEPS_EXPERIMENTS,
            [r"^weight 0: HTTPRoute web is not as it was before", "^promoted: HTTPRoute web is not"],
        ),
        ("mirror", MIRRORS_ALL, [r"readers: 100.0% of \d+ requests were copied to v2, asked were 30.0%"]),
        ("gloo", MATCHES_EITHER, [r"weight 0, testers, everyone: 100.0% of \d+ requests met yellow, asked were 0.0%"]),
        ("gloo", WRITES_ZEROS, [r"\d+ requests were lost", r"^weight 0, everyone: only \d+ requests were measured"]),
        ("gloo", LEAVES_POLICIES, [r"^promoted: MirrorPolicies are left: shadow-[0-9a-f]{16}$"]),
    ],
)
def test_wrong_plugins_are_found_out(tmp_path: Path, example: str, patch: str, problems: list[str]) -> None:
    """A plugin that skips, overwrites, ignores or leaves behind is found out, with figures; the exit code is 1."""
    plugin = tmp_path / "plugin"
    plugin.write_text(WRONG.replace("{python}", sys.executable).replace("{patch}", patch))
    plugin.chmod(0o755)
    options = ["--example", example, "--speed", str(2 * FAST_SPEED), "--plain", "--plugin", str(plugin)]
    found = CliRunner().invoke(demo, [*options, "--plot", str(tmp_path / "demo.svg")], standalone_mode=False)
    wrong = re.findall(r"^wrong: (.*)$", found.output, re.MULTILINE)

    assert found.exception is None
    assert found.return_value == 1, found.output
    # Whoever loses requests, it is not those who send no header; but a RouteTable that Gloo refuses hurts everybody.
    hurt = {"testers", "everyone"} if patch == WRITES_ZEROS else {"testers"}
    assert set(re.findall(r"^lost at [\d.]+ s: ([^,]+),", found.output, re.MULTILINE)) <= hurt
    for problem in problems:
        assert any(re.search(problem, one) for one in wrong), found.output
