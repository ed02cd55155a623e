"""What the API server itself keeps in `metadata`, and the rules for what users write there."""

import datetime as dt
import re
import secrets
import uuid
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.status import Cause
from rollouts_gwapi_plugin.model.base import JsonObject

# The suffix of a generated name: no vowels and no look-alikes, as the API server's.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED_BASE = 58
# Limits of the API server for all annotations of an object, and for the parts of names.
MAX_ANNOTATIONS = 256 * 1024
MAX_SUBDOMAIN = 253
MAX_LABEL = 63

SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is '" + SUBDOMAIN + "')"
)
_DNS_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '"
    + _DNS_LABEL_1035
    + "')"
)
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" + _QUALIFIED + "')"
)
_LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '"
    + _LABEL_VALUE
    + "')"
)
FIELDS = frozenset({
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
})  # fmt: skip


def now() -> str:
    """Write the time as the API does."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def drop_unknown(metadata: JsonObject) -> list[str]:
    """Drop unknown and empty fields of `metadata`; return the paths of the unknown ones."""
    unknown = [key for key in metadata if key not in FIELDS]
    for key in unknown:
        del metadata[key]
    for key in [key for key, value in metadata.items() if value in (None, "", {}, [])]:
        del metadata[key]
    return [f"metadata.{key}" for key in unknown]


def stamp(metadata: JsonObject, *, generation: bool) -> None:
    """Give a new object its name (if generated), uid, creation time and generation."""
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_MAX_GENERATED_BASE] + "".join(
            secrets.choice(_SUFFIX_ALPHABET) for _ in range(_SUFFIX_LENGTH)
        )
    for key in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(key, None)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = now()
    if generation:
        metadata["generation"] = 1


def keep_system_fields(metadata: JsonObject, before: JsonObject) -> None:
    """Take over from the state before what a user can't change by an update."""
    for key in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
    ):
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
    metadata["resourceVersion"] = before["resourceVersion"]


def check(metadata: JsonObject, kind: str) -> list[Cause]:
    """Find what is wrong with name, labels and annotations."""
    return [
        *_check_name(metadata.get("name", ""), kind),
        *_check_labels(metadata.get("labels") or {}),
        *_check_annotations(metadata.get("annotations") or {}),
        *_check_finalizers(metadata.get("finalizers") or []),
    ]


def _check_name(name: str, kind: str) -> list[Cause]:
    field = "metadata.name"
    if not name:
        return [Cause("FieldValueRequired", "Required value: name or generateName is required", field)]
    if kind == "Service":
        pattern, text, limit = _DNS_LABEL_1035, _DNS_LABEL_1035_TEXT, MAX_LABEL
    elif kind in {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}:
        # These are the path-segment names: anything but a slash and a percent sign.
        pattern, text, limit = r"[^/%]+", "may not contain '/' or '%'", MAX_SUBDOMAIN
    else:
        pattern, text, limit = SUBDOMAIN, _SUBDOMAIN_TEXT, MAX_SUBDOMAIN
    causes: list[Cause] = []
    if len(name) > limit:
        causes.append(_invalid(field, name, f"must be no more than {limit} characters"))
    if not re.fullmatch(pattern, name):
        causes.append(_invalid(field, name, text))
    return causes


def _check_labels(labels: JsonObject) -> list[Cause]:
    causes: list[Cause] = []
    for key, value in labels.items():
        causes.extend(_invalid("metadata.labels", key, text) for text in _qualified_faults(key))
        if len(value) > MAX_LABEL:
            causes.append(_invalid("metadata.labels", value, f"must be no more than {MAX_LABEL} bytes"))
        if not re.fullmatch(_LABEL_VALUE, value):
            causes.append(_invalid("metadata.labels", value, _LABEL_VALUE_TEXT))
    return causes


def _check_annotations(annotations: JsonObject) -> list[Cause]:
    field = "metadata.annotations"
    causes = [_invalid(field, key, text) for key in annotations for text in _qualified_faults(key.lower())]
    if sum(len(key) + len(value) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        text = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        causes.append(Cause("FieldValueTooLong", text, field))
    return causes


def _check_finalizers(finalizers: list[str]) -> list[Cause]:
    return [_invalid("metadata.finalizers", one, text) for one in finalizers for text in _qualified_faults(one)]


def _qualified_faults(key: str) -> list[str]:
    prefix, slash, name = key.rpartition("/")
    faults = []
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash and not re.fullmatch(SUBDOMAIN, prefix):
        faults.append(f"prefix part {_SUBDOMAIN_TEXT}")
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > MAX_LABEL:
        faults.append(f"name part must be no more than {MAX_LABEL} bytes")
    if not re.fullmatch(_QUALIFIED, name):
        faults.append(_QUALIFIED_TEXT)
    return faults


def _invalid(field: str, value: Any, text: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "{value}": {text}', field)
