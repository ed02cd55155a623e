"""What the READMEs of examples/ tell their reader to type is typed here, on the local cluster, under traffic.

The local cluster has no kind, no helm and no kubelet; `REPLACED` says for each command of that sort what happens in its
place. Every other command is executed as it stands, so that a README which goes wrong fails here.
"""

import re
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from e2e.cluster import controller
from e2e.cluster.settings import PLUGIN_RIGHTS, REPOSITORY
from e2e.load.cohort import Cohort
from e2e.load.generator import ask
from e2e.load.graph import Picture, draw
from e2e.load.traffic import Load, Traffic, versions, wrong_share
from e2e.readme import commands
from e2e.runner.api import Api, RouteWatch
from e2e.runner.report import asked
from e2e.runner.target import LocalTarget, Target, run_command
from e2e.waiting import NotYet, until

OUT = REPOSITORY / "out" / "e2e"
WAIT_SECONDS = 300.0
# A request that was on its way when the weights changed; Envoy follows within 30 ms.
CHANGE_SECONDS = 1.0

Done = Callable[[LocalTarget], None]


def _nothing(_target: LocalTarget) -> None:
    """Do nothing: the local cluster has it already."""


def _restart(target: LocalTarget) -> None:
    target.restart("controller")


REPLACED: dict[str, Done] = {
    r"^kind create cluster": _nothing,
    r"^helm install eg ": _nothing,
    r"^kubectl create namespace argo-rollouts$": _nothing,
    r"^kubectl apply -n argo-rollouts -f https://": _nothing,
    r"^kubectl patch deployment argo-rollouts ": _nothing,  # the plugin's file is in the container
    r"^kubectl rollout restart deployment argo-rollouts ": _restart,
    r"^kubectl rollout status deployment argo-rollouts ": _nothing,  # the restart waits
    r"^kubectl port-forward ": _nothing,  # the gateway's port is open as it is
    r"^for i in .*curl": _nothing,  # the test's own traffic
}


@pytest.mark.e2e
@pytest.mark.timeout(900, func_only=True)
def test_canary(target: Target, tmp_path: Path) -> None:
    """The walkthrough of examples/canary does what it says, and no request fails."""
    if not isinstance(target, LocalTarget):
        pytest.skip("the README's own cluster is kind; this test plays it on the local cluster")
    walk = commands(REPOSITORY / "examples" / "canary" / "README.md", "## On kind")
    with ExitStack() as stack:
        stack.callback(_clean_up, target)
        walked = _walk(target, walk, tmp_path, stack)

    traffic, states = walked.traffic, walked.states
    folder = OUT / "examples-canary"
    folder.mkdir(parents=True, exist_ok=True)
    draw(Picture("examples/canary", traffic.records, states, [(walked.began, "set image")]), folder / "traffic.svg")
    shown_weights = [line.split()[1] for line in (tmp_path / "watch").read_text().splitlines()]
    assert [weights for weights, _ in groupby(shown_weights)] == [
        "WEIGHTS",
        "100,0",
        "80,20",
        "50,50",
        "0,100",
        "100,0",
    ]
    assert traffic.losses() == []
    for (at, percent), (end, _) in pairwise(states):
        window = traffic.window("everyone", at + CHANGE_SECONDS, end)
        if percent in {20.0, 50.0} and len(window) > 100:
            share = {"yellow": percent, "blue": 100 - percent}
            assert wrong_share(versions(window), share, exact=True) == ""
    assert set(versions(traffic.window("everyone", walked.promoted))) == {"yellow"}


@dataclass(frozen=True)
class Walked:
    """What a walkthrough showed: traffic, the canary's percent at each change of the route, and when what happened."""

    traffic: Traffic
    states: list[tuple[float, float]]
    began: float
    promoted: float


def _walk(target: LocalTarget, walk: list[str], folder: Path, stack: ExitStack) -> Walked:
    """Type all commands; traffic begins before the one that brings the new version."""
    change = next(index for index, command in enumerate(walk) if " set image " in command)
    api = target.api()
    target.cluster.kubectl("delete", "clusterrole,clusterrolebinding", "rollouts-gwapi-plugin")
    for command in walk[:change]:
        _type(target, command)
    watch = stack.enter_context(RouteWatch(api, "HTTPRoute", "shop", "web"))
    cohort = Cohort(name="everyone", port=80, host="shop.example", rate=40)
    until(lambda: _answered(cohort), "the first answer", seconds=60.0)
    with Load([cohort], folder) as traffic:
        began = time.monotonic()
        shown = stack.enter_context(_watch_command(target, walk, folder))
        _type(target, walk[change])
        until(lambda: _finished(api), "the new version is promoted", seconds=WAIT_SECONDS)
        promoted = time.monotonic()
        until(lambda: _seen(traffic, promoted), "answers after the promotion", seconds=WAIT_SECONDS)
        shown.terminate()
    return Walked(traffic, [(at, asked(state, "web-canary")) for at, state in watch.states], began, promoted)


def _type(target: LocalTarget, command: str) -> None:
    """Do what a reader would: type the command, or what stands for it here."""
    for pattern, instead in REPLACED.items():
        if re.match(pattern, command):
            instead(target)
            return
    run_command(["bash", "-euo", "pipefail", "-c", f"cd '{REPOSITORY}' && {command}"], target.cluster.environment())


def _watch_command(target: LocalTarget, walk: list[str], folder: Path) -> subprocess.Popen[bytes]:
    command = next(command for command in walk if command.startswith("kubectl get httproute web"))
    with (folder / "watch").open("wb") as output:
        script = f"exec {command}"
        return subprocess.Popen(["bash", "-c", script], env=target.cluster.environment(), stdout=output)


def _answered(cohort: Cohort) -> bool:
    record = ask(cohort)
    if record.error:
        raise NotYet(record.error)
    return True


def _finished(api: Api) -> bool:
    status = (api.read("Rollout", "shop", "web") or {}).get("status", {})
    if status.get("phase") != "Healthy" or status.get("stableRS") != status.get("currentPodHash"):
        raise NotYet(f"{status.get('phase')}: {status.get('message')}")
    spec = (api.read("Rollout", "shop", "web") or {})["spec"]
    sets = {
        item["metadata"]["labels"].get("rollouts-pod-template-hash"): item for item in api.all_of("ReplicaSet", "shop")
    }
    current = sets[status["currentPodHash"]]["spec"]["template"]["spec"]["containers"][0]["image"]
    return bool(current == spec["template"]["spec"]["containers"][0]["image"])


def _seen(traffic: Traffic, since: float) -> bool:
    traffic.refresh()
    return len(traffic.window("everyone", since + CHANGE_SECONDS)) > 50


def _clean_up(target: LocalTarget) -> None:
    """Bring back the cluster's own rights and configuration, and remove the example."""
    target.cluster.kubectl("delete", "namespace", "shop", "--ignore-not-found", "--wait=true")
    target.cluster.kubectl("delete", "gatewayclass", "envoy", "--ignore-not-found")
    target.cluster.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={PLUGIN_RIGHTS}")
    target.configure(None)
    controller.wait(target.cluster.settings)
