"""The world of the commands that look at a cluster."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cli.linting import Json, Lint
from tests.cli.town import Town, controller_config
from tests.service.world import PLUGIN_KEY, route, rule, service

from rollouts_gwapi_plugin.cli.main import run
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer


@pytest.fixture
def town(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Town]:
    """Give a namespace with the HTTPRoute `web` and the Rollout `web`, in the middle of an update."""
    with ApiServer() as api:
        api.create(route(rule("s100 c0")))
        made = Town(api, tmp_path, capsys)
        made.apply()
        yield made


@pytest.fixture
def sound(town: Town) -> Town:
    """Make everything be in order."""
    for name in ("s", "c"):
        town.api.create(service(name))
    town.api.create(controller_config([{"name": PLUGIN_KEY, "location": "file:///plugins/plugin"}]))
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "observedGeneration": 1}
    web = town.api.read("HTTPRoute", "shop", "web")
    parents = [{"parentRef": {"name": "gw"}, "controllerName": "example.com/gateway", "conditions": [condition]}]
    town.api.update_status({**web, "status": {"parents": parents}})
    return town


@pytest.fixture
def elsewhere(sound: Town) -> Town:
    """Let a Rollout of namespace app, which is gone, have weight on the route in shop."""
    sound.shop.metadata = {"namespace": "app"}
    sound.shop.config = {"httpRoute": "web", "namespace": "shop"}
    sound.shop.weight(30)
    sound.api.delete("Rollout", "shop", "web")
    return sound


@pytest.fixture
def lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lint:
    """Give a function that writes objects to one file and returns exit code and `severity check: text` lines."""

    def check(*objects: Json, options: tuple[str, ...] = ()) -> tuple[int, list[str]]:
        file = tmp_path / "objects.yaml"
        file.write_text(yaml.safe_dump_all(copy.deepcopy(list(objects))))
        code = run(["lint", str(file), "-o", "json", *options])
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, [f"{one['severity']} {one['check']}: {one['text']}" for one in json.loads(captured.out)]

    return check
