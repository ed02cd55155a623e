"""What a Rollout asks of the controller's version: an earlier one calls the Rollout invalid and makes no call."""

from collections.abc import Iterator

from rollouts_gwapi_plugin.cli.findings import Finding, noted
from rollouts_gwapi_plugin.model.rollout import Rollout


def needed_versions(rollout: Rollout, subject: str) -> Iterator[Finding]:
    """Note what needs Argo Rollouts 1.10 where a plugin routes the traffic."""
    canary = rollout.canary
    mirrors = [index for index, step in enumerate(canary.steps) if step.set_mirror_route is not None]
    needs = [f"steps[{index}].setMirrorRoute" for index in mirrors[:1]]
    needs += ["pingPong"] if canary.ping_pong is not None else []
    for what in needs:
        text = f"{what} needs Argo Rollouts 1.10: with a plugin, earlier controllers call such a Rollout invalid"
        yield noted(subject, "controller", text)
