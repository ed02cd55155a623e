"""What a request asks for, read from its query, headers and body; what can't be read is refused."""

from collections.abc import Callable
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver import patch as patches
from rollouts_gwapi_plugin.embedded.apiserver.causes import unsupported_value
from rollouts_gwapi_plugin.embedded.apiserver.decode import decode_object, decode_value, json_type
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.embedded.apiserver.selectors import Predicate, field_selector, label_selector
from rollouts_gwapi_plugin.embedded.apiserver.status import (
    PageNotFoundError,
    StatusError,
    bad_request,
    invalid_option,
    method_not_allowed,
    method_not_supported,
    no_such_resource,
    not_acceptable,
    unsupported_media_type,
)
from rollouts_gwapi_plugin.embedded.apiserver.targets import Options, Target
from rollouts_gwapi_plugin.embedded.apiserver.watch import DEFAULT_SECONDS, WatchRequest
from rollouts_gwapi_plugin.model.base import JsonObject

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_ACCEPTED = frozenset({"", "*/*", "application/*", JSON})


def media_type(request: Request) -> str:
    """Give the type of the body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_accepted(request: Request) -> None:
    """Raise 406 where the client takes no JSON."""
    accepted = request.headers.get("accept", "").split(",")
    if not any(one.partition(";")[0].strip() in _ACCEPTED for one in accepted):
        raise not_acceptable()


def check_place(request: Request, target: Target) -> None:
    """Raise where the verb does not go with the path: a name too few or too many, a list in no namespace."""
    verb, custom = request.verb, target.kind.custom
    if target.subresource and verb not in {"get", "update", "patch"}:
        raise method_not_supported(target.kind, verb) if custom else method_not_allowed()
    if target.kind.namespaced and not target.namespace and (verb not in {"list", "watch"} or target.name):
        raise PageNotFoundError if custom else no_such_resource()
    if verb == "update" and not target.name:
        raise bad_request("name must be provided") if custom else method_not_allowed()
    if not custom and ((verb == "patch" and not target.name) or (verb == "create" and target.name)):
        raise method_not_allowed()


def write_options(request: Request) -> Options:
    """Read the query of a write."""
    query = request.query
    dry_run = query.get("dryRun", "")
    if dry_run not in {"", "All"}:
        raise invalid_option(request.verb, unsupported_value(("dryRun",), [dry_run], ["All"]))
    validation = query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        raise invalid_option(request.verb, unsupported_value(("fieldValidation",), validation, list(_VALIDATIONS)))
    return Options(
        manager=request.field_manager or "unknown",
        dry_run=dry_run == "All",
        validation=validation or "Warn",
        force=query.get("force") in {"1", "true"},
        warnings=request.warnings,
    )


def body_object(request: Request, target: Target) -> JsonObject:
    """Read the body of a create, update or apply."""
    kind = media_type(request)
    if kind not in {"", JSON, YAML, APPLY_PATCH}:
        raise unsupported_media_type([JSON, YAML, PROTOBUF])
    return decode_object(request.raw_body, target, is_yaml=kind in {YAML, APPLY_PATCH})


def patch_function(request: Request, target: Target) -> Callable[[JsonObject], Any]:
    """Read the body of a patch, as a function of the object."""
    kind = media_type(request)
    if kind == STRATEGIC_PATCH and not target.kind.custom:
        change = _object(decode_value(request.raw_body))
        return lambda before: patches.merge_strategic(before, change, target.version.schema or {})
    if kind == MERGE_PATCH:
        change = _object(decode_value(request.raw_body))
        return lambda before: patches.merge(before, change)
    if kind == JSON_PATCH:
        operations = decode_value(request.raw_body)
        return lambda before: patches.apply_operations(before, operations)
    if target.kind.custom:
        raise unsupported_media_type([JSON_PATCH, MERGE_PATCH, APPLY_PATCH])
    raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def delete_options(request: Request) -> JsonObject:
    """Read the body of a delete, which may be absent."""
    asked = decode_value(request.raw_body) if request.raw_body else None
    asked = {} if asked is None else asked
    if not isinstance(asked, dict) or not isinstance(asked.get("preconditions", {}), dict | None):
        raise bad_request("the object provided is unrecognized (must be of type DeleteOptions)")
    return asked


def _object(change: Any) -> JsonObject:
    if not isinstance(change, dict):
        why = f"json: cannot unmarshal {json_type(change)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: {why}")
    return change


def selection(request: Request, target: Target) -> Predicate:
    """Read the selectors of a list or watch."""
    labels = label_selector(request.query.get("labelSelector", ""))
    fields = field_selector(request.query.get("fieldSelector", ""), target.kind)
    return lambda value: labels(value) and fields(value)


def watch_request(request: Request, target: Target) -> WatchRequest:
    """Read the query of a watch; one of a single object is one of a list that selects it."""
    query = request.query
    matches = selection(request, target)
    if target.name:
        matches = field_selector(f"metadata.name={target.name}", target.kind)
    version, seconds = query.get("resourceVersion") or "0", query.get("timeoutSeconds") or ""
    if not version.isdigit():
        why = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        raise StatusError(500, "", why)
    if seconds and not seconds.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{seconds}": invalid syntax')
    bookmarks = query.get("allowWatchBookmarks") in {"1", "true"}
    initial = query.get("sendInitialEvents") in {"1", "true"}
    return WatchRequest(target, matches, int(version), float(seconds or DEFAULT_SECONDS), bookmarks, initial)
