"""Which version of a kind the API server serves, and which fields it keeps (decisions D18, D23).

Both are asked with what every authenticated account may read (the role system:discovery: `/apis/<group>/<version>`,
`/openapi/v3/...`), so no permission on CRDs is needed. What was found is remembered; what was not found only for
seconds, since somebody may be installing it. A remembered version that the API server no longer serves is asked again:
`on_served` does so around a call.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rollouts_gwapi_plugin.errors import Forbidden, KindNotFound, NotFound
from rollouts_gwapi_plugin.kube.deadline import REAL_TIME, Deadline, Timing
from rollouts_gwapi_plugin.kube.schema import has, keeps, kind_schema, most_items
from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ResourceType

# A CRD that is being installed is served seconds later; until then calls must not cost a request each. For this long
# one listing also serves all kinds of the group.
LISTING_SECONDS = 10.0
# CRDs are upgraded in place, and an upgrade changes which fields are kept; the document is some 100 kB to read.
SCHEMA_SECONDS = 600.0

Result = TypeVar("Result")
_GATEWAY_API = "gateway.networking.k8s.io"

log = get_logger()


class ApiReader(Protocol):
    """What discovery needs of a client."""

    def raw_get(self, path: str, *, deadline: Deadline) -> JsonObject:
        """Return the JSON object at a path."""

    def put(self, resource: ResourceType, obj: JsonObject, *, dry_run: bool = False, deadline: Deadline) -> JsonObject:
        """Write an object, or only try to."""


@dataclass(frozen=True)
class _Listing:
    """The kinds by plural of one group and version; empty where it is not served."""

    kinds: dict[str, str]
    until: float


class Discovery:
    """What one API server serves; thread-safe."""

    def __init__(self, client: ApiReader, *, timing: Timing = REAL_TIME) -> None:
        self._client = client
        self._timing = timing
        self._lock = threading.Lock()
        self._served: dict[tuple[str, str, tuple[str, ...]], ResourceType] = {}
        self._listings: dict[tuple[str, str], _Listing] = {}
        self._kept: dict[tuple[ResourceType, str], tuple[bool, float]] = {}
        self._most: dict[tuple[ResourceType, str], tuple[int | None, float]] = {}
        # Until when a kind counts as one without a schema for us.
        self._hidden: dict[ResourceType, float] = {}

    def resource(
        self, group: str, plural: str, kind: str, versions: Sequence[str], *, deadline: Deadline
    ) -> ResourceType:
        """Return the kind at the first of the versions that the API server serves.

        Raises:
            KindNotFound: It serves none of them; the message says what to install.
        """
        key = (group, plural, tuple(versions))
        with self._lock:
            known = self._served.get(key)
        if known:
            return known
        for version in versions:
            kinds = self._listing(group, version, deadline)
            if kinds is None:
                log.warning("discovery is forbidden, so the preferred version is taken", kind=kind, version=version)
            elif kinds.get(plural) != kind:
                continue
            found = ResourceType(group, version, plural, kind)
            with self._lock:
                self._served[key] = found
            return found
        raise KindNotFound(
            f"the API server serves no {kind} ({plural}.{group}) at {', '.join(versions)}: install {_remedy(group)}",
            status=404,
        )

    def on_served(
        self,
        group: str,
        plural: str,
        kind: str,
        versions: Sequence[str],
        use: Callable[[ResourceType], Result],
        *,
        deadline: Deadline,
    ) -> Result:
        """Call `use` with the served resource; once more if that version turns out to be gone.

        Raises:
            KindNotFound: No version is served.
        """
        resource = self.resource(group, plural, kind, versions, deadline=deadline)
        try:
            return use(resource)
        except KindNotFound:
            self.forget(resource)
            again = self.resource(group, plural, kind, versions, deadline=deadline)
            if again == resource:
                raise
            log.info("the served version changed", kind=kind, before=resource.version, now=again.version)
            return use(again)

    def forget(self, resource: ResourceType) -> None:
        """Ask again for everything about a resource's group: its CRD was changed."""
        with self._lock:
            self._served = {key: value for key, value in self._served.items() if key[0] != resource.group}
            self._listings = {key: value for key, value in self._listings.items() if key[0] != resource.group}
            self._kept = {key: value for key, value in self._kept.items() if key[0].group != resource.group}
            self._most = {key: value for key, value in self._most.items() if key[0].group != resource.group}
            self._hidden = {key: value for key, value in self._hidden.items() if key.group != resource.group}

    def preserves(
        self, resource: ResourceType, path: str, *, sample: JsonObject | None = None, deadline: Deadline
    ) -> bool:
        """Return whether a write keeps the field at `path`, such as `spec.rules[].name`.

        Args:
            resource: The kind.
            path: Names joined by dots, `[]` after a list.
            sample: An object of the kind as read, with that field set: tried as a dry-run write where the API server
                shows no schema.
            deadline: Of the call.

        Raises:
            KubeError: It can't be found out.
        """
        key = (resource, path)
        with self._lock:
            kept, until = self._kept.get(key, (False, 0.0))
        if self._timing.clock() < until:
            return kept
        answer = self._from_schema(resource, path, deadline)
        if answer is None:
            answer = self._from_dry_run(resource, path, sample, deadline)
        with self._lock:
            self._kept[key] = (answer, self._timing.clock() + SCHEMA_SECONDS)
        return answer

    def most_items(self, resource: ResourceType, path: str, *, deadline: Deadline) -> int | None:
        """Return how many items the list at `path` may have, None where the API server shows no schema that says so.

        Raises:
            KubeError: It can't be asked.
        """
        key = (resource, path)
        with self._lock:
            most, until = self._most.get(key, (None, 0.0))
        if self._timing.clock() < until:
            return most
        document, schema = self._schema(resource, deadline)
        if schema is None:
            return None
        most = most_items(document, schema, path)
        with self._lock:
            self._most[key] = (most, self._timing.clock() + SCHEMA_SECONDS)
        return most

    def _listing(self, group: str, version: str, deadline: Deadline) -> dict[str, str] | None:
        """Return the kinds by plural of a version, None where we may not ask."""
        with self._lock:
            known = self._listings.get((group, version))
        if known and self._timing.clock() < known.until:
            return known.kinds
        try:
            answer = self._client.raw_get(ResourceType(group, version, "", "").path, deadline=deadline)
        except Forbidden:
            return None
        except NotFound:
            answer = {}
        resources = [item for item in answer.get("resources") or [] if isinstance(item, dict)]
        kinds = {str(item.get("name")): str(item.get("kind")) for item in resources}
        with self._lock:
            self._listings[group, version] = _Listing(kinds, self._timing.clock() + LISTING_SECONDS)
        return kinds

    def _from_schema(self, resource: ResourceType, path: str, deadline: Deadline) -> bool | None:
        document, schema = self._schema(resource, deadline)
        return None if schema is None else keeps(document, schema, path)

    def _schema(self, resource: ResourceType, deadline: Deadline) -> tuple[JsonObject, JsonObject | None]:
        """Return the document and the kind's schema in it, None where there is none for us."""
        with self._lock:
            hidden = self._timing.clock() < self._hidden.get(resource, 0.0)
        if hidden:
            return {}, None
        document: JsonObject = {}
        with suppress(Forbidden, NotFound):
            document = self._client.raw_get(f"/openapi/v3{resource.path}", deadline=deadline)
        schema = kind_schema(document, resource)
        if schema is None:
            with self._lock:
                self._hidden[resource] = self._timing.clock() + LISTING_SECONDS
        return document, schema

    def _from_dry_run(self, resource: ResourceType, path: str, sample: JsonObject | None, deadline: Deadline) -> bool:
        if sample is None or not has(sample, path):
            raise NotFound(
                f"whether {resource.kind} of {resource.api_version} keeps {path} can't be found out: the API server "
                "shows no OpenAPI v3 schema of it, and there is no object to try with",
                status=404,
            )
        return has(self._client.put(resource, sample, dry_run=True, deadline=deadline), path)


def _remedy(group: str) -> str:
    if group == _GATEWAY_API:
        return (
            "the Gateway API CRDs, https://gateway-api.sigs.k8s.io/guides/ (TCPRoute, TLSRoute and UDPRoute of older "
            "releases are in the experimental channel only)"
        )
    return f"the CRDs of {group}"
