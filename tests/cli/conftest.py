"""The world of the commands that look at a cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.town import Town
from tests.service.world import route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer


@pytest.fixture
def town(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Town]:
    """Give a namespace with the HTTPRoute `web` and the Rollout `web`, in the middle of an update."""
    with ApiServer() as api:
        api.create(route(rule("s100 c0")))
        made = Town(api, tmp_path, capsys)
        made.apply()
        yield made
