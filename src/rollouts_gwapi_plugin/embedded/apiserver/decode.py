"""From bytes to the object that a request is about: syntax, kind, names, and the types of metadata.

The real API server decodes into Go types and says what does not fit in Go's words; these are kept.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from rollouts_gwapi_plugin.embedded.apiserver.causes import invalid_value
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import encode
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError, bad_request, invalid_as
from rollouts_gwapi_plugin.embedded.apiserver.targets import Target
from rollouts_gwapi_plugin.model.base import JsonObject

# How much of a body that can't be read is shown.
_SHOWN = 30
_HEADER = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_TEXTS = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp")
_LISTS = (
    ("finalizers", "string", str),
    ("ownerReferences", "v1.OwnerReference", dict),
    ("managedFields", "v1.ManagedFieldsEntry", dict),
)
_NAMESPACE_MISMATCH = "the namespace of the provided object does not match the namespace sent on the request"


def decode_object(raw: bytes, target: Target, *, is_yaml: bool = False) -> JsonObject:
    """Read a body that must be an object of the target's kind."""
    try:
        value = yaml.safe_load(raw) if is_yaml else json.loads(raw)
    except (ValueError, yaml.YAMLError) as error:
        raise _unrecognized(
            f"couldn't get version/kind; json parse error: {go_error(raw, error)}", raw, target
        ) from error
    if value is None:
        value, shown = {}, "null"
    else:
        shown = encode(value).decode() if is_yaml else raw.decode(errors="replace").strip()
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {json_type(value)} into Go value of type {_HEADER}"
        raise _unrecognized(f"couldn't get version/kind; json parse error: {why}", raw, target)
    if target.kind.custom and not value.get("kind"):
        raise _unrecognized(f"Object 'Kind' is missing in '{shown}'", raw, target)
    return value


def decode_value(raw: bytes) -> Any:
    """Read a JSON patch or merge patch."""
    try:
        return json.loads(raw)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {go_error(raw, error)}") from error


def check_identity(value: JsonObject, target: Target) -> JsonObject:
    """Check kind, namespace and the types of metadata; set what the path says and the body leaves out."""
    if not target.kind.custom:
        value.setdefault("apiVersion", target.api_version)
        value.setdefault("kind", target.kind.kind)
    _check_kind(value, target)
    if value.get("metadata") is None:
        value["metadata"] = {}
    metadata = value["metadata"]
    _check_metadata(metadata, target)
    if target.kind.namespaced:
        if metadata.get("namespace") and metadata["namespace"] != target.namespace:
            raise bad_request(_NAMESPACE_MISMATCH)
        metadata["namespace"] = target.namespace
    else:
        metadata.pop("namespace", None)
    return value


def check_name(value: JsonObject, target: Target) -> None:
    """Check that an object has the name that the path says."""
    name = value["metadata"].get("name")
    if not name:
        message = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(message)
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def _check_kind(value: JsonObject, target: Target) -> None:
    given, kind = value.get("apiVersion", ""), value.get("kind", "")
    if target.kind.custom:
        if given != target.api_version:
            expected = target.api_version
            raise bad_request(
                f"the API version in the data ({given}) does not match the expected API version ({expected})"
            )
        if kind != target.kind.kind:
            cause = invalid_value(("kind",), kind, f"must be {target.kind.kind}")
            raise invalid_as(kind, target.kind.group, (value.get("metadata") or {}).get("name", ""), [cause])
    elif given != target.api_version:
        raise _unhandled(kind, given, target, f'no kind "{kind}" is registered for version "{given}"')
    elif kind != target.kind.kind:
        package = target.kind.group.partition(".")[0] or "core"
        why = f"converting (v1.{kind}) to ({package}.{target.kind.kind}): unknown conversion"
        raise _unhandled(kind, given, target, why)


def _check_metadata(metadata: Any, target: Target) -> None:
    if not isinstance(metadata, dict):
        raise _type_error(target, metadata, "value of type v1.ObjectMeta")
    for key in _TEXTS:
        if not isinstance(metadata.get(key, ""), str | None):
            raise _type_error(target, metadata[key], f"struct field ObjectMeta.{key} of type string")
    for key in ("labels", "annotations"):
        entries = metadata.get(key)
        if not isinstance(entries, dict | None):
            raise _type_error(target, entries, f"struct field ObjectMeta.{key} of type map[string]string")
        check_texts(target, entries or {}, f"ObjectMeta.{key}")
    for key, kind, item in _LISTS:
        entries = metadata.get(key)
        if not isinstance(entries, list | None):
            raise _type_error(target, entries, f"struct field ObjectMeta.{key} of type []{kind}")
        for entry in entries or ():
            if not isinstance(entry, item):
                raise _type_error(target, entry, f"struct field ObjectMeta.{key} of type {kind}")


@contextmanager
def typed(target: Target) -> Iterator[None]:
    """Refuse a core object that is not made as its kind is: the real API server can't decode it, either."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        kind = target.kind.kind
        why = f"json: cannot unmarshal into Go struct {kind}: {error}"
        raise bad_request(f'{kind} in version "{target.version.name}" cannot be handled as a {kind}: {why}') from error


def check_texts(target: Target, entries: JsonObject, field: str) -> None:
    """Check that a map has texts only."""
    for entry in entries.values():
        if not isinstance(entry, str):
            raise _type_error(target, entry, f"struct field {field} of type string")


def _type_error(target: Target, value: Any, where: str) -> StatusError:
    kind, version = target.kind.kind, target.version.name
    why = f"json: cannot unmarshal {json_type(value)} into Go {where}"
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def _unhandled(kind: str, given: str, target: Target, why: str) -> StatusError:
    version = given.rpartition("/")[2]
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {target.kind.kind}: {why}')


def _unrecognized(why: str, raw: bytes, target: Target) -> StatusError:
    message = f"the object provided is unrecognized (must be of type {target.kind.kind}): {why} ({_glimpse(raw)})"
    return bad_request(message)


def _glimpse(raw: bytes) -> str:
    if not raw:
        return "<empty>"
    cut = f"{raw[:_SHOWN].decode(errors='replace')} ..." if len(raw) > _SHOWN else raw.decode(errors="replace")
    return cut if raw.startswith(b"{") else raw[:_SHOWN].hex()


def go_error(raw: bytes, error: Exception) -> str:
    """Say what Go says about JSON that can't be read."""
    text = raw.decode(errors="replace")
    position = getattr(error, "pos", 0)
    if isinstance(error, yaml.YAMLError):
        return str(error)
    if position >= len(text.rstrip()) or re.search("Unterminated|Expecting property name", str(error)):
        return "unexpected end of JSON input"
    return f"invalid character '{text[position]}' looking for beginning of value"


def json_type(value: Any) -> str:
    """Name a value's type as Go's JSON package does."""
    names = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return names.get(type(value), "null")
