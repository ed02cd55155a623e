"""A Rollout for `lint`, and what the fixture `lint` gives."""

from collections.abc import Callable
from typing import Any

from tests.service.world import PLUGIN_KEY

Json = dict[str, Any]
# Writes objects to one file; returns exit code and `severity check: text` lines.
Lint = Callable[..., tuple[int, list[str]]]


def rollout(config: Any = None, steps: Any = (), managed: tuple[str, ...] = (), **canary: Any) -> Json:
    """Make a Rollout shop/web with the Services s and c."""
    routing = {
        "managedRoutes": [{"name": name} for name in managed],
        "plugins": {PLUGIN_KEY: {"httpRoute": "web"} if config is None else config},
        **canary.pop("trafficRouting", {}),
    }
    filled = {"stableService": "s", "canaryService": "c", "steps": list(steps), **canary, "trafficRouting": routing}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"strategy": {"canary": filled}},
    }
