"""Requests of `cases/*.yaml` against an API server, and their answers made comparable.

A case is a story of requests in a namespace of its own; `answers/<case>.yaml` holds what the real kube-apiserver said
to each of them. Names that differ from run to run become placeholders in the order in which they appear, so that equal
stays equal: a write that changes nothing answers the same `VERSION-1` again.
"""

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from tests.conformance.release import CHANNEL, RELEASE

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.kube.auth import load_cluster_config

KUBECONFIG = "CONFORMANCE_KUBECONFIG"
# Measured: under a second; the rest is for a machine that is busy.
SERVED_SECONDS = 60.0
_HERE = Path(__file__).parent
_PATHS = {
    "$routes": "/apis/gateway.networking.k8s.io/v1/namespaces/$NS/httproutes",
    "$grpc": "/apis/gateway.networking.k8s.io/v1/namespaces/$NS/grpcroutes",
    "$tcp": "/apis/gateway.networking.k8s.io/v1/namespaces/$NS/tcproutes",
    "$maps": "/api/v1/namespaces/$NS/configmaps",
    "$services": "/api/v1/namespaces/$NS/services",
    "$widgets": "/apis/conformance.example.com/v1/namespaces/$NS/widgets",
}
_VOLATILE = re.compile(
    r"(?P<UID>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<VERSION>(?<=in record \()\d+)"
    r"|(?P<TIME>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)"
)


@dataclass
class Answer:
    """One answer, comparable."""

    status: int
    body: Any
    warnings: list[str] = field(default_factory=list)

    def as_document(self) -> dict[str, Any]:
        """Give what the file of answers holds."""
        document: dict[str, Any] = {"status": self.status, "body": self.body}
        return document | ({"warnings": self.warnings} if self.warnings else {})


class Teller:
    """Tells stories to one API server."""

    def __init__(self, server: str, headers: Callable[[], dict[str, str]], pool: urllib3.PoolManager) -> None:
        self._server = server
        self._headers = headers
        self._pool = pool

    def tell(self, case: dict[str, Any]) -> list[dict[str, Any]]:
        """Send a case's requests one after another and return the comparable answers."""
        namespace = f"conf-{secrets.token_hex(5)}"
        self._send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        told = _Told(namespace)
        for step in case["steps"]:
            method, path = told.filled(step["request"]).split(" ", 1)
            for short, full in _PATHS.items():
                path = path.replace(short, full.replace("$NS", namespace))
            answer = self._send(method, path, told.body(step), **told.filled(step.get("headers", {})))
            told.keep(answer, case.get("ignore", []) + step.get("ignore", []))
        self._send("DELETE", f"/api/v1/namespaces/{namespace}", None)
        return [answer.as_document() for answer in told.comparable]

    def install(self, definition: dict[str, Any]) -> None:
        """Install a CustomResourceDefinition; one that is there already stays."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        answer = self._send("POST", path, definition)
        assert answer.status in {201, 409}, answer.body

    def wait_served(self, definition: dict[str, Any]) -> None:
        """Wait until the objects of a definition can be asked for: the API server takes a moment."""
        spec = definition["spec"]
        served = [version["name"] for version in spec["versions"] if version["served"]]
        paths = [f"/apis/{spec['group']}/{version}/{spec['names']['plural']}" for version in served]
        deadline = time.monotonic() + SERVED_SECONDS
        while any(self._send("GET", path, None).status != 200 for path in paths):
            assert time.monotonic() < deadline, f"{paths} are not served after {SERVED_SECONDS} s"

    def _send(self, method: str, path: str, body: Any, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        wanted = {"Content-Type": "application/json", "User-Agent": "conformance/1"} | self._headers() | headers
        response = self._pool.request(method, self._server + path, body=data, headers=wanted)
        text = response.data.decode()
        if response.headers.get("Content-Type", "").startswith("application/json"):
            return Answer(response.status, _decoded(text, watch="watch=" in path), response.headers.getlist("Warning"))
        return Answer(response.status, text)


def _decoded(text: str, *, watch: bool) -> Any:
    if not watch:
        return json.loads(text)
    try:
        return json.loads(text) if text else []
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


class _Told:
    """What was answered so far."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.raw: list[Any] = []
        self.comparable: list[Answer] = []
        self._seen: dict[str, dict[str, str]] = {}

    def filled(self, value: Any) -> Any:
        """Put the namespace, and fields of earlier answers (`$2.metadata.uid`), in their places."""
        if isinstance(value, dict):
            return {key: self.filled(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self.filled(entry) for entry in value]
        if isinstance(value, str):
            value = re.sub(r"\$(\d+)((?:\.\w+)+)", self._earlier, value)
            return value.replace("$NS", self.namespace)
        return value

    def _earlier(self, found: re.Match[str]) -> str:
        value = self.raw[int(found[1])]
        for step in found[2].strip(".").split("."):
            value = value[step]
        return str(value)

    def body(self, step: dict[str, Any]) -> Any:
        """Build the body of a step: given, raw text, or an earlier answer with a merge patch applied."""
        if "raw" in step:
            return str(self.filled(step["raw"])).encode()
        if "from" in step:
            return _merge(self.raw[step["from"]], self.filled(step.get("change", {})))
        return self.filled(step.get("body"))

    def keep(self, answer: Answer, ignored: list[str]) -> None:
        """Keep an answer, once as it is and once comparable."""
        self.raw.append(answer.body)
        body = _without(_unordered(answer.body), ignored)
        self.comparable.append(Answer(answer.status, self._tokens(body), self._tokens(answer.warnings)))

    def _tokens(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._tokens(entry, name) for name, entry in value.items()}
        if isinstance(value, list):
            # Their order is that of their times, which a run may spread over a second or not.
            entries = sorted(value, key=_owner) if key == "managedFields" else value
            return [self._tokens(entry) for entry in entries]
        if not isinstance(value, str):
            return value
        if key == "resourceVersion" and value:
            return self._token("VERSION", value)
        value = value.replace(self.namespace, "NAMESPACE")
        return _VOLATILE.sub(lambda found: self._token(found.lastgroup or "", found[0]), value)

    def _token(self, kind: str, value: str) -> str:
        if kind == "TIME":
            return kind
        known = self._seen.setdefault(kind, {})
        return known.setdefault(value, f"{kind}-{len(known) + 1}")


def _owner(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get(key, "") for key in ("manager", "operation", "subresource", "apiVersion"))


def _unordered(value: Any) -> Any:
    """Put the causes of a refusal in order: the real API server finds them in the order of a Go map."""
    causes = value.get("details", {}).get("causes") if isinstance(value, dict) and value.get("code") else None
    if not causes or len(causes) == 1:
        return value
    unique = {json.dumps(cause, sort_keys=True): cause for cause in causes}
    details = value["details"] | {"causes": [unique[key] for key in sorted(unique)]}
    message = re.sub(r" is invalid: \[.*\]$", " is invalid: [...]", value["message"])
    return value | {"details": details, "message": message}


def _without(value: Any, ignored: list[str]) -> Any:
    for path in ignored:
        first, _, rest = path.partition(".")
        if first == "*" and isinstance(value, list):
            value = [_without(entry, [rest]) for entry in value]
        elif isinstance(value, dict) and first in value:
            value = dict(value)
            if rest:
                value[first] = _without(value[first], [rest])
            else:
                del value[first]
    return value


def _merge(value: Any, change: Any) -> Any:
    if not isinstance(change, dict):
        return change
    merged = dict(value) if isinstance(value, dict) else {}
    for key, entry in change.items():
        if entry is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), entry)
    return merged


@pytest.fixture(scope="session")
def definitions(gateway_api_crds: Any) -> list[dict[str, Any]]:
    """Load the definitions that the stories are about."""
    widgets = yaml.safe_load((_HERE / "widgets.yaml").read_text(encoding="utf-8"))
    return [*gateway_api_crds(RELEASE, CHANNEL), widgets]


@pytest.fixture(scope="session")
def teller(definitions: list[dict[str, Any]]) -> Iterator[Teller]:
    """Give a teller for the server of CONFORMANCE_KUBECONFIG, else for an embedded one."""
    kubeconfig = os.environ.get(KUBECONFIG)
    if not kubeconfig:
        with ApiServer(crds=definitions, strict_namespaces=True, rbac=True) as server:
            admin = {"Authorization": f"Bearer {server.access.admin_token}"}
            with urllib3.PoolManager(retries=False) as pool:
                yield Teller(server.url, lambda: admin, pool)
        return
    config = load_cluster_config(kubeconfig)
    with urllib3.PoolManager(retries=False, ssl_context=config.ssl_context) as pool:
        real = Teller(config.server, lambda: {"Authorization": config.credentials.authorization()}, pool)
        for definition in definitions:
            real.install(definition)
        for definition in definitions:
            real.wait_served(definition)
        yield real


@pytest.fixture(scope="session")
def record() -> bool:
    """Tell whether answers are to be recorded; only those of a real API server are worth it."""
    wanted = bool(os.environ.get("CONFORMANCE_RECORD"))
    assert not wanted or os.environ.get(KUBECONFIG), f"recording needs {KUBECONFIG}"
    return wanted
