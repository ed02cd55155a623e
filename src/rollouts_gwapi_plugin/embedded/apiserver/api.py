"""One request to one answer: routing, access, media types, verbs. Knows no sockets."""

import json
import threading
from collections.abc import Callable
from typing import Any

import yaml

from rollouts_gwapi_plugin.embedded.apiserver import patch as patches
from rollouts_gwapi_plugin.embedded.apiserver.access import Access
from rollouts_gwapi_plugin.embedded.apiserver.admission import Options, Target
from rollouts_gwapi_plugin.embedded.apiserver.answers import Answer, error_answer, json_answer, plain_answer
from rollouts_gwapi_plugin.embedded.apiserver.discovery import discovery_page
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import encode
from rollouts_gwapi_plugin.embedded.apiserver.operations import Operations
from rollouts_gwapi_plugin.embedded.apiserver.paths import ResourcePath, parse_path, verb_of
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.embedded.apiserver.selectors import Predicate, field_selector, label_selector
from rollouts_gwapi_plugin.embedded.apiserver.status import (
    PageNotFoundError,
    StatusError,
    bad_request,
    method_not_allowed,
    no_such_resource,
    unsupported_media_type,
)
from rollouts_gwapi_plugin.embedded.apiserver.store import Stored
from rollouts_gwapi_plugin.embedded.apiserver.watch import DEFAULT_SECONDS, Watch, WatchRequest

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_YAML = frozenset({"application/yaml", APPLY_PATCH})


class Api:
    """See the module's text; `before_write` hooks run before a write is looked at, without any lock."""

    def __init__(self, operations: Operations, access: Access, stop: threading.Event) -> None:
        self._operations = operations
        self._access = access
        self._stop = stop
        self.before_write: list[Callable[[Request], None]] = []

    def identify(self, request: Request) -> ResourcePath | None:
        """Fill in what the request is about, as far as its path tells."""
        path = parse_path(request.path)
        if path is not None:
            request.verb = verb_of(request.method, path, request.query)
            request.group, request.version, request.plural = path.group, path.version, path.plural
            request.namespace, request.name, request.subresource = path.namespace, path.name, path.subresource
            if (path.group, path.plural) == ("", "namespaces"):
                request.namespace = path.name
        return path

    def answer(self, request: Request, path: ResourcePath | None) -> Answer:
        """Do what is asked."""
        try:
            user = self._access.authenticate(request.headers.get("authorization", ""))
            request.user = user.name
            page = discovery_page(self._operations.registry, request.path) if request.method == "GET" else None
            if page is not None:
                return page
            if path is None:
                return plain_answer(404, "404 page not found\n")
            self._access.authorize(user, request)
            return self._resource(request, self._target(path))
        except StatusError as error:
            return error_answer(error)
        except PageNotFoundError:
            return plain_answer(404, "404 page not found\n")

    def _target(self, path: ResourcePath) -> Target:
        kind = self._operations.registry.find(path.group, path.plural)
        version = kind.version(path.version) if kind else None
        if kind is None or version is None:
            raise no_such_resource() if not path.group else PageNotFoundError
        if path.subresource and not (path.subresource == "status" and version.status):
            raise no_such_resource()
        if path.namespace and not kind.namespaced:
            raise no_such_resource()
        return Target(kind, version, path.namespace, path.name, path.subresource)

    def _resource(self, request: Request, target: Target) -> Answer:
        verb = request.verb
        if (
            verb not in _HANDLERS
            or (verb in {"update", "patch"} and not target.name)
            or (verb == "create" and target.name)
        ):
            raise method_not_allowed()
        if request.is_write:
            for hook in self.before_write:
                hook(request)
        return _HANDLERS[verb](self, request, target)

    def _get(self, _request: Request, target: Target) -> Answer:
        stored = self._operations.get(target)
        return Answer(200, self._encoded(stored, target) + b"\n")

    def _encoded(self, stored: Stored, target: Target) -> bytes:
        found = stored.encodings.get(target.api_version)
        if found is None:
            found = encode(self._operations.at_version(stored, target))
            stored.encodings[target.api_version] = found
        return found

    def _list(self, request: Request, target: Target) -> Answer:
        rows, version = self._operations.list(target, self._selection(request, target))
        head = encode(
            {
                "apiVersion": target.api_version,
                "kind": target.kind.list_kind,
                "metadata": {"resourceVersion": str(version)},
            }
        )
        items = b",".join(self._encoded(row, target) for row in rows)
        return Answer(200, head[:-1] + b',"items":[' + items + b"]}\n")

    def _watch(self, request: Request, target: Target) -> Answer:
        query = request.query
        matches = self._selection(request, target)
        if target.name:
            matches = field_selector(f"metadata.name={target.name}", target.kind.kind, target.api_version)
        try:
            version = int(query.get("resourceVersion") or 0)
            seconds = float(query.get("timeoutSeconds") or DEFAULT_SECONDS)
        except ValueError as error:
            raise bad_request(f"Invalid value: {error}") from error
        bookmarks = query.get("allowWatchBookmarks") in {"1", "true"}
        wanted = WatchRequest(target, matches, version, seconds, bookmarks)
        watch = Watch(self._operations.store, wanted, self._operations.at_version, self._stop)
        return Answer(200, stream=watch.lines())

    def _create(self, request: Request, target: Target) -> Answer:
        options = _options(request)
        value = self._operations.create(target, _body(request), options)
        return json_answer(201, value, options.warnings)

    def _update(self, request: Request, target: Target) -> Answer:
        options = _options(request)
        value = self._operations.update(target, _body(request), options)
        return json_answer(200, value, options.warnings)

    def _patch(self, request: Request, target: Target) -> Answer:
        options = _options(request)
        kind = _media_type(request)
        if kind not in {JSON_PATCH, MERGE_PATCH}:
            raise unsupported_media_type([JSON_PATCH, MERGE_PATCH, APPLY_PATCH])
        change = _body(request)
        apply = patches.apply_operations if kind == JSON_PATCH else patches.merge
        value = self._operations.patch(target, lambda before: apply(before, change), options)
        return json_answer(200, value, options.warnings)

    def _delete(self, request: Request, target: Target) -> Answer:
        asked = (_body(request) if request.raw_body else None) or {}
        dry_run = bool(asked.get("dryRun")) or request.query.get("dryRun") == "All"
        value = self._operations.delete(target, asked.get("preconditions") or {}, dry_run=dry_run)
        return json_answer(200, value)

    def _delete_collection(self, request: Request, target: Target) -> Answer:
        rows, version = self._operations.list(target, self._selection(request, target))
        for row in rows:
            metadata = row.value["metadata"]
            one = Target(target.kind, target.version, metadata.get("namespace", ""), metadata["name"])
            self._operations.delete(one, {})
        head = {"apiVersion": target.api_version, "kind": target.kind.list_kind}
        items = [self._operations.at_version(row, target) for row in rows]
        return json_answer(200, head | {"metadata": {"resourceVersion": str(version)}, "items": items})

    def _selection(self, request: Request, target: Target) -> Predicate:
        labels = label_selector(request.query.get("labelSelector", ""))
        fields = field_selector(request.query.get("fieldSelector", ""), target.kind.kind, target.api_version)
        return lambda value: labels(value) and fields(value)


_HANDLERS: dict[str, Callable[[Api, Request, Target], Answer]] = {
    "get": Api._get,  # noqa: SLF001 - the table stands beside its class
    "list": Api._list,  # noqa: SLF001 - as above
    "watch": Api._watch,  # noqa: SLF001 - as above
    "create": Api._create,  # noqa: SLF001 - as above
    "update": Api._update,  # noqa: SLF001 - as above
    "patch": Api._patch,  # noqa: SLF001 - as above
    "delete": Api._delete,  # noqa: SLF001 - as above
    "deletecollection": Api._delete_collection,  # noqa: SLF001 - as above
}


def _options(request: Request) -> Options:
    query = request.query
    dry_run = query.get("dryRun", "")
    if dry_run not in {"", "All"}:
        raise bad_request(f'dryRun: Unsupported value: "{dry_run}": supported values: "All"')
    return Options(
        manager=request.field_manager or "unknown",
        dry_run=dry_run == "All",
        validation=query.get("fieldValidation") or "Warn",
        force=query.get("force") in {"1", "true"},
    )


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _body(request: Request) -> Any:
    kind = _media_type(request)
    if kind in _YAML:
        return yaml.safe_load(request.raw_body)
    if kind not in {"", "application/json", JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH}:
        raise unsupported_media_type(["application/json", "application/yaml"])
    try:
        return json.loads(request.raw_body)
    except ValueError as error:
        raise bad_request(f"error decoding the request body: {error}") from error
