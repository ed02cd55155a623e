"""A namespace `shop` on an embedded API, what the plugin does in it, and the commands that look at it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.service.world import Shop

from rollouts_gwapi_plugin.cli.main import run
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer


class Town:
    """A namespace `shop` on an API server, what the plugin does in it, and commands on it."""

    def __init__(self, api: ApiServer, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.api = api
        self.shop = Shop(api, folder)
        self.kubeconfig = api.write_kubeconfig(folder / "kubeconfig", token=api.access.admin_token)
        self._capsys = capsys

    def apply(self) -> None:
        """Put the Rollout as it is now into the API."""
        raw = self.shop.rollout()
        raw["metadata"] = {
            key: value for key, value in raw["metadata"].items() if key not in {"uid", "resourceVersion"}
        }
        self.api.load([{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", **raw}])

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command in namespace shop; return exit code, standard output and standard error."""
        self._capsys.readouterr()
        command, *rest = arguments
        code = run([command, "--kubeconfig", str(self.kubeconfig), "-n", "shop", *rest])
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def json(self, *arguments: str) -> Any:
        """Run a command and return its JSON."""
        _, out, _ = self.run(*arguments, "-o", "json")
        return json.loads(out)

    def writes(self) -> list[str]:
        """Return the writes that came over HTTP, reviews of access aside."""
        return [f"{one.verb} {one.plural}" for one in self.api.requests.writes if "reviews" not in one.plural]

    def configure(self, **fields: Any) -> None:
        """Change the Rollout."""
        for name, value in fields.items():
            setattr(self.shop, name, value)
        self.apply()

    def found(self, *arguments: str) -> list[str]:
        """Return what `doctor` finds, as `severity check: text`."""
        return [f"{one['severity']} {one['check']}: {one['text']}" for one in self.json("doctor", *arguments)]

    def bad(self, *arguments: str) -> list[str]:
        """Return the errors and warnings of `doctor`."""
        return [line for line in self.found(*arguments) if line.startswith(("error", "warning"))]


def controller_config(plugins: Any) -> dict[str, Any]:
    """Make the controller's ConfigMap."""
    text = plugins if isinstance(plugins, str) else yaml.safe_dump(plugins)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argo-rollouts-config", "namespace": "argo-rollouts"},
        "data": {"trafficRouterPlugins": text},
    }
