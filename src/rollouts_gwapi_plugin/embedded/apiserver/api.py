"""One request to one answer: routing, access, media types, verbs. Knows no sockets."""

import threading
from collections.abc import Callable
from dataclasses import replace

from rollouts_gwapi_plugin.embedded.apiserver.access import Access
from rollouts_gwapi_plugin.embedded.apiserver.answers import Answer, error_answer, json_answer, plain_answer
from rollouts_gwapi_plugin.embedded.apiserver.asked import (
    APPLY_PATCH,
    body_object,
    check_accepted,
    check_place,
    delete_options,
    media_type,
    patch_function,
    selection,
    watch_request,
    write_options,
)
from rollouts_gwapi_plugin.embedded.apiserver.causes import required_value
from rollouts_gwapi_plugin.embedded.apiserver.discovery import discovery_page
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import encode
from rollouts_gwapi_plugin.embedded.apiserver.operations import Operations
from rollouts_gwapi_plugin.embedded.apiserver.pages import cut_page
from rollouts_gwapi_plugin.embedded.apiserver.paths import ResourcePath, parse_path, verb_of
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.embedded.apiserver.reviews import is_review, review
from rollouts_gwapi_plugin.embedded.apiserver.status import (
    PageNotFoundError,
    StatusError,
    bad_request,
    invalid_option,
    method_not_allowed,
    method_not_supported,
    no_such_resource,
    not_found,
)
from rollouts_gwapi_plugin.embedded.apiserver.store import Stored
from rollouts_gwapi_plugin.embedded.apiserver.targets import Options, Target
from rollouts_gwapi_plugin.embedded.apiserver.watch import Watch
from rollouts_gwapi_plugin.model.base import JsonObject


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
            answer = self._answer(request, path)
        except StatusError as error:
            answer = error_answer(error)
        except PageNotFoundError:
            answer = plain_answer(404, "404 page not found\n")
        answer.warnings = request.warnings
        return answer

    def _answer(self, request: Request, path: ResourcePath | None) -> Answer:
        user = self._access.authenticate(request.headers)
        request.user = user.name
        page = discovery_page(self._operations.registry, request.path) if request.method == "GET" else None
        if page is not None:
            return page
        if is_review(request):
            return review(self._access, user, request)
        self._access.authorize(user, request)
        check_accepted(request)
        target = self._target(path)
        request.warnings += [target.version.deprecation] if target.version.deprecation else []
        return self._resource(request, target)

    def _target(self, path: ResourcePath | None) -> Target:
        if path is None:
            raise PageNotFoundError
        kind = self._operations.registry.find(path.group, path.plural)
        version = kind.version(path.version) if kind else None
        if kind is None or version is None or (path.namespace and not kind.namespaced):
            raise no_such_resource() if not path.group else PageNotFoundError
        if path.subresource and not (path.subresource == "status" and version.status):
            raise not_found(kind, path.name) if kind.custom else no_such_resource()
        return Target(kind, version, path.namespace, path.name, path.subresource)

    def _resource(self, request: Request, target: Target) -> Answer:
        handler = _HANDLERS.get(request.verb)
        check_place(request, target)
        if handler is None:
            raise method_not_supported(target.kind, request.verb) if target.kind.custom else method_not_allowed()
        if request.is_write:
            for hook in self.before_write:
                hook(request)
        return handler(self, request, target)

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
        rows, version = self._operations.list(target, selection(request, target))
        page = cut_page(rows, request.query)
        metadata: JsonObject = {"continue": page.next_token} if page.next_token or target.kind.custom else {}
        metadata["resourceVersion"] = str(version)
        if page.remaining and not request.query.get("labelSelector") and not request.query.get("fieldSelector"):
            metadata["remainingItemCount"] = page.remaining
        head = encode({"apiVersion": target.api_version, "kind": target.kind.list_kind, "metadata": metadata})
        items = b",".join(self._item(row, target) for row in page.rows)
        return Answer(200, head[:-1] + b',"items":[' + items + b"]}\n")

    def _item(self, row: Stored, target: Target) -> bytes:
        """Encode an item of a list; those of core kinds do not repeat their kind."""
        if target.kind.custom:
            return self._encoded(row, target)
        value = self._operations.at_version(row, target)
        return encode({key: entry for key, entry in value.items() if key not in {"apiVersion", "kind"}})

    def _watch(self, request: Request, target: Target) -> Answer:
        wanted = watch_request(request, target)
        watch = Watch(self._operations.store, wanted, self._operations.at_version, self._stop)
        return Answer(200, stream=watch.lines())

    def _create(self, request: Request, target: Target) -> Answer:
        options = write_options(request)
        value = self._operations.create(replace(target, name=""), body_object(request, target), options)
        return json_answer(201, value)

    def _update(self, request: Request, target: Target) -> Answer:
        options = write_options(request)
        value = self._operations.update(target, body_object(request, target), options)
        return json_answer(200, value)

    def _patch(self, request: Request, target: Target) -> Answer:
        options = write_options(request)
        if media_type(request) == APPLY_PATCH:
            return self._apply(request, target, options)
        change = patch_function(request, target)
        if not target.name:
            raise bad_request("name must be provided")
        value = self._operations.patch(target, change, options)
        return json_answer(200, value)

    def _apply(self, request: Request, target: Target, options: Options) -> Answer:
        if not request.query.get("fieldManager"):
            raise invalid_option("patch", required_value(("fieldManager",), "is required for apply patch"))
        existed = self._operations.store.get(target.kind.key, target.place) is not None
        value = self._operations.apply(target, body_object(request, target), options)
        return json_answer(200 if existed else 201, value)

    def _delete(self, request: Request, target: Target) -> Answer:
        asked = delete_options(request)
        dry_run = bool(asked.get("dryRun")) or request.query.get("dryRun") == "All"
        value = self._operations.delete(target, asked.get("preconditions") or {}, dry_run=dry_run)
        return json_answer(200, value)

    def _delete_collection(self, request: Request, target: Target) -> Answer:
        rows, version = self._operations.list(target, selection(request, target))
        for row in rows:
            metadata = row.value["metadata"]
            one = Target(target.kind, target.version, metadata.get("namespace", ""), metadata["name"])
            self._operations.delete(one, {})
        metadata = {"continue": ""} if target.kind.custom else {}
        head = {"apiVersion": target.api_version, "kind": target.kind.list_kind}
        items = [self._operations.at_version(row, target) for row in rows]
        return json_answer(200, head | {"metadata": metadata | {"resourceVersion": str(version)}, "items": items})


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
