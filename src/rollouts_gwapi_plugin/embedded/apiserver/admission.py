"""From a request's body to an object that may be stored: checks, pruning, defaults, validation.

`admit` is what every write goes through, by whatever verb it came; it changes the object that it is given and raises
`StatusError` where the real API server refuses it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver import metadata as meta
from rollouts_gwapi_plugin.embedded.apiserver.definitions import check_definition, set_status
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Kind, Version
from rollouts_gwapi_plugin.embedded.apiserver.schema import fill_defaults, prune
from rollouts_gwapi_plugin.embedded.apiserver.status import Cause, bad_request, invalid
from rollouts_gwapi_plugin.model.base import JsonObject

# The API server's limit for the data of one ConfigMap or Secret.
MAX_DATA = 1024 * 1024


@dataclass(frozen=True)
class Target:
    """What a request is about."""

    kind: Kind
    version: Version
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Where the store has it."""
        return self.namespace, self.name

    @property
    def api_version(self) -> str:
        """The apiVersion of the objects in the request and in its answer."""
        return self.kind.api_version(self.version.name)


@dataclass(frozen=True)
class Options:
    """How a write is to be done; `validation` is the request's fieldValidation."""

    manager: str = "unknown"
    dry_run: bool = False
    validation: str = "Warn"
    force: bool = False
    warnings: list[str] = field(default_factory=list, compare=False)


def check_shape(body: Any, target: Target) -> JsonObject:
    """Check that a body is an object of the target's kind, for the target's namespace."""
    if not isinstance(body, dict):
        raise bad_request(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {_json_type(body)} into "
            'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
            '"json:\\"kind,omitempty\\"" }'
        )
    for key in ("apiVersion", "kind"):
        if not target.kind.custom and key not in body:
            body[key] = target.api_version if key == "apiVersion" else target.kind.kind
    if not body.get("kind"):
        raise bad_request(f"Object 'Kind' is missing in '{_compact(body)}'")
    if body.get("apiVersion") != target.api_version or body.get("kind") != target.kind.kind:
        raise _wrong_kind(body, target)
    metadata = body.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise bad_request("metadata: must be an object")
    namespace = metadata.setdefault("namespace", target.namespace) if target.namespace else ""
    if namespace != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return body


def admit(value: JsonObject, target: Target, options: Options) -> None:
    """Prune, fill in defaults and report what was dropped, as the request asks."""
    unknown = meta.drop_unknown(value["metadata"])
    if target.version.schema is not None:
        unknown += prune(value, target.version.schema)
    _report_unknown(unknown, options)
    if target.version.schema is not None:
        fill_defaults(value, target.version.schema)
    fill = _CORE_DEFAULTS.get(target.kind.kind) if not target.kind.custom else None
    if fill:
        fill(value)


def validate(value: JsonObject, target: Target) -> None:
    """Raise where the object breaks rules of its kind."""
    causes = meta.check(value["metadata"], target.kind.kind)
    if not target.kind.custom:
        causes += _core_causes(value, target.kind)
    if causes:
        raise invalid(target.kind, value["metadata"].get("name", ""), causes)


def _report_unknown(unknown: list[str], options: Options) -> None:
    if not unknown or options.validation == "Ignore":
        return
    texts = [f'unknown field "{path}"' for path in unknown]
    if options.validation == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(texts)}")
    options.warnings.extend(texts)


def _wrong_kind(body: JsonObject, target: Target) -> Exception:
    given, kind = body.get("apiVersion", ""), body.get("kind", "")
    if given != target.api_version:
        return bad_request(
            f"the API version in the data ({given}) does not match the expected API version ({target.api_version})"
        )
    return bad_request(
        f'{kind} in version "{target.version.name}" cannot be handled as a {target.kind.kind}: '
        f"converting ({given}, Kind={kind}) to ({target.api_version}, Kind={target.kind.kind})"
    )


def _core_causes(value: JsonObject, kind: Kind) -> list[Cause]:
    if kind.kind == "CustomResourceDefinition":
        return check_definition(value)
    if kind.kind in {"ConfigMap", "Secret"}:
        size = sum(len(entry) for key in ("data", "binaryData") for entry in (value.get(key) or {}).values())
        if size > MAX_DATA:
            text = f"Too long: may not be more than {MAX_DATA} bytes"
            return [Cause("FieldValueTooLong", text, "" if kind.kind == "ConfigMap" else "data")]
    return []


def _fill_service(value: JsonObject) -> None:
    for port in value.get("spec", {}).get("ports") or ():
        port.setdefault("targetPort", port.get("port"))


def _fill_namespace(value: JsonObject) -> None:
    value.setdefault("spec", {"finalizers": ["kubernetes"]})
    value.setdefault("status", {"phase": "Active"})
    value["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = value["metadata"].get("name", "")


def _fill_secret(value: JsonObject) -> None:
    value.setdefault("type", "Opaque")


_CORE_DEFAULTS: dict[str, Callable[[JsonObject], None]] = {
    "CustomResourceDefinition": set_status,
    "Namespace": _fill_namespace,
    "Secret": _fill_secret,
    "Service": _fill_service,
}


def _json_type(value: Any) -> str:
    names = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return names.get(type(value), "null")


def _compact(body: JsonObject) -> str:
    from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import encode  # noqa: PLC0415

    return encode(body).decode()
