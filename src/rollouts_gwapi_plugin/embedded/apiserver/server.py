"""`ApiServer`: an API server to start, to talk to over HTTP, and to change and watch from a test.

The methods `create`, `read`, `update`, … act as a foreign user with all rights: they go the same way as requests, but
not over HTTP, so they are neither in the request log nor subject to faults and denials.
"""

import base64
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from rollouts_gwapi_plugin.embedded.apiserver.access import ANY, Access, Denial
from rollouts_gwapi_plugin.embedded.apiserver.api import Api
from rollouts_gwapi_plugin.embedded.apiserver.builtin import CORE, STAND_INS
from rollouts_gwapi_plugin.embedded.apiserver.certificate import make_certificate
from rollouts_gwapi_plugin.embedded.apiserver.faults import Faults
from rollouts_gwapi_plugin.embedded.apiserver.http import ApiHttpServer
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Registry
from rollouts_gwapi_plugin.embedded.apiserver.operations import Operations
from rollouts_gwapi_plugin.embedded.apiserver.patch import merge
from rollouts_gwapi_plugin.embedded.apiserver.rbac import Rbac
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request, RequestLog
from rollouts_gwapi_plugin.embedded.apiserver.selectors import label_selector
from rollouts_gwapi_plugin.embedded.apiserver.status import bad_request
from rollouts_gwapi_plugin.embedded.apiserver.store import Change, Store
from rollouts_gwapi_plugin.embedded.apiserver.targets import Options, Target
from rollouts_gwapi_plugin.model.base import JsonObject

# Whom the direct calls are made by, where a test names nobody.
FOREIGN_MANAGER = "foreign-user"


class ApiServer:
    """A Kubernetes API server in this process, on 127.0.0.1.

    Args:
        crds: CustomResourceDefinitions to install; those of a group replace the built-in stand-ins of that group.
        tls: serve HTTPS, with a certificate made for the run (it is in the kubeconfig).
        port: 0 takes a free one.
        rbac: let the Roles and bindings in the API decide; else all is allowed that `deny` does not deny.
        require_token: answer 401 without a token; else such requests are the default service account's.
        strict_namespaces: refuse objects in namespaces that were not created.
        absent_groups: API groups whose built-in stand-ins are not served.
    """

    def __init__(  # noqa: PLR0913 - one keyword a switch
        self,
        *,
        crds: Iterable[JsonObject] = (),
        tls: bool = False,
        port: int = 0,
        rbac: bool = False,
        require_token: bool = False,
        strict_namespaces: bool = False,
        absent_groups: Iterable[str] = (),
    ) -> None:
        self.registry = Registry(CORE, STAND_INS)
        for group in absent_groups:
            self.registry.withdraw_defaults(group)
        self.store = Store()
        self.operations = Operations(self.registry, self.store, strict_namespaces=strict_namespaces)
        self.access = Access(Rbac(self.store) if rbac else None, require_token=require_token)
        self.requests = RequestLog()
        self.faults = Faults()
        self.hook_errors: list[BaseException] = []
        self._stop = threading.Event()
        self._api = Api(self.operations, self.access, self._stop)
        self._certificate = make_certificate() if tls else None
        context = self._certificate.context if self._certificate else None
        self._http = ApiHttpServer(self._api, self.requests, self.faults, port=port, tls=context)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="apiserver", daemon=True)
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for definition in crds:
            self.create(definition)

    # Life

    def start(self) -> Self:
        """Serve in the background."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End all connections and the server; raise what a hook raised."""
        self._stop.set()
        self.faults.stop()
        with self.store.condition:
            self.store.condition.notify_all()
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()
        self._http.close_connections()
        if self.hook_errors:
            raise self.hook_errors[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'https' if self._certificate else 'http'}://127.0.0.1:{self._http.server_address[1]}"

    def kubeconfig(self, *, user: str = "", token: str = "") -> JsonObject:
        """Make a kubeconfig for the default service account, for another user, or with a given token."""
        cluster: JsonObject = {"server": self.url}
        if self._certificate:
            cluster["certificate-authority-data"] = base64.b64encode(self._certificate.pem.encode()).decode()
        token = token or (self.access.add_token(user) if user else self.access.default_token)
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": cluster}],
            "users": [{"name": "embedded", "user": {"token": token}}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
            "current-context": "embedded",
        }

    def write_kubeconfig(self, path: Path, *, user: str = "", token: str = "") -> Path:
        """Write a kubeconfig for the owner of the file only."""
        path.touch(mode=0o600)
        # A file that was there has kept its mode so far.
        path.chmod(0o600)
        path.write_text(yaml.safe_dump(self.kubeconfig(user=user, token=token)), encoding="utf-8")
        return path

    @property
    def certificate_pem(self) -> str:
        """The certificate that clients have to trust; empty without TLS."""
        return self._certificate.pem if self._certificate else ""

    # The API as a foreign user

    def create(self, value: JsonObject, *, manager: str = FOREIGN_MANAGER) -> JsonObject:
        """Create an object; the namespace defaults to `default`."""
        target = self._target_of(value)
        return self.operations.create(replace(target, name=""), duplicate(value), Options(manager, validation="Ignore"))

    def load(self, documents: Iterable[JsonObject], *, manager: str = FOREIGN_MANAGER) -> list[JsonObject]:
        """Create or replace several, in their order; lists and empty documents are taken too."""
        results = []
        for value in documents:
            if not value:
                continue
            if value.get("kind", "").endswith("List") and "items" in value:
                results += self.load(value["items"], manager=manager)
                continue
            with self.store.condition:
                target = self._target_of(value)
                exists = self.store.get(target.kind.key, target.place) is not None
                results.append(self.update(value, manager=manager) if exists else self.create(value, manager=manager))
        return results

    def read(self, kind: str, namespace: str, name: str, *, version: str = "") -> JsonObject:
        """Read an object; `kind` is a kind, plural or short name, with `.group` where that is not plain."""
        target = self._target(kind, namespace, name, version)
        return self.operations.at_version(self.operations.get(target), target)

    def find(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """Read an object, or return None where there is none."""
        target = self._target(kind, namespace, name)
        stored = self.store.get(target.kind.key, target.place)
        return self.operations.at_version(stored, target) if stored else None

    def list(self, kind: str, namespace: str = "", *, labels: str = "") -> list[JsonObject]:
        """Read all objects of a kind, in all namespaces or in one."""
        target = self._target(kind, namespace, "")
        rows, _ = self.operations.list(replace(target, namespace=namespace), label_selector(labels))
        return [self.operations.at_version(row, target) for row in rows]

    def update(self, value: JsonObject, *, manager: str = FOREIGN_MANAGER) -> JsonObject:
        """Replace an object; without a resourceVersion, whatever is there is replaced."""
        return self._update(value, "", manager)

    def update_status(self, value: JsonObject, *, manager: str = FOREIGN_MANAGER) -> JsonObject:
        """Replace an object's status, as a gateway's controller does."""
        return self._update(value, "status", manager)

    def edit(
        self,
        kind: str,
        namespace: str,
        name: str,
        change: Callable[[JsonObject], Any],
        *,
        manager: str = FOREIGN_MANAGER,
    ) -> JsonObject:
        """Read, change in place (or return another) and replace, with nobody in between."""
        with self.store.condition:
            value = self.read(kind, namespace, name)
            return self.update(change(value) or value, manager=manager)

    def apply(self, value: JsonObject, *, manager: str = FOREIGN_MANAGER, force: bool = False) -> JsonObject:
        """Apply server-side, as GitOps tools do; 409 where another manager owns a field, unless forced."""
        options = Options(manager, validation="Ignore", force=force)
        return self.operations.apply(self._target_of(value), duplicate(value), options)

    def patch(self, kind: str, namespace: str, name: str, change: JsonObject) -> JsonObject:
        """Apply a merge patch."""
        target = self._target(kind, namespace, name)
        options = Options(FOREIGN_MANAGER, validation="Ignore")
        return self.operations.patch(target, lambda value: merge(value, change), options)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object."""
        self.operations.delete(self._target(kind, namespace, name), {})

    # Control

    def deny(self, verb: str, resource: str, namespace: str = ANY, name: str = ANY) -> Denial:
        """Answer 403 to such requests over HTTP; `lift()`, or the end of a `with`, ends it."""
        return self.access.deny(verb, resource, namespace, name)

    def before_write(self, hook: Callable[[Request], object]) -> None:
        """Call a hook when a write has arrived over HTTP and before it is looked at: the place for foreign writes."""
        self._api.before_write.append(self._guarded(hook))

    def after_write(self, hook: Callable[[Change], object]) -> None:
        """Call a hook after each committed write, in their order and before any other write.

        It runs under the store's lock: it may read by this object, but must not wait for a request.
        """
        self.store.observers.append(self._guarded(hook))

    def _guarded(self, hook: Callable[[Any], object]) -> Callable[[Any], None]:
        """Keep an error of a hook for the test, which gets it from `stop`; the client must not see it."""

        def run(argument: Any) -> None:
            try:
                hook(argument)
            except BaseException as error:  # noqa: BLE001 - raised again by stop
                self.hook_errors.append(error)

        return run

    def _update(self, value: JsonObject, subresource: str, manager: str) -> JsonObject:
        target = replace(self._target_of(value), subresource=subresource)
        value = duplicate(value)
        with self.store.condition:
            if not value["metadata"].get("resourceVersion"):
                value["metadata"]["resourceVersion"] = self.operations.get(target).value["metadata"]["resourceVersion"]
            return self.operations.update(target, value, Options(manager, validation="Ignore"))

    def _target(self, kind: str, namespace: str, name: str, version: str = "") -> Target:
        row = self.registry.named(kind)
        served = row.version(version or row.preferred) if row else None
        if row is None or served is None:
            raise bad_request(f"no kind {kind!r} is served at version {version or 'any'}")
        return Target(row, served, namespace if row.namespaced else "", name)

    def _target_of(self, value: Mapping[str, Any]) -> Target:
        found = self.registry.of_object(str(value.get("apiVersion")), str(value.get("kind")))
        if found is None:
            raise bad_request(f"no kind {value.get('kind')!r} is served at {value.get('apiVersion')!r}")
        kind, version = found
        metadata = value.get("metadata") or {}
        namespace = metadata.get("namespace", "default") if kind.namespaced else ""
        return Target(kind, version, namespace, metadata.get("name", ""))
