"""The objects of some kinds, kept current by list and watch: what a Gateway's controller sees of the API.

Takes the API server's address and the plurals to follow; calls back after every change. Each kind has a thread: it
lists, then watches from the list's resourceVersion, and lists again whenever the watch ends in an error (410 Gone, a
lost connection). A kind that is not served is left out. `ready` is set once each kind was listed.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from ssl import SSLContext
from typing import Any

import urllib3

from rollouts_gwapi_plugin.errors import Unavailable
from rollouts_gwapi_plugin.model.base import JsonObject

# Long enough to be rare, short enough that a connection that died in silence is noticed.
WATCH_SECONDS = 60
REQUEST_SECONDS = 10.0
# An API server that is down is asked again this often.
RETRY_SECONDS = 0.2
Key = tuple[str, str]


@dataclass(frozen=True)
class Served:
    """A kind at the version that is followed; `path` is the plural's, for all namespaces."""

    kind: str
    path: str

    def object_path(self, metadata: JsonObject) -> str:
        """Return the path of one object."""
        root, _, plural = self.path.rpartition("/")
        return f"{root}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"


class ApiConnection:
    """Plain requests to one API server."""

    def __init__(self, server: str, *, ssl_context: SSLContext | None = None, token: str = "") -> None:
        self.server = server.rstrip("/")
        self.headers = {"user-agent": "reference-data-plane", **({"authorization": f"Bearer {token}"} if token else {})}
        self._pool = urllib3.PoolManager(maxsize=16, ssl_context=ssl_context)

    def json(self, method: str, path: str, body: JsonObject | None = None) -> tuple[int, JsonObject]:
        """Send a request (a body as merge patch); return status and JSON."""
        headers = self.headers if body is None else {**self.headers, "content-type": "application/merge-patch+json"}
        content = None if body is None else json.dumps(body).encode()
        try:
            answer = self._pool.request(
                method, self.server + path, body=content, headers=headers, timeout=REQUEST_SECONDS, retries=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"{method} {self.server}{path}: {error}") from error
        try:
            return answer.status, answer.json()
        except ValueError as error:
            raise Unavailable(f"{method} {self.server}{path}: {answer.status} without JSON") from error

    def stream(self, path: str) -> urllib3.BaseHTTPResponse:
        """Open a watch."""
        timeout = urllib3.Timeout(connect=REQUEST_SECONDS, read=WATCH_SECONDS + REQUEST_SECONDS)
        try:
            return self._pool.request(
                "GET", self.server + path, headers=self.headers, timeout=timeout, retries=False, preload_content=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"GET {self.server}{path}: {error}") from error

    def served(self, group: str, versions: tuple[str, ...]) -> dict[str, Served]:
        """Return the kinds of a group, each at the first of the versions that has it, by plural."""
        found: dict[str, Served] = {}
        for version in versions:
            root = f"/apis/{group}/{version}" if group else f"/api/{version}"
            status, body = self.json("GET", root)
            for resource in body.get("resources", []) if status == HTTPStatus.OK else []:
                found.setdefault(resource["name"], Served(resource["kind"], f"{root}/{resource['name']}"))
        return found

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.clear()


class Follower:
    """The objects of one kind."""

    def __init__(self, connection: ApiConnection, served: Served, changed: Callable[[], None]) -> None:
        self.served = served
        self.ready = threading.Event()
        self._connection = connection
        self._changed = changed
        self._objects: dict[Key, JsonObject] = {}
        self._stopped = threading.Event()
        self._stream: urllib3.BaseHTTPResponse | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"follow-{served.kind}", daemon=True)

    def start(self) -> None:
        """Begin to list and watch."""
        self._thread.start()

    def stop(self) -> None:
        """End the watch and its thread."""
        self._stopped.set()
        with self._lock:
            stream = self._stream
        if stream is not None:
            # A stream whose answer has just ended has no socket to shut down any more.
            with suppress(ValueError):
                stream.shutdown()
        self._thread.join(REQUEST_SECONDS)

    def objects(self) -> list[JsonObject]:
        """Return the objects as last seen; they must not be changed."""
        with self._lock:
            return list(self._objects.values())

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                version = self._list()
                for event in self._events(version):
                    self._take(event)
            except (Unavailable, urllib3.exceptions.HTTPError, ValueError, OSError, AttributeError):
                # AttributeError: urllib3's reader, when `stop` shuts the stream under it.
                self._stopped.wait(RETRY_SECONDS)

    def _list(self) -> str:
        status, body = self._connection.json("GET", self.served.path)
        if status != HTTPStatus.OK:
            raise Unavailable(f"listing {self.served.path}: {status}")
        kind = {"kind": self.served.kind}
        with self._lock:
            self._objects = {_key(item): {**item, **kind} for item in body.get("items") or []}
        self.ready.set()
        self._changed()
        version: str = body["metadata"]["resourceVersion"]
        return version

    def _events(self, version: str) -> Iterator[JsonObject]:
        query = f"watch=1&resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}"
        stream = self._connection.stream(f"{self.served.path}?{query}")
        with self._lock:
            self._stream = stream
        with closing(stream):
            pending = b""
            while not self._stopped.is_set() and (part := stream.read1(65536)):
                *lines, pending = (pending + part).split(b"\n")
                yield from (json.loads(line) for line in lines if line.strip())

    def _take(self, event: JsonObject) -> None:
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            raise Unavailable(f"watch of {self.served.path}: {item.get('message')}")
        if kind == "BOOKMARK":
            return
        with self._lock:
            if kind == "DELETED":
                self._objects.pop(_key(item), None)
            else:
                self._objects[_key(item)] = {**item, "kind": self.served.kind}
        self._changed()


def _key(item: dict[str, Any]) -> Key:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]
