"""The plugin with a scripted service in place of the real one: started by tests as a child process.

What a call does is written in the Rollout's annotations: `fail` raises an error of ours with that text, `crash` a bug,
`wait` waits until a file of that name exists, `print` writes to standard output. Each call is noted in the file that
STUB_CALLS names, as a line of JSON. STUB_BUILD_FAILS names a file: while it exists the service can't be built.
"""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from rollouts_gwapi_plugin import service
from rollouts_gwapi_plugin.cli.main import run
from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.settings import ServiceSettings


class StubService:
    """Notes each call and does what the Rollout's annotations say."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._noting = threading.Lock()
        self._note("build", settings=repr(settings))

    def init_plugin(self) -> None:
        """Note the call."""
        self._note("init_plugin")

    def update_hash(self, call: Any) -> None:
        """Note the call and act."""
        self._act("update_hash", call)

    def set_weight(self, call: Any) -> None:
        """Note the call and act."""
        self._act("set_weight", call)

    def verify_weight(self, call: Any) -> Any:
        """Note the call and act."""
        self._act("verify_weight", call)
        return call.desired_weight % 3

    def set_header_route(self, call: Any) -> None:
        """Note the call and act."""
        self._act("set_header_route", call)

    def set_mirror_route(self, call: Any) -> None:
        """Note the call and act."""
        self._act("set_mirror_route", call)

    def remove_managed_routes(self, call: Any) -> None:
        """Note the call and act."""
        self._act("remove_managed_routes", call)

    def type_name(self) -> str:
        """Return what must never be asked for."""
        return "Stub"

    def close(self, seconds: float) -> None:
        """Note the end."""
        self._note("close", seconds=seconds)

    def _act(self, name: str, call: Any) -> None:
        modules = [module for module in ("grpc", "google.protobuf", "cryptography") if module in sys.modules]
        self._note(name, call=call.model_dump(mode="json"), modules=modules)
        annotations = call.rollout.metadata.annotations
        if "wait" in annotations:
            pause = threading.Event()
            while not Path(annotations["wait"]).exists():
                pause.wait(0.005)
            self._note(f"{name} done")
        if "print" in annotations:
            print(annotations["print"])  # noqa: T201 - that a stray print can't reach the host is what is tested
            os.write(1, b"written to descriptor 1\n")
        if "fail" in annotations:
            raise ConfigError(annotations["fail"])
        if "crash" in annotations:
            raise ZeroDivisionError(annotations["crash"])

    def _note(self, event: str, **more: Any) -> None:
        with self._noting, Path(os.environ["STUB_CALLS"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **more}) + "\n")


def build(settings: ServiceSettings) -> StubService:
    """Stand in for `service.build`."""
    if Path(os.environ.get("STUB_BUILD_FAILS", "/nonexistent")).exists():
        raise ConfigError("no cluster is configured")
    return StubService(settings)


if __name__ == "__main__":
    service.build = build
    sys.exit(run(sys.argv[1:]))
