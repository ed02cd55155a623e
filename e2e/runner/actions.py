"""The doings of a stage, each as a user or a disaster would do it."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import yaml

from e2e.cluster.process import CommandFailed
from e2e.runner.api import Api, RouteWatch
from e2e.runner.case import Action, Case, fill
from e2e.runner.match import differences
from e2e.runner.target import Target
from e2e.waiting import until

# Until the moment of a kill comes; and how often is looked for it: the calls that it is meant for last some 10 ms.
MOMENT_SECONDS = 120.0
MOMENT_PAUSE = 0.002


@dataclass(frozen=True)
class Scene:
    """One telling of a case: where, in which namespace, with which values for `${…}`."""

    case: Case
    target: Target
    api: Api
    namespace: str
    values: dict[str, str]

    def filled(self, value: Any) -> Any:
        """Fill in `${…}`."""
        return fill(value, self.values)


def apply(scene: Scene, documents: list[dict[str, Any]]) -> None:
    """Apply manifests; those without a namespace go to the case's."""
    filled = scene.filled(documents)
    # kubectl refuses objects of another namespace than its own.
    for namespace, items in groupby(filled, lambda item: item["metadata"].get("namespace") or scene.namespace):
        arguments = ["apply", "--namespace", namespace, "--server-side", "--force-conflicts"]
        text = yaml.safe_dump_all(items)
        scene.target.run(["kubectl", *arguments, "--field-manager=e2e", "--filename=-"], text=text)


def load_manifest(case: Case, name: str) -> list[dict[str, Any]]:
    """Read a manifest's documents, with the case's patches in them."""
    documents = [document for document in yaml.safe_load_all(case.manifest(name).read_text()) if document]
    for document in documents:
        for item in case.patches:
            if (item.kind, item.name) == (document["kind"], document["metadata"]["name"]):
                merge(document, item.patch)
    return documents


def merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    """Apply a merge patch (RFC 7386)."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            merge(target[key], value)
        else:
            target[key] = value


def act(scene: Scene, action: Action) -> None:
    """Do it."""
    (kind,) = action.model_fields_set
    _DOINGS[kind](scene, action)


def _apply(scene: Scene, action: Action) -> None:
    wanted = action.apply
    apply(scene, load_manifest(scene.case, wanted) if isinstance(wanted, str) else [wanted or {}])


def _patch(scene: Scene, action: Action) -> None:
    if action.patch:
        place = scene.filled(action.patch.namespace) or scene.namespace
        scene.api.patch(action.patch.kind, place, scene.filled(action.patch.name), scene.filled(action.patch.patch))


def _delete(scene: Scene, action: Action) -> None:
    if action.delete:
        place = scene.filled(action.delete.namespace) or scene.namespace
        name = scene.filled(action.delete.name)
        scene.target.run(["kubectl", "--namespace", place, "delete", action.delete.kind, name, "--wait=true"])


def _version(scene: Scene, action: Action) -> None:
    for rollout, version in (action.version or {}).items():
        place = "/spec/template/spec/containers/0/env/0"
        operations = [
            {"op": "test", "path": f"{place}/name", "value": "VERSION"},
            {"op": "replace", "path": f"{place}/value", "value": version},
        ]
        scene.api.patch("Rollout", scene.namespace, rollout, operations)


def _rollouts(scene: Scene, action: Action) -> None:
    arguments = scene.filled(action.rollouts or "").split()
    scene.target.run(["kubectl-argo-rollouts", "--namespace", scene.namespace, *arguments])


def _reset(scene: Scene, action: Action) -> None:
    if action.reset:
        text = yaml.safe_dump_all(scene.filled(load_manifest(scene.case, action.reset.manifest)))
        server_side = ["--server-side", "--force-conflicts", "--field-manager=gitops"]
        how = server_side if action.reset.by == "server-side apply" else ["--server-side=false"]
        scene.target.run(["kubectl", "apply", "--namespace", scene.namespace, *how, "--filename=-"], text=text)


def _kill(scene: Scene, action: Action) -> None:
    scene.target.kill(action.kill or "")


def _kill_at(scene: Scene, action: Action) -> None:
    if not action.kill_at:
        return
    seen = scene.filled(action.kill_at.seen)
    kind, name = seen["kind"], seen["metadata"]["name"]
    with RouteWatch(scene.api, kind, scene.namespace, name) as watch:
        until(
            lambda: watch.states and not differences(seen, watch.states[-1][1]),
            f"the moment of the kill: {seen}",
            seconds=MOMENT_SECONDS,
            pause=MOMENT_PAUSE,
        )
        scene.target.kill(action.kill_at.what)
    late = differences(seen, scene.api.read(kind, scene.namespace, name))
    if late:
        raise CommandFailed(f"the kill came too late: {'; '.join(late)}")


def _restart(scene: Scene, action: Action) -> None:
    scene.target.restart(action.restart or "")


def _configure(scene: Scene, action: Action) -> None:
    if action.configure:
        scene.target.configure(type(action.configure).model_validate(scene.filled(action.configure.model_dump())))


_DOINGS = {
    "apply": _apply,
    "patch": _patch,
    "delete": _delete,
    "version": _version,
    "rollouts": _rollouts,
    "reset": _reset,
    "kill": _kill,
    "kill_at": _kill_at,
    "restart": _restart,
    "configure": _configure,
}
