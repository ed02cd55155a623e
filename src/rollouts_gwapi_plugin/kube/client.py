"""The API client: five verbs on raw dicts, thread-safe, one deadline a call (decision D27).

Takes a `ClusterConfig` and gives back objects as the API server has them, unknown fields and nulls kept. Every error is
a `KubeError` whose text names verb, kind, namespace and name. Retries are `kube.call`'s, meanings of status codes
`kube.answers`'s, bytes `kube.connection`'s; this module only says which request a verb is.
"""

import json
from urllib.parse import quote, urlencode

from rollouts_gwapi_plugin import __version__
from rollouts_gwapi_plugin.errors import Invalid, Unavailable
from rollouts_gwapi_plugin.kube.answers import Answer, Operation
from rollouts_gwapi_plugin.kube.auth import ClusterConfig
from rollouts_gwapi_plugin.kube.call import Call, Line, OnRequest, ignore_request
from rollouts_gwapi_plugin.kube.connection import Connections
from rollouts_gwapi_plugin.kube.deadline import REAL_TIME, Deadline, Timing
from rollouts_gwapi_plugin.kube.limiter import Limiter
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ResourceType
from rollouts_gwapi_plugin.model.settings import DEFAULT_BURST, DEFAULT_QPS

FIELD_MANAGER = "rollouts-gwapi-plugin"
USER_AGENT = f"rollouts-gwapi-plugin/{__version__}"
_METHODS = {"get": "GET", "list": "GET", "update": "PUT", "create": "POST", "delete": "DELETE"}


class KubeClient:
    """A client of one API server; use one for the whole process."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        qps: float = DEFAULT_QPS,
        burst: int = DEFAULT_BURST,
        user_agent: str = USER_AGENT,
        on_request: OnRequest = ignore_request,
        timing: Timing = REAL_TIME,
    ) -> None:
        self.config = config
        self._user_agent = user_agent
        self._connections = Connections(config)
        self._limiter = Limiter(qps, burst, timing=timing)
        self._timing = timing
        self._on_request = on_request

    def get(self, resource: ResourceType, namespace: str, name: str, *, deadline: Deadline) -> JsonObject:
        """Return the object.

        Raises:
            KubeError: NotFound, Forbidden, Unavailable; the same for the other verbs.
        """
        return self._run(Operation("get", resource, namespace, name), deadline=deadline)

    def list(
        self, resource: ResourceType, namespace: str, *, label_selector: str = "", deadline: Deadline
    ) -> list[JsonObject]:
        """Return the objects of a namespace that the selector takes; each says its kind, as a single read does."""
        query = {"labelSelector": label_selector} if label_selector else {}
        operation = Operation("list", resource, namespace)
        items = self._run(operation, query=query, deadline=deadline).get("items") or []
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise Unavailable(
                f"{operation}: the answer's items are not a list of objects, so it is not the API server's"
            )
        named = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [{**named, **item} for item in items]

    def put(self, resource: ResourceType, obj: JsonObject, *, dry_run: bool = False, deadline: Deadline) -> JsonObject:
        """Write the whole object under the resourceVersion in it, and return what the API server made of it.

        Raises:
            Conflict: The object is at another version by now.
            Invalid: The API server refuses the object, or it carries no resourceVersion.
        """
        metadata = obj.get("metadata", {})
        operation = Operation("update", resource, metadata.get("namespace", ""), metadata.get("name", ""))
        if not metadata.get("resourceVersion"):
            # Without it the API server overwrites whatever is there, and a second try could undo a foreign write.
            raise Invalid(f"{operation}: not sent, since the object has no metadata.resourceVersion")
        query = {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if dry_run else {})}
        return self._run(operation, query=query, body=obj, deadline=deadline)

    def post(self, resource: ResourceType, namespace: str, obj: JsonObject, *, deadline: Deadline) -> JsonObject:
        """Create the object under the name in it, and return what the API server made of it.

        Raises:
            AlreadyExists: There is one of that name.
            Invalid: The API server refuses the object, or it has no name.
        """
        name = obj.get("metadata", {}).get("name", "")
        operation = Operation("create", resource, namespace, name)
        if not name:
            # A generated name would be another one on a second try.
            raise Invalid(f"{operation}: not sent, since the object has no metadata.name")
        return self._run(operation, query={"fieldManager": FIELD_MANAGER}, body=obj, deadline=deadline)

    def delete(
        self, resource: ResourceType, namespace: str, name: str, *, deadline: Deadline, resource_version: str = ""
    ) -> None:
        """Delete the object, only at the given version where one is given.

        Raises:
            NotFound: It was not there (but not after a lost answer: then it is taken for deleted).
            Conflict: It is at another version.
        """
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if resource_version:
            options["preconditions"] = {"resourceVersion": resource_version}
        self._run(Operation("delete", resource, namespace, name), body=options, deadline=deadline)

    def raw_get(self, path: str, *, deadline: Deadline) -> JsonObject:
        """Return the JSON object at a path such as `/apis/gateway.networking.k8s.io/v1`."""
        return self._run(Operation("get", path=path), deadline=deadline)

    def raw_post(self, path: str, obj: JsonObject, *, deadline: Deadline) -> JsonObject:
        """Send a JSON object to a path that stores nothing, such as a review of access, and return the answer."""
        return self._run(Operation("create", path=path), body=obj, deadline=deadline)

    def close(self) -> None:
        """Close the kept connections."""
        self._connections.forget()

    def _run(
        self,
        operation: Operation,
        *,
        query: dict[str, str] | None = None,
        body: JsonObject | None = None,
        deadline: Deadline,
    ) -> JsonObject:
        try:
            target = _target(operation) + (f"?{urlencode(query)}" if query else "")
        except UnicodeEncodeError as error:
            raise Invalid(f"{operation}: not sent, since half a surrogate pair can't be part of an address") from error
        # Escaped, so that text with lone surrogates (a host's broken UTF-8) can't fail here.
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode("ascii")
        used = ""

        def send(asked: Operation, limit: Deadline) -> Answer:
            nonlocal used
            used = self.config.credentials.authorization()
            headers = self._headers(used, with_body=content is not None)
            return self._connections.exchange(
                _METHODS[asked.verb], target, headers=headers, body=content, deadline=limit
            )

        def renew() -> None:
            self.config.credentials.refused(used)
            self._connections.forget()

        line = Line(send, renew, self._limiter, self._timing, self._on_request)
        return Call(line, operation, deadline).run()

    def _headers(self, authorization: str, *, with_body: bool) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        if authorization:
            headers["Authorization"] = authorization
        if with_body:
            headers["Content-Type"] = "application/json"
        return headers


def _target(operation: Operation) -> str:
    """Return the path of a request; a name that is no path segment would ask for something else."""
    resource = operation.resource
    if resource is None:
        return operation.path
    if not operation.namespace:
        raise Invalid(f"{operation}: not sent, since no namespace is given")
    if not operation.name and operation.verb in {"get", "update", "delete"}:
        raise Invalid(f"{operation}: not sent, since no name is given")
    segments = ["namespaces", operation.namespace, resource.plural]
    if operation.name and operation.verb != "create":
        segments.append(operation.name)
    for segment in segments:
        if segment in {".", ".."} or "/" in segment or "%" in segment:
            raise Invalid(f"{operation}: not sent, since {segment!r} can't be the name of an object")
    return "/".join([resource.path, *(quote(segment, safe="") for segment in segments)])
