"""What is special about single core kinds: defaults, and rules beyond a schema."""

import itertools
import re
from collections.abc import Callable

from rollouts_gwapi_plugin.embedded.apiserver import causes
from rollouts_gwapi_plugin.embedded.apiserver.causes import Cause
from rollouts_gwapi_plugin.embedded.apiserver.decode import check_texts
from rollouts_gwapi_plugin.embedded.apiserver.definitions import check_definition, set_status
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import same
from rollouts_gwapi_plugin.embedded.apiserver.targets import Target
from rollouts_gwapi_plugin.model.base import JsonObject

# The API server's limit for the data of one ConfigMap or Secret.
MAX_DATA = 1024 * 1024
_KEY = r"[-._a-zA-Z0-9]+"
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{_KEY}')"
)
_addresses = itertools.count(1)


def fill_core_defaults(value: JsonObject, target: Target) -> None:
    """Set what the API server sets in objects of this kind."""
    if target.kind.kind in {"ConfigMap", "Secret"}:
        check_texts(target, value.get("data") or {}, f"{target.kind.kind}.data")
        for field in ("data", "binaryData"):
            if not value.get(field):
                value.pop(field, None)
    fill = _DEFAULTS.get(target.kind.kind)
    if fill:
        fill(value)


def check_core(value: JsonObject, target: Target, before: JsonObject | None) -> list[Cause]:
    """Find what breaks the rules of this kind."""
    check = _CHECKS.get(target.kind.kind)
    return check(value, before) if check else []


def _fill_service(value: JsonObject) -> None:
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return
    for port in spec.get("ports") or ():
        port.setdefault("targetPort", port.get("port"))
    if spec.get("type") != "ExternalName" and not spec.get("clusterIP"):
        number = next(_addresses)
        spec["clusterIP"] = f"10.96.{number // 250 % 250}.{number % 250 + 1}"
        spec["clusterIPs"] = [spec["clusterIP"]]
    value.setdefault("status", {"loadBalancer": {}})


def _fill_namespace(value: JsonObject) -> None:
    value.setdefault("spec", {"finalizers": ["kubernetes"]})
    value.setdefault("status", {"phase": "Active"})
    value["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = value["metadata"].get("name", "")


def _fill_secret(value: JsonObject) -> None:
    value.setdefault("type", "Opaque")


def _fill_event(value: JsonObject) -> None:
    empty: JsonObject = {"eventTime": None, "firstTimestamp": None, "lastTimestamp": None, "source": {}}
    for key, entry in (empty | {"reportingComponent": "", "reportingInstance": ""}).items():
        value.setdefault(key, entry)


def _check_data(value: JsonObject, before: JsonObject | None) -> list[Cause]:
    found = []
    size = 0
    for field in ("data", "binaryData"):
        for key, entry in (value.get(field) or {}).items():
            size += _size(entry, encoded=field == "binaryData" or value["kind"] == "Secret")
            if not re.fullmatch(_KEY, key):
                found.append(causes.invalid_value((f"{field}[{key}]",), key, _KEY_TEXT))
    if size > MAX_DATA:
        found.append(causes.too_long(("[]",) if value["kind"] == "ConfigMap" else ("data",), MAX_DATA))
    if before and before.get("immutable"):
        why = "field is immutable when `immutable` is set"
        fields = ("data", "binaryData", "immutable")
        found += [
            causes.forbidden_value((field,), why) for field in fields if not same(value.get(field), before.get(field))
        ]
    return found


def _size(entry: str, *, encoded: bool) -> int:
    """Count bytes; of base64, those that it stands for."""
    return len(entry) * 3 // 4 - entry.count("=") if encoded else len(entry.encode())


def _check_service(value: JsonObject, _before: JsonObject | None) -> list[Cause]:
    spec = value.get("spec") or {}
    if not spec.get("ports") and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        return [causes.required_value(("spec", "ports"))]
    return []


_DEFAULTS: dict[str, Callable[[JsonObject], None]] = {
    "CustomResourceDefinition": set_status,
    "Event": _fill_event,
    "Namespace": _fill_namespace,
    "Secret": _fill_secret,
    "Service": _fill_service,
}
_CHECKS: dict[str, Callable[[JsonObject, JsonObject | None], list[Cause]]] = {
    "ConfigMap": _check_data,
    "CustomResourceDefinition": lambda value, _before: check_definition(value),
    "Secret": _check_data,
    "Service": _check_service,
}
