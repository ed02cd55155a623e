"""The stage of a simulation: the real service on an API server of this process, and what each call changes there.

A `Stage` is a plugin as the played controller uses one. Every call is noted as a `Made`: its error, what the service
had to tell, and the diff of each route. Nothing outlives its context.
"""

import contextlib
import io
import json
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rollouts_gwapi_plugin import log
from rollouts_gwapi_plugin.cli.manifests import DEFINITION, Manifest, as_new
from rollouts_gwapi_plugin.cli.printing import difference
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer, StatusError
from rollouts_gwapi_plugin.embedded.host.cluster import Call
from rollouts_gwapi_plugin.embedded.host.controller import Reply
from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.calls import Verification
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.observe.metrics import Metrics
from rollouts_gwapi_plugin.routes.kinds import KINDS
from rollouts_gwapi_plugin.service.router import TrafficRouter
from rollouts_gwapi_plugin.transport.calls import METHODS, Calls

_TAKEN: Final = frozenset({kind.kind for kind in KINDS.values()} | {"Service", "ConfigMap"})
# The API server is in this process: nothing is to be spared.
NO_LIMIT: Final = -1.0

Routes = dict[str, JsonObject]


@dataclass(frozen=True)
class Made:
    """One call and what came of it; `changes` are diffs by route."""

    call: str
    step: str
    error: str = ""
    notes: tuple[str, ...] = ()
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def tells_something(self) -> bool:
        """Whether there is anything to show of it."""
        return bool(self.error or self.notes or self.changes)


@dataclass
class Stage:
    """A context in which calls can be made; `step` is what the next calls are said to belong to."""

    manifests: Sequence[Manifest]
    plugin_name: str | None
    step: str = ""
    made: list[Made] = field(default_factory=list)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            definitions = [one.value for one in self.manifests if one.kind == DEFINITION]
            self._log = io.StringIO()
            log.configure("json", "info", self._log)
            try:
                self.api = stack.enter_context(ApiServer(crds=definitions))
            except StatusError as error:
                raise _refused(error) from error
            self.add(one.value for one in self.manifests if one.kind in _TAKEN)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rollouts-gwapi-simulate-"))
            kubeconfig = self.api.write_kubeconfig(Path(folder) / "kubeconfig")
            settings = ServiceSettings(kubeconfig=str(kubeconfig), qps=NO_LIMIT, plugin_name=self.plugin_name)
            self._calls = Calls(TrafficRouter(settings, Metrics()))
            self._seen = self.routes()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, objects: Iterable[JsonObject]) -> None:
        """Create objects, or replace those of their names.

        Raises:
            ConfigError: one can't be created.

        """
        try:
            self.api.load(as_new(value) for value in objects)
        except StatusError as error:
            raise _refused(error) from error

    def routes(self) -> Routes:
        """Return all routes as they are now."""
        return {
            f"{kind.kind} {raw['metadata']['namespace']}/{raw['metadata']['name']}": raw
            for kind in KINDS.values()
            for raw in self._listed(kind.kind)
        }

    def ping(self) -> None:
        """Be alive."""

    def call(self, call: Call) -> Reply:
        """Make a call of the controller, and note what came of it."""
        answer = self._calls.perform(METHODS[call.method], lambda: call.arguments)
        verified = answer.verified is Verification.VERIFIED if call.method == "VerifyWeight" else None
        reply = Reply(answer.error, answer.text, verified)
        if call.method == "Type":
            return reply
        before, self._seen = self._seen, self.routes()
        changes = changes_between(before, self._seen)
        self.made.append(Made(call_text(call), self.step, reply.error, tuple(self._notes()), tuple(changes)))
        return reply

    def _listed(self, kind: str) -> list[JsonObject]:
        # A kind whose group has definitions among the files, but not this one, is not served.
        with contextlib.suppress(StatusError):
            return self.api.list(kind)
        return []

    def _notes(self) -> list[str]:
        lines = self._log.getvalue().splitlines()
        self._log.seek(0)
        self._log.truncate()
        entries = [json.loads(line) for line in lines]
        return [f"{entry['@level']}: {entry['@message']}" for entry in entries if "reason" in entry]


def _refused(error: StatusError) -> ConfigError:
    return ConfigError(f"the API server refuses an object of the files: {error}")


def changes_between(before: Routes, after: Routes) -> list[tuple[str, str]]:
    """Return the diff of each route that differs."""
    diffs = [(name, difference(before.get(name, {}), value)) for name, value in after.items()]
    return [(name, diff) for name, diff in diffs if diff]


def call_text(call: Call) -> str:
    """Return a call in few words."""
    match call.method:
        case "SetWeight" | "VerifyWeight":
            shares = [f"{one['serviceName']}={one['weight']}" for one in call.arguments["additionalDestinations"]]
            return " ".join([call.method, str(call.arguments["desiredWeight"]), *shares])
        case "SetHeaderRoute" | "SetMirrorRoute":
            step = call.arguments[call.method[0].lower() + call.method[1:]]
            return f"{call.method} {step.get('name', '')}" + ("" if step.get("match") else " (no match: removed)")
    return call.method
