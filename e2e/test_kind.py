"""A kind cluster's target, on a node that is played: it reaches into the node, and waits until what it did is done."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from builder.tree import LOADER
from e2e.cluster.process import CommandFailed
from e2e.runner import target
from e2e.runner.api import Api, ApiTrouble, JsonObject
from e2e.runner.target import KubeconfigTarget, make_gateway

pytestmark = pytest.mark.e2e_short

NODE = "gwapi-control-plane"
REFUSED = CommandFailed("exit code 1")


class Kind(KubeconfigTarget):
    """A target whose commands, and whose API server, answer what they are told to; the last answer stays."""

    def __init__(
        self, answers: list[str | CommandFailed], objects: list[JsonObject | ApiTrouble] | None = None
    ) -> None:
        super().__init__(Path("kubeconfig"), image="echo", gateway_class="eg", kind_node=NODE)
        self.answers, self.objects = answers, objects or []
        self.commands: list[str] = []

    def run(self, command: Sequence[str], *, text: str | None = None) -> str:
        """Note the command and give the next answer."""
        del text
        self.commands.append(" ".join(command))
        answer = self.answers.pop(0) if self.answers else ""
        if isinstance(answer, CommandFailed):
            raise answer
        return answer

    def api(self) -> Api:
        """Play the API server, too."""
        return cast("Api", self)

    def read(self, *_: str) -> JsonObject:
        """Give the next object."""
        found = self.objects.pop(0)
        if isinstance(found, ApiTrouble):
            raise found
        return found


def test_the_plugin_is_killed_once_there_is_one() -> None:
    """The plugin starts with the first Rollout, and is found by its process's name: its arguments lack its path."""
    kind = Kind([REFUSED, ""])

    kind.kill("plugin")

    assert kind.commands == [f"docker exec {NODE} pkill -KILL -x {Path(LOADER).name}"] * 2


def test_the_api_server_is_back_before_the_story_goes_on() -> None:
    """A restart waits for another process than before, and for its first answer."""
    kind = Kind(["17\n", "", "17\n", REFUSED, "23\n", "23\n"], [ApiTrouble("refused"), {"kind": "Namespace"}])

    kind.restart("apiserver")

    looked, killed = f"docker exec {NODE} pgrep -x kube-apiserver", f"docker exec {NODE} pkill -TERM -x kube-apiserver"
    assert kind.commands == [looked, killed, *[looked] * 4]
    assert kind.objects == []


def test_a_new_clusters_gateway_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases begin once the Gateway is programmed; one that never is ends the run with a reason."""
    waiting = {"status": {"conditions": [{"type": "Programmed", "status": "False"}]}}
    ready = {"status": {"conditions": [{"type": "Programmed", "status": "True"}]}}
    kind = Kind([], [{}, waiting, ready])

    make_gateway(kind)

    assert kind.objects == []
    monkeypatch.setattr(target, "GATEWAY_SECONDS", 0.0)
    with pytest.raises(TimeoutError, match="the Gateway is programmed"):
        make_gateway(Kind([], [waiting]))
